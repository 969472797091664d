// The graph for keyboard and screen reader: a tree of which only the part around the focus is in the document.

import { fill, h } from "../dom";
import { KIND, many } from "../words";
import { type Item, type Layout, moreLabel } from "./layout";
import type { GraphStore } from "./store";

/** Classes before and after the focused one that are in the document. */
const AROUND = 6;

export interface ReaderEvents {
  changed(): void;
  toggle(item: Item): void;
  choose(item: Item): void;
  openBelow(item: Item): void;
  /** The focus went to an item. */
  reveal(item: Item): void;
  /** A key that the tree does not know; tells whether it was used. */
  key(event: KeyboardEvent): boolean;
}

export class Reader {
  readonly element: HTMLElement;
  /** Visible items from top to bottom. */
  private order: Item[] = [];
  private positions = new Map<string, number>();
  private at = 0;
  private expanded = new Set<string>();
  private selected: string | null = null;
  private keyboard = false;
  private typed = "";
  private typedAt = 0;

  constructor(
    private readonly store: GraphStore,
    private readonly events: ReaderEvents,
  ) {
    this.element = h("div", {
      class: "graph-tree",
      role: "tree",
      tabindex: 0,
      "aria-label": "Classes. Arrow keys move, Enter shows a class, star opens all below it, plus and minus zoom.",
      onKeydown: (event: KeyboardEvent) => this.key(event),
      onFocus: () => {
        this.keyboard = this.element.matches(":focus-visible");
        this.events.changed();
      },
      onBlur: () => {
        this.keyboard = false;
        this.events.changed();
      },
    });
  }

  /** The key of the item that shows a focus ring. */
  get focusedKey(): string | null {
    return this.keyboard ? (this.order[this.at]?.key ?? null) : null;
  }

  update(layout: Layout, expanded: Set<string>, selected: string | null): void {
    const focused = this.order[this.at];
    this.order = layout.items;
    this.expanded = expanded;
    this.selected = selected;
    this.positions = new Map(this.order.map((item, at) => [item.key, at]));
    let place = focused ? this.positions.get(focused.key) : undefined;
    for (let above = focused?.parent; place === undefined && above; above = above.parent) place = this.positions.get(above.key);
    this.at = place ?? 0;
    this.render();
  }

  focus(item: Item): void {
    this.at = this.positions.get(item.key) ?? this.at;
    this.selected = item.more === 0 ? this.selected : null;
    this.render();
  }

  private render(): void {
    const from = Math.max(0, this.at - AROUND);
    const items = this.order.slice(from, this.at + AROUND + 1).map((item, offset) => {
      const siblings = item.parent?.children.length ?? 1;
      const known = this.store.get(item.id);
      const isOpen = item.more === 0 && this.store.expandable(item.id) ? this.expanded.has(item.id) : undefined;
      const text = item.more > 0 ? moreLabel(item.more) : `${known?.name ?? item.id}, ${KIND[known?.kind ?? "training"]}`;
      const below = known && item.more === 0 && known.childTotal > 0 ? `, ${many(known.childTotal, "class", "classes")} below` : "";
      return h(
        "div",
        {
          role: "treeitem",
          class: "unseen",
          id: `tree-${from + offset}`,
          "aria-level": item.depth + 1,
          "aria-posinset": item.position + 1,
          "aria-setsize": siblings,
          "aria-selected": item.more === 0 && item.id === this.selected ? "true" : "false",
          "aria-expanded": isOpen === undefined ? null : String(isOpen),
        },
        text + below,
      );
    });
    fill(this.element, items);
    if (items.length > 0) this.element.setAttribute("aria-activedescendant", `tree-${this.at}`);
    this.events.changed();
  }

  private moveTo(at: number): void {
    this.at = Math.max(0, Math.min(this.order.length - 1, at));
    this.render();
    const item = this.order[this.at];
    if (item) this.events.reveal(item);
  }

  private key(event: KeyboardEvent): void {
    this.keyboard = true;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.events.key(event) || this.treeKey(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  }

  private treeKey(event: KeyboardEvent): boolean {
    const item = this.order[this.at];
    if (!item) return false;
    switch (event.key) {
      case "ArrowDown":
        this.moveTo(this.at + 1);
        return true;
      case "ArrowUp":
        this.moveTo(this.at - 1);
        return true;
      case "ArrowRight":
        if (item.children.length > 0) this.moveTo(this.at + 1);
        else this.events.toggle(item);
        return true;
      case "ArrowLeft":
        if (item.more === 0 && item.children.length > 0) this.events.toggle(item);
        else if (item.parent) this.moveTo(this.positions.get(item.parent.key) ?? 0);
        return true;
      case "Home":
        this.moveTo(0);
        return true;
      case "End":
        this.moveTo(this.order.length - 1);
        return true;
      case "*":
        if (item.more === 0) this.events.openBelow(item);
        return true;
      case "Enter":
      case " ":
        this.events.choose(item);
        return true;
      default:
        return this.type(event.key);
    }
  }

  /** Goes to the next class whose name begins with what is typed. */
  private type(key: string): boolean {
    if (key.length !== 1 || key === "/" || !/\S/.test(key)) return false;
    const now = performance.now();
    this.typed = (now - this.typedAt < 800 ? this.typed : "") + key.toLowerCase();
    this.typedAt = now;
    const start = this.typed.length === 1 ? this.at + 1 : this.at;
    for (let step = 0; step < this.order.length; step += 1) {
      const at = (start + step) % this.order.length;
      const item = this.order[at];
      if (item && item.more === 0 && this.store.name(item.id).toLowerCase().startsWith(this.typed)) {
        this.moveTo(at);
        break;
      }
    }
    return true;
  }
}
