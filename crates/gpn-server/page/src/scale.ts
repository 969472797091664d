// Photos that are too large for the server together are made smaller before they are sent.

import type { Card, Given } from "./types";

/** Pixels of the longer side of a photo that is made smaller. */
const SIDE = 1600;

export async function scaledToFit(given: Given[], limits: Card["limits"]): Promise<Given[]> {
  const total = given.reduce((sum, one) => sum + (one.file?.size ?? 0), 0);
  // The form around the files takes some room too.
  if (total < limits.body * 0.95 - 1024 * given.length) return given;
  return Promise.all(given.map((one) => (one.file && one.file.size > 400_000 ? smaller(one, one.file) : one)));
}

async function smaller(given: Given, file: File): Promise<Given> {
  let image: ImageBitmap;
  try {
    image = await createImageBitmap(file);
  } catch {
    return given;
  }
  const scale = Math.min(1, SIDE / Math.max(image.width, image.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(image.width * scale));
  canvas.height = Math.max(1, Math.round(image.height * scale));
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  image.close();
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.9));
  return blob && blob.size < file.size ? { name: given.name, file: new File([blob], given.name, { type: "image/jpeg" }) } : given;
}
