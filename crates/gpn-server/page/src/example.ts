// An example to try: a little drawing for models of images, made-up numbers for models of embeddings.

import type { Given } from "./types";

/** Draws a striped fish. */
export async function drawnExample(): Promise<Given> {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 128;
  const c = canvas.getContext("2d");
  if (!c) throw new Error("this browser has no canvas");
  const ground = c.createLinearGradient(0, 0, 0, 128);
  ground.addColorStop(0, "#dfe9ee");
  ground.addColorStop(1, "#b9cfd8");
  c.fillStyle = ground;
  c.fillRect(0, 0, 128, 128);
  const body = new Path2D();
  body.ellipse(56, 64, 40, 24, 0, 0, 2 * Math.PI);
  const tail = new Path2D("M90 64 L118 42 Q108 64 118 86 Z");
  c.fillStyle = "#c9302c";
  c.fill(tail);
  c.fill(body);
  c.save();
  c.clip(body);
  c.fillStyle = "#f3d9c8";
  for (let x = 36; x < 100; x += 16) c.fillRect(x, 34, 7, 60);
  c.restore();
  c.fillStyle = "#fff";
  c.beginPath();
  c.arc(32, 58, 6, 0, 2 * Math.PI);
  c.fill();
  c.fillStyle = "#1b1b1b";
  c.beginPath();
  c.arc(31, 58, 3, 0, 2 * Math.PI);
  c.fill();
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!blob) throw new Error("the example could not be drawn");
  return { name: "drawn fish.png", file: new File([blob], "drawn fish.png", { type: "image/png" }) };
}

/** Numbers that mean nothing, to see what an answer looks like. */
export function madeUpExample(length: number): Given {
  const row = Array.from({ length }, (_, at) => Math.sin(at * 1.7) * Math.cos(at * 0.31));
  const norm = Math.hypot(...row) || 1;
  return { name: "made-up numbers", rows: [row.map((value) => value / norm)] };
}
