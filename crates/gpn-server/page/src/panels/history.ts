// All changes, the newest first.

import { said } from "../api";
import type { App, Panel } from "../app";
import { fill, h } from "../dom";
import { changeList } from "../parts/changes";
import type { HistoryEntry } from "../types";

const PAGE = 40;

export class HistoryPanel implements Panel {
  readonly element: HTMLElement;
  private readonly body = h("div", {});
  private changes: HistoryEntry[] = [];
  private next: number | null = null;
  private seen = false;

  constructor(private readonly app: App) {
    this.element = h(
      "section",
      { class: "page", "aria-label": "History" },
      h("header", {}, h("h1", { tabindex: -1 }, "History"), h("p", { class: "lead" }, "Every change is kept and makes a version. Any of them can be undone, and any version can still be asked.")),
      this.body,
    );
  }

  show(): void {
    this.seen = true;
    document.title = `History · ${this.app.card.name} · gpn`;
    this.refresh();
  }

  reset(): void {
    this.changes = [];
  }

  refresh(): void {
    if (this.seen) void this.load(undefined);
  }

  private async load(before: number | undefined): Promise<void> {
    try {
      const found = await this.app.api.history(before === undefined ? { limit: PAGE } : { limit: PAGE, before });
      this.changes = before === undefined ? found.changes : [...this.changes, ...found.changes];
      this.next = found.next;
      this.render();
    } catch (error) {
      fill(this.body, h("p", { class: "bad" }, said(error)));
    }
  }

  private render(): void {
    if (this.changes.length === 0) {
      fill(this.body, h("div", { class: "card note" }, h("p", {}, "Nothing has been changed yet. This is the model as it was trained."), this.app.card.may_write && h("a", { class: "button", href: "#/teach" }, "Teach a class")));
      return;
    }
    const { next } = this;
    fill(
      this.body,
      changeList(this.app, this.changes, true),
      next !== null && h("button", { type: "button", class: "button", onClick: () => void this.load(next) }, "Older changes"),
      next === null && h("p", { class: "hint" }, "Version 0 is the model as it was trained."),
    );
  }
}
