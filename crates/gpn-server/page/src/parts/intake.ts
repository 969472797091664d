// Where samples come in: dropped, chosen, pasted, taken with the camera. Images, or rows of numbers for models of embeddings.

import { type Child, fill, h, icon, newId } from "../dom";
import { checkRows, parseRows, readRows } from "../embeddings";
import type { Card, Given } from "../types";
import { bytes, many } from "../words";

export interface IntakeOptions {
  title: string;
  several: boolean;
  /** A further way in, such as an example. */
  extra?: Child;
  take(given: Given[]): void;
  fail(message: string): void;
}

/** The length of embeddings that a model takes; 0 for a model of images. */
export function embeddingLength(card: Card): number {
  return "embedding" in card.input ? card.input.embedding.len : 0;
}

export class Intake {
  readonly element: HTMLElement;

  constructor(
    private readonly card: Card,
    private readonly options: IntakeOptions,
  ) {
    const length = embeddingLength(card);
    this.element = h("div", { class: "intake" });
    this.element.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.element.classList.add("intake-over");
    });
    this.element.addEventListener("dragleave", (event) => {
      if (!this.element.contains(event.relatedTarget as Node | null)) this.element.classList.remove("intake-over");
    });
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      event.stopPropagation();
      this.element.classList.remove("intake-over");
      void this.files([...(event.dataTransfer?.files ?? [])]);
    });
    if (length === 0) this.images();
    else this.numbers(length);
  }

  /** Takes files, wherever they came from. */
  async files(files: File[]): Promise<void> {
    if (files.length === 0) return;
    const length = embeddingLength(this.card);
    try {
      const chosen = this.options.several ? files : files.slice(0, 1);
      if (length === 0) {
        const wrong = chosen.find((file) => /\.(npy|npz|csv|json|parquet|txt)$/i.test(file.name));
        if (wrong) throw new Error(`${wrong.name}: this model takes photos, not embeddings`);
        const large = chosen.find((file) => file.size > this.card.limits.body);
        if (large) throw new Error(`${large.name} has ${bytes(large.size)}; this server takes ${bytes(this.card.limits.body)} at most`);
        this.options.take(chosen.map((file) => ({ name: file.name || "photo", file })));
        return;
      }
      const image = chosen.find((file) => file.type.startsWith("image/"));
      if (image) throw new Error(`${image.name} is an image. This model takes embeddings of ${length} numbers: embed it with the encoder that the model was made with, and give the result as .npy, .json or .csv.`);
      const given: Given[] = [];
      for (const file of chosen) {
        const rows = await readRows(file);
        checkRows(rows, length, file.name);
        rows.forEach((row, at) => given.push({ name: rows.length > 1 ? `${file.name} ${at + 1}` : file.name, rows: [row] }));
      }
      this.options.take(given);
    } catch (error) {
      this.options.fail(error instanceof Error ? error.message : String(error));
    }
  }

  private chooser(accept: string, attributes: Record<string, string | boolean>, label: string, sign: "image" | "camera" | "rows", main: boolean): HTMLElement {
    const id = newId("file");
    const input = h("input", {
      id,
      type: "file",
      class: "unseen",
      accept,
      multiple: this.options.several,
      ...attributes,
      onChange: () => {
        void this.files([...(input.files ?? [])]).then(() => (input.value = ""));
      },
    });
    return h("span", { class: "chooser" }, input, h("label", { for: id, class: main ? "button button-main" : "button" }, icon(sign), label));
  }

  private images(): void {
    const several = this.options.several;
    fill(
      this.element,
      h("div", { class: "intake-sign" }, icon("image")),
      h("p", { class: "intake-title" }, this.options.title),
      h(
        "div",
        { class: "row row-center" },
        this.chooser("image/*", { "data-choose": true }, several ? "Choose photos" : "Choose a photo", "image", true),
        this.chooser("image/*", { capture: "environment", multiple: false }, "Camera", "camera", false),
        this.options.extra,
      ),
    );
  }

  private numbers(length: number): void {
    const id = newId("paste");
    const area = h("textarea", { id, class: "field mono", rows: 3, placeholder: "0.12, -0.5, 1.7, …", spellcheck: "false" });
    const use = () => {
      try {
        const rows = parseRows(area.value, "pasted text");
        checkRows(rows, length, "pasted text");
        const chosen = this.options.several ? rows : rows.slice(0, 1);
        this.options.take(chosen.map((row, at) => ({ name: `pasted row ${at + 1}`, rows: [row] })));
        area.value = "";
      } catch (error) {
        this.options.fail(error instanceof Error ? error.message : String(error));
      }
    };
    fill(
      this.element,
      h("div", { class: "intake-sign" }, icon("rows")),
      h("p", { class: "intake-title" }, "Drop embeddings here"),
      h("p", { class: "hint" }, `This model takes no images but ${many(length, "number")} a sample, as its encoder gives them: .npy, .json or .csv, one row a sample.`),
      h("div", { class: "row row-center" }, this.chooser(".npy,.json,.csv,.tsv,.txt", { "data-choose": true }, "Choose a file", "rows", true), this.options.extra),
      h(
        "details",
        { class: "paste" },
        h("summary", {}, "Paste numbers"),
        h("label", { for: id, class: "label" }, `Rows of ${length} numbers`),
        area,
        h("button", { type: "button", class: "button", onClick: use }, "Use these"),
      ),
    );
  }
}

const shown = new Map<File, string>();

/** A small picture of what was given. */
export function thumb(given: Given): HTMLElement {
  if (!given.file) return h("span", { class: "thumb thumb-rows", role: "img", "aria-label": given.name }, bars(given.rows?.[0] ?? []));
  let url = shown.get(given.file);
  if (!url) shown.set(given.file, (url = URL.createObjectURL(given.file)));
  const image = h("img", { class: "thumb", src: url, alt: given.name });
  // Some photos (HEIC in most browsers) are readable for the server alone, or not at all.
  image.addEventListener("error", () => image.replaceWith(h("span", { class: "thumb thumb-none", role: "img", "aria-label": given.name }, icon("image"))));
  return image;
}

/** Numbers as a little chart. */
function bars(row: number[]): Child {
  const columns = 24;
  const step = Math.max(1, Math.floor(row.length / columns));
  const picked = Array.from({ length: Math.min(columns, row.length) }, (_, at) => row[at * step] ?? 0);
  const most = Math.max(1e-9, ...picked.map(Math.abs));
  return picked.map((value) => h("i", { vars: { "--h": `${Math.round((Math.abs(value) / most) * 100)}%` }, class: value < 0 ? "below" : "" }));
}
