// A search box with a list: asks the server while one types, arrows and Enter choose.

import { Problem, said } from "../api";
import { type Child, fill, h, icon, newId } from "../dom";

const WAIT = 130;

export interface Choice {
  /** What stands in the list. */
  content: Child;
  pick(): void;
}

export interface ComboboxOptions {
  label: string;
  placeholder: string;
  /** Shows the label above the box; otherwise only screen readers get it. */
  labelled?: boolean;
  hint?: string;
  id?: string;
  search(text: string, signal: AbortSignal): Promise<{ choices: Choice[]; note?: Child }>;
  /** Every change of the text. */
  typed?(text: string): void;
  /** Enter with nothing chosen in the list. */
  enter?(text: string): void;
  /** Keeps the text when something is picked. */
  keep?: boolean;
  /** A sign in the box. */
  icon?: "search";
}

export class Combobox {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  private readonly list: HTMLElement;
  private readonly note: HTMLElement;
  private readonly popup: HTMLElement;
  private choices: Choice[] = [];
  private active = -1;
  private timer = 0;
  private running: AbortController | null = null;

  constructor(private readonly options: ComboboxOptions) {
    const id = options.id ?? newId("box");
    const listId = newId("list");
    const hintId = options.hint ? newId("hint") : null;
    this.input = h("input", {
      id,
      type: "text",
      class: options.icon ? "field field-icon" : "field",
      role: "combobox",
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      placeholder: options.placeholder,
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": listId,
      "aria-label": options.labelled ? null : options.label,
      "aria-describedby": hintId,
      enterkeyhint: "search",
      onInput: () => this.changed(),
      onFocus: () => this.changed(0),
      onClick: () => this.popup.hidden && this.changed(0),
      onKeydown: (event: KeyboardEvent) => this.key(event),
      onBlur: () => this.close(),
    });
    this.list = h("div", { id: listId, role: "listbox", "aria-label": options.label });
    this.note = h("p", { class: "popup-note" });
    this.popup = h(
      "div",
      // The box keeps the focus while one clicks into the list.
      { class: "popup", hidden: true, onMousedown: (event: MouseEvent) => event.preventDefault() },
      this.list,
      this.note,
    );
    this.element = h(
      "div",
      { class: "combobox" },
      options.labelled && h("label", { for: id, class: "label" }, options.label),
      h("div", { class: "combobox-box" }, options.icon && icon(options.icon), this.input, this.popup),
      options.hint && h("p", { id: hintId, class: "hint" }, options.hint),
    );
  }

  get value(): string {
    return this.input.value;
  }

  set value(text: string) {
    this.input.value = text;
  }

  close(): void {
    clearTimeout(this.timer);
    this.running?.abort();
    this.popup.hidden = true;
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  private changed(wait = WAIT): void {
    if (wait > 0) this.options.typed?.(this.value);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.ask(), wait);
  }

  private async ask(): Promise<void> {
    this.running?.abort();
    const running = new AbortController();
    this.running = running;
    try {
      const { choices, note } = await this.options.search(this.value.trim(), running.signal);
      if (running.signal.aborted) return;
      this.show(choices, note);
    } catch (error) {
      if (running.signal.aborted) return;
      this.show([], error instanceof Problem ? said(error) : "The search failed.");
    }
  }

  private show(choices: Choice[], note: Child): void {
    if (document.activeElement !== this.input) return;
    this.choices = choices;
    this.active = -1;
    this.input.removeAttribute("aria-activedescendant");
    fill(
      this.list,
      choices.map((choice, at) =>
        h("div", { role: "option", id: `${this.list.id}-${at}`, class: "option", "aria-selected": "false", onClick: () => this.pick(at) }, choice.content),
      ),
    );
    fill(this.note, note);
    this.note.hidden = !note;
    this.popup.hidden = choices.length === 0 && !note;
    this.input.setAttribute("aria-expanded", String(choices.length > 0));
  }

  private pick(at: number): void {
    const choice = this.choices[at];
    if (!choice) return;
    if (!this.options.keep) this.value = "";
    this.close();
    choice.pick();
  }

  private key(event: KeyboardEvent): void {
    const last = this.choices.length - 1;
    if (event.key === "ArrowDown" && !this.popup.hidden) this.activate(this.active >= last ? 0 : this.active + 1);
    else if (event.key === "ArrowUp" && !this.popup.hidden) this.activate(this.active <= 0 ? last : this.active - 1);
    else if (event.key === "ArrowDown") this.changed(0);
    else if (event.key === "Enter" && this.active >= 0 && !this.popup.hidden) this.pick(this.active);
    else if (event.key === "Enter" && this.options.enter) this.options.enter(this.value.trim());
    else if (event.key === "Enter" && !this.popup.hidden && last >= 0 && !this.options.keep) this.pick(0);
    else if (event.key === "Escape" && !this.popup.hidden) this.close();
    else if (event.key === "Escape" && this.value && !this.options.keep) this.value = "";
    else return;
    event.preventDefault();
  }

  private activate(at: number): void {
    if (this.choices.length === 0) return;
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    this.active = at;
    const option = this.list.children[at];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
  }
}
