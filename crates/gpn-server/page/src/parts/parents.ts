// Chooses the parents of a class by search.

import type { App } from "../app";
import { fill, h, icon } from "../dom";
import type { Named } from "../types";
import { classSearch } from "./classes";
import { Combobox } from "./combobox";
import { announce } from "./notices";

export class ParentPicker {
  readonly element: HTMLElement;
  readonly box: Combobox;
  private readonly list = h("ul", { class: "chips", "aria-label": "Chosen parents" });
  private chosen: Named[] = [];

  constructor(app: App, label: string, hint?: string) {
    const add = (entry: Named) => {
      if (!this.chosen.some((one) => one.id === entry.id)) this.set([...this.chosen, entry]);
      announce(`${entry.name} is chosen.`);
    };
    this.box = new Combobox({ label, labelled: true, placeholder: "Search a class", ...(hint ? { hint } : {}), search: classSearch(app.api, (id) => app.store.name(id), add, { empty: false }) });
    this.element = h("div", {}, this.box.element, this.list);
    this.set([]);
  }

  ids(): string[] {
    return this.chosen.map((one) => one.id);
  }

  set(chosen: Named[]): void {
    this.chosen = chosen;
    this.list.hidden = chosen.length === 0;
    fill(
      this.list,
      chosen.map((one) =>
        h(
          "li",
          { class: "chip" },
          h("span", {}, one.name),
          h("button", { type: "button", class: "chip-close", "aria-label": `Remove ${one.name}`, onClick: () => this.set(this.chosen.filter((other) => other.id !== one.id)) }, icon("close")),
        ),
      ),
    );
  }
}
