// The class graph on the screen: what is expanded, the camera, pointer and keys.

import { h, icon } from "../dom";
import { BADGE, type Form, FIRST, type Item, layout, type Layout, ROW } from "./layout";
import { type Camera, FONT, Painter, readColours, size } from "./paint";
import { Reader } from "./reader";
import type { GraphStore } from "./store";

const NEAREST = 2.5;
const FARTHEST = 0.04;
/** Classes that are shown at the start, as far as they fit. */
const AT_START = 26;
/** Classes in sight from which on no more are opened at once. */
const MOST_OPENED = 1500;
/** Opened at once, so many classes are drawn in a circle. */
const CIRCLE_FROM = 150;
/** A tree is not made smaller than this to show all of it. */
const READABLE = 0.42;
/** Milliseconds of a movement. */
const MOVE = 260;

export interface GraphEvents {
  /** A class was chosen. */
  select(id: string): void;
  fail(error: unknown): void;
}

export class GraphView {
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly painter: Painter;
  private readonly reader: Reader;
  private readonly shown = { expanded: new Set<string>(), limits: new Map<string, number>() };
  private current: Layout = { items: [], byId: new Map(), cross: [], box: { x: 0, y: 0, width: 1, height: 1 } };
  private camera: Camera = { x: 0, y: 0, k: 1 };
  private movement: { start: number; from: Camera; to: Camera; places: Map<string, { x: number; y: number }> } | null = null;
  private frame = 0;
  private width = 1;
  private height = 1;
  private form: Form = "tree";
  private selected: string | null = null;
  private hovered: string | null = null;
  private sure = new Set<string>();
  private likely = new Set<string>();
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private dragged = 0;
  private fitted = false;
  private readonly formButton: HTMLButtonElement;

  constructor(
    private readonly element: HTMLElement,
    private readonly store: GraphStore,
    private readonly events: GraphEvents,
  ) {
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.painter = new Painter(context, element);
    this.reader = new Reader(store, {
      changed: () => this.redraw(),
      toggle: (item) => void this.toggle(item),
      choose: (item) => this.choose(item),
      openBelow: (item) => void this.openBelow(item.id).catch((error: unknown) => this.events.fail(error)),
      reveal: (item) => this.keepInSight(item),
      key: (event) => this.key(event),
    });
    const button = (name: Parameters<typeof icon>[0], label: string, act: () => void) =>
      h("button", { type: "button", class: "round", "aria-label": label, title: label, onClick: act }, icon(name));
    this.formButton = button("radial", "Draw in a circle", () => this.reform());
    element.append(
      this.canvas,
      this.reader.element,
      h(
        "div",
        { class: "graph-tools", role: "toolbar", "aria-label": "Zoom" },
        this.formButton,
        button("fit", "Show all of it", () => this.fit(true)),
        button("plus", "Zoom in", () => this.zoom(1.4)),
        button("minus", "Zoom out", () => this.zoom(1 / 1.4)),
      ),
    );
    this.listen();
    new ResizeObserver(() => this.resize()).observe(element);
    const recolour = () => this.recolour();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  /** Shows the top of a graph that was just loaded. */
  begin(): void {
    this.shown.expanded.clear();
    this.shown.limits.clear();
    this.expandFirst();
    this.relayout(false);
    this.fitted = false;
    this.fitStart();
  }

  /** Draws again after classes changed. */
  update(): void {
    for (const id of this.shown.expanded) if (!this.store.get(id)) this.shown.expanded.delete(id);
    if (this.selected && !this.store.get(this.selected)) this.selected = null;
    this.relayout(true);
  }

  /** Marks a class, and goes there. */
  async reveal(id: string, way: string[] = []): Promise<void> {
    await this.store.loadPath(id);
    this.store.prefer(way);
    const path = this.store.path(id);
    for (const above of path.slice(0, -1)) this.open(above, path);
    this.selected = id;
    this.relayout(true);
    const item = this.current.byId.get(id);
    if (item) {
      this.reader.focus(item);
      this.center(item);
    }
  }

  deselect(): void {
    this.selected = null;
    this.redraw();
  }

  /** Marks the way to an answer; the first `sure` classes of it are certain enough. */
  async highlight(way: string[], sure: number): Promise<void> {
    const changed = way.some((id) => !this.likely.has(id)) || way.length !== this.likely.size;
    this.likely = new Set(way);
    this.sure = new Set(way.slice(0, sure));
    if (!changed || way.length === 0) return this.redraw();
    const last = way.at(-1);
    if (last) await this.store.loadPath(last);
    this.store.prefer(way);
    for (const above of way.slice(0, -1)) this.open(above, way);
    this.relayout(true);
    const items = way.map((id) => this.current.byId.get(id)).filter((item) => item !== undefined);
    this.frameItems(items);
  }

  /** Opens a class and all below it, as far as they can be taken in at once. */
  async openBelow(id: string): Promise<void> {
    let seen = this.current.items.length;
    let level = [id];
    while (level.length > 0 && seen < MOST_OPENED) {
      const next: string[] = [];
      for (const above of level) {
        if (seen >= MOST_OPENED) break;
        if (!this.store.expandable(above)) continue;
        await this.store.loadChildren(above);
        const children = this.store.shown(above);
        if (!this.shown.expanded.has(above)) seen += Math.min(children.length, this.shown.limits.get(above) ?? FIRST);
        this.shown.expanded.add(above);
        next.push(...children.slice(0, this.shown.limits.get(above) ?? FIRST));
      }
      level = next;
    }
    // So many rows are a long thin tree; in a circle they are in sight at once.
    const circle = this.form === "tree" && seen > CIRCLE_FROM;
    this.relayout(true, id);
    if (circle) this.reform();
    else this.fit(true);
  }

  /** Whether a class is on the way that is marked. */
  isOnWay(id: string): boolean {
    return this.likely.has(id);
  }

  /** Opens a class far enough that those of a way are among the children shown. */
  private open(id: string, way: string[]): void {
    this.shown.expanded.add(id);
    const children = this.store.shown(id);
    const deepest = children.reduce((most, child, at) => (way.includes(child) ? at : most), -1);
    if (deepest >= (this.shown.limits.get(id) ?? FIRST)) this.shown.limits.set(id, deepest + 1);
  }

  private expandFirst(): void {
    let level = [this.store.root];
    let rows = 1;
    const room = Math.max(AT_START, Math.floor(this.height / ROW) - 2);
    while (level.length > 0) {
      const next = level.flatMap((id) => this.store.shown(id));
      const after = rows + next.length - level.filter((id) => this.store.shown(id).length > 0).length;
      if (level[0] !== this.store.root && after > room) break;
      for (const id of level) if (this.store.shown(id).length > 0) this.shown.expanded.add(id);
      rows = after;
      level = next;
    }
  }

  private async toggle(item: Item): Promise<void> {
    try {
      if (item.more > 0) {
        const shown = (this.shown.limits.get(item.id) ?? FIRST) + Math.max(FIRST, this.shown.limits.get(item.id) ?? 0);
        await this.store.loadChildren(item.id, Math.max(400, shown));
        this.shown.limits.set(item.id, shown);
      } else if (this.shown.expanded.has(item.id)) this.shown.expanded.delete(item.id);
      else if (this.store.expandable(item.id)) {
        await this.store.loadChildren(item.id);
        this.shown.expanded.add(item.id);
      } else return;
    } catch (error) {
      this.events.fail(error);
      return;
    }
    this.relayout(true, item.id);
    const now = this.current.byId.get(item.id);
    if (now) this.keepInSight(now, true);
  }

  private choose(item: Item): void {
    if (item.more > 0) void this.toggle(item);
    else this.events.select(item.id);
  }

  private reform(): void {
    this.form = this.form === "tree" ? "radial" : "tree";
    const label = this.form === "tree" ? "Draw in a circle" : "Draw as a tree";
    this.formButton.replaceChildren(icon(this.form === "tree" ? "radial" : "tree"));
    this.formButton.setAttribute("aria-label", label);
    this.formButton.title = label;
    this.relayout(true);
    this.fit(true);
  }

  /** Places all classes anew; the one given stays where it is on the screen. */
  private relayout(animate: boolean, anchor?: string): void {
    const places = new Map<string, { x: number; y: number }>();
    for (const item of this.current.items) places.set(item.key, this.at(item));
    const before = anchor === undefined ? undefined : this.current.byId.get(anchor);
    const stood = before && this.at(before);
    this.current = layout(this.store, this.shown, this.form, this.painter.width);
    this.reader.update(this.current, this.shown.expanded, this.selected);
    const to = { ...this.movement?.to ?? this.camera };
    const after = anchor === undefined ? undefined : this.current.byId.get(anchor);
    if (stood && after) {
      const k = this.camera.k;
      to.x = stood.x * k + this.camera.x - after.x * k;
      to.y = stood.y * k + this.camera.y - after.y * k;
      to.k = k;
    }
    if (animate && !still()) {
      // A class that appears comes out of the one it belongs to.
      for (const item of this.current.items) {
        if (places.has(item.key)) continue;
        for (let above = item.parent; above; above = above.parent) {
          const known = places.get(above.key);
          if (!known) continue;
          places.set(item.key, known);
          break;
        }
      }
      this.movement = { start: performance.now(), from: { ...this.camera }, to, places };
    } else {
      this.movement = null;
      this.camera = to;
    }
    this.redraw();
  }

  private at = (item: Item): { x: number; y: number } => {
    const from = this.movement?.places.get(item.key);
    if (!this.movement || !from) return item;
    const t = this.progress();
    return { x: from.x + (item.x - from.x) * t, y: from.y + (item.y - from.y) * t };
  };

  private progress(): number {
    if (!this.movement) return 1;
    const t = Math.min(1, (performance.now() - this.movement.start) / MOVE);
    return 1 - (1 - t) ** 3;
  }

  private go(to: Camera): void {
    to.k = Math.min(NEAREST, Math.max(FARTHEST, to.k));
    if (still()) {
      this.camera = to;
      this.movement = null;
    } else {
      const places = new Map<string, { x: number; y: number }>();
      if (this.movement) for (const item of this.current.items) places.set(item.key, this.at(item));
      this.movement = { start: performance.now(), from: { ...this.camera }, to, places };
    }
    this.redraw();
  }

  /** Shows everything that is expanded. */
  fit(animate: boolean): void {
    const to = this.framing(this.current.box, 1.15);
    const anchor = this.current.byId.get(this.selected ?? "") ?? this.current.byId.get(this.store.root);
    if (this.form === "tree" && to.k < READABLE && anchor) {
      const { x, width } = this.current.box;
      to.k = Math.max(READABLE, Math.min(1, (this.width - 72) / width));
      to.x = 36 - x * to.k;
      to.y = this.height / 2 - anchor.y * to.k;
    }
    if (animate) this.go(to);
    else this.camera = to;
    this.redraw();
  }

  /** Shows all of it where that is readable, otherwise the top class and what is near. */
  private fitStart(): void {
    if (this.width < 50 || this.fitted) return;
    this.fitted = true;
    this.movement = null;
    this.fit(false);
    const least = this.width < 560 ? 0.72 : 0.8;
    const root = this.current.byId.get(this.store.root);
    if (this.camera.k < least && root && this.form === "tree") {
      this.camera = { k: least, x: 24, y: this.height / 2 - root.y * least };
    }
    this.redraw();
  }

  private framing(box: Layout["box"], most: number): Camera {
    const margin = this.width < 560 ? 16 : 36;
    // Legend and buttons lie at the bottom.
    const [width, height] = [this.width - 2 * margin, this.height - 2 * margin - 28];
    const k = Math.min(most, Math.max(FARTHEST, Math.min(width / box.width, height / box.height)));
    return { k, x: this.width / 2 - (box.x + box.width / 2) * k, y: (this.height - 28) / 2 - (box.y + box.height / 2) * k };
  }

  private frameItems(items: Item[]): void {
    if (items.length === 0) return;
    const left = Math.min(...items.map((item) => item.x)) - 12;
    const right = Math.max(...items.map((item) => item.x + (this.form === "tree" ? item.label + 40 : 40)));
    const top = Math.min(...items.map((item) => item.y)) - 3 * ROW;
    const bottom = Math.max(...items.map((item) => item.y)) + 3 * ROW;
    const to = this.framing({ x: left, y: top, width: right - left, height: bottom - top }, 1);
    // Where the whole way is too small to read, its end counts.
    const last = items.at(-1);
    if (to.k < 0.7 && last) {
      to.k = 0.8;
      to.x = this.width * 0.6 - last.x * to.k;
      to.y = this.height / 2 - last.y * to.k;
    }
    this.go(to);
  }

  private center(item: Item): void {
    const k = Math.max(0.85, Math.min(1.1, this.camera.k));
    const reach = this.form === "tree" ? (item.label / 2) * k : 0;
    let x = this.width / 2 - item.x * k - reach;
    const root = this.current.byId.get(this.store.root);
    if (this.form === "tree" && root) {
      // As much of the way to it as there is room for.
      const right = Math.max(...[item, ...item.children].map((one) => one.x + one.label + BADGE));
      x = Math.max(x, Math.min(36 - root.x * k, this.width - 36 - right * k));
    }
    this.go({ k, x, y: (this.height - 28) / 2 - item.y * k });
  }

  /** Moves no more than is needed to see an item, and its children if wanted. */
  private keepInSight(item: Item, children = false): void {
    const to = { ...this.movement?.to ?? this.camera };
    const items = children ? [...item.children.slice(0, 40), item] : [item];
    const right = Math.max(...items.map((one) => (one.x + (this.form === "tree" ? one.label + 40 : 20)) * to.k + to.x));
    if (right > this.width - 24) to.x -= right - (this.width - 24);
    const left = item.x * to.k + to.x;
    if (left < 24) to.x += 24 - left;
    const top = Math.min(...items.map((one) => one.y)) * to.k + to.y;
    const bottom = Math.max(...items.map((one) => one.y)) * to.k + to.y;
    if (bottom > this.height - 56) to.y -= Math.min(bottom - (this.height - 56), Math.max(0, top - 40));
    if (top < 40 && bottom - top < this.height - 96) to.y += 40 - top;
    const y = item.y * to.k + to.y;
    if (y < 30) to.y += 30 - y;
    if (y > this.height - 40) to.y -= y - (this.height - 40);
    if (this.movement) this.movement.to = to;
    else if (to.x !== this.camera.x || to.y !== this.camera.y) this.go(to);
    this.redraw();
  }

  private zoom(factor: number, x = this.width / 2, y = this.height / 2, smooth = true): void {
    const now = smooth && this.movement ? this.movement.to : this.camera;
    const k = Math.min(NEAREST, Math.max(FARTHEST, now.k * factor));
    const to = { k, x: x - ((x - now.x) / now.k) * k, y: y - ((y - now.y) / now.k) * k };
    if (smooth) this.go(to);
    else {
      this.settle();
      this.camera = to;
      this.redraw();
    }
  }

  private settle(): void {
    if (!this.movement) return;
    this.camera = this.cameraNow();
    this.movement = null;
  }

  private cameraNow(): Camera {
    if (!this.movement) return this.camera;
    const { from, to } = this.movement;
    const t = this.progress();
    return { x: from.x + (to.x - from.x) * t, y: from.y + (to.y - from.y) * t, k: from.k + (to.k - from.k) * t };
  }

  private resize(): void {
    const { width, height } = this.element.getBoundingClientRect();
    if (width < 1 || height < 1) return;
    const ratio = devicePixelRatio || 1;
    const [dx, dy] = [(width - this.width) / 2, (height - this.height) / 2];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const known = this.width > 50;
    this.width = width;
    this.height = height;
    if (known) {
      this.settle();
      this.camera = { k: this.camera.k, x: this.camera.x + dx, y: this.camera.y + dy };
    } else if (this.store.root) {
      this.expandFirst();
      this.relayout(false);
      this.fitStart();
    }
    this.paint();
  }

  private recolour(): void {
    this.painter.colours = readColours(this.element);
    this.redraw();
  }

  private redraw(): void {
    this.frame ||= requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.movement) {
      this.camera = this.cameraNow();
      if (performance.now() - this.movement.start >= MOVE) {
        this.camera = this.movement.to;
        this.movement = null;
      } else this.redraw();
    }
    this.painter.draw(
      {
        layout: this.current,
        store: this.store,
        camera: this.camera,
        width: this.width,
        height: this.height,
        at: this.at,
        selected: this.selected,
        hovered: this.hovered,
        focused: this.reader.focusedKey,
        sure: this.sure,
        likely: this.likely,
        expanded: this.shown.expanded,
      },
      devicePixelRatio || 1,
    );
  }

  /** The item at a point of the screen, and whether the point is on its mark or its count. */
  private hit(x: number, y: number): { item: Item; handle: boolean } | null {
    let best: { item: Item; handle: boolean; d: number } | null = null;
    const px = Math.max(9, size(this.camera.k));
    for (const item of this.current.items) {
      const [dx, dy] = [x - (item.x * this.camera.k + this.camera.x), y - (item.y * this.camera.k + this.camera.y)];
      const along = dx * Math.cos(item.angle) + dy * Math.sin(item.angle);
      const across = -dx * Math.sin(item.angle) + dy * Math.cos(item.angle);
      const label = 14 + (item.label * px) / FONT;
      const known = this.store.get(item.id);
      const badge = item.more === 0 && item.children.length === 0 && (known?.childTotal ?? 0) > 0;
      const end = label + (badge ? this.painter.width(`+${known?.childTotal ?? 0}`) + 16 : 4);
      if (along < -11 || along > end || Math.abs(across) > Math.max(9, px * 0.95)) continue;
      const d = Math.abs(across);
      if (!best || d < best.d) best = { item, handle: along < 9 || (badge && along > label), d };
    }
    return best;
  }

  private listen(): void {
    const area = this.reader.element;
    const at = (event: PointerEvent | WheelEvent) => {
      const box = this.element.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      area.setPointerCapture(event.pointerId);
      this.settle();
      this.pointers.set(event.pointerId, at(event));
      if (this.pointers.size === 1) this.dragged = 0;
    });
    area.addEventListener("pointermove", (event) => {
      const now = at(event);
      const before = this.pointers.get(event.pointerId);
      if (!before) {
        const found = this.hit(now.x, now.y);
        area.style.cursor = found ? "pointer" : "grab";
        if ((found?.item.key ?? null) !== this.hovered) {
          this.hovered = found?.item.key ?? null;
          this.redraw();
        }
        return;
      }
      const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
      const other = others[0]?.[1];
      if (other) {
        const [was, is] = [Math.hypot(before.x - other.x, before.y - other.y), Math.hypot(now.x - other.x, now.y - other.y)];
        this.zoom(is / Math.max(1, was), (now.x + other.x) / 2, (now.y + other.y) / 2, false);
      }
      const part = other ? 0.5 : 1;
      this.camera.x += (now.x - before.x) * part;
      this.camera.y += (now.y - before.y) * part;
      this.dragged += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      this.pointers.set(event.pointerId, now);
      if (this.dragged > 4) area.style.cursor = "grabbing";
      this.redraw();
    });
    const lift = (event: PointerEvent) => {
      if (!this.pointers.delete(event.pointerId)) return;
      area.style.cursor = "grab";
      if (event.type === "pointercancel" || this.dragged > 6 || this.pointers.size > 0) return;
      const now = at(event);
      const found = this.hit(now.x, now.y);
      if (!found) return;
      this.reader.focus(found.item);
      if (found.handle || found.item.more > 0 || found.item.id === this.selected) void this.toggle(found.item);
      if (found.item.more === 0 && found.item.id !== this.selected && !found.handle) this.events.select(found.item.id);
    };
    area.addEventListener("pointerup", lift);
    area.addEventListener("pointercancel", lift);
    area.addEventListener("pointerleave", () => {
      this.hovered = null;
      this.redraw();
    });
    area.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const { x, y } = at(event);
        const step = event.deltaMode === 1 ? event.deltaY * 18 : event.deltaY;
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          this.settle();
          this.camera.x -= event.deltaX || step;
          this.redraw();
        } else this.zoom(Math.exp(-step * (event.ctrlKey ? 0.01 : 0.0016)), x, y, false);
      },
      { passive: false },
    );
  }

  /** Keys that move the camera; the others belong to the tree. */
  private key(event: KeyboardEvent): boolean {
    const pan = (x: number, y: number) => this.go({ ...this.camera, x: this.camera.x + x, y: this.camera.y + y });
    if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-" || event.key === "_") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit(true);
    else if (event.shiftKey && event.key === "ArrowLeft") pan(90, 0);
    else if (event.shiftKey && event.key === "ArrowRight") pan(-90, 0);
    else if (event.shiftKey && event.key === "ArrowUp") pan(0, 90);
    else if (event.shiftKey && event.key === "ArrowDown") pan(0, -90);
    else return false;
    return true;
  }
}

function still(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
