// Draws the visible classes on a canvas, in pixels of the screen: marks and labels keep a readable size at any zoom.

import type { Kind } from "../types";
import { type Item, LABEL, type Layout, moreLabel } from "./layout";
import type { GraphStore } from "./store";

export const FONT = 13;
const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

export interface Camera {
  x: number;
  y: number;
  k: number;
}

export interface Colours {
  ground: string;
  line: string;
  cross: string;
  ink: string;
  faint: string;
  accent: string;
  soft: string;
  hover: string;
  training: string;
  taught: string;
  untaught: string;
}

export interface Scene {
  layout: Layout;
  store: GraphStore;
  camera: Camera;
  width: number;
  height: number;
  /** Where an item is now, on its way to its place. */
  at: (item: Item) => { x: number; y: number };
  selected: string | null;
  hovered: string | null;
  focused: string | null;
  /** Classes of the answer that is shown: the part that is sure, and the rest of the way. */
  sure: Set<string>;
  likely: Set<string>;
  expanded: Set<string>;
}

export function readColours(element: Element): Colours {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ground: of("--graph"),
    line: of("--edge"),
    cross: of("--edge-cross"),
    ink: of("--ink"),
    faint: of("--ink-3"),
    accent: of("--accent"),
    soft: of("--accent-soft"),
    hover: of("--hover"),
    training: of("--trained"),
    taught: of("--taught"),
    untaught: of("--untaught"),
  };
}

export class Painter {
  private readonly widths = new Map<string, number>();
  private readonly cut = new Map<string, string>();
  colours: Colours;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    element: Element,
  ) {
    this.colours = readColours(element);
  }

  /** The width of a label at the plain size. */
  width = (text: string, bold = false): number => {
    const key = bold ? `\n${text}` : text;
    let found = this.widths.get(key);
    if (found === undefined) {
      this.context.font = font(FONT, bold);
      this.widths.set(key, (found = this.context.measureText(text).width));
    }
    return found;
  };

  draw(scene: Scene, ratio: number): void {
    const { context } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.colours.ground;
    context.fillRect(0, 0, scene.width, scene.height);
    this.edges(scene);
    this.labels(scene, this.marks(scene));
  }

  private edges(scene: Scene): void {
    const { context, colours } = this;
    const plain = new Path2D();
    const dotted = new Path2D();
    const likely = new Path2D();
    const sure = new Path2D();
    for (const item of scene.layout.items) {
      if (!item.parent) continue;
      const both = (set: Set<string>) => item.more === 0 && set.has(item.id) && !!item.parent && set.has(item.parent.id);
      const path = both(scene.sure) ? sure : both(scene.likely) ? likely : item.guest ? dotted : plain;
      this.edge(path, scene, item.parent, item);
    }
    context.lineWidth = scene.camera.k < 0.3 ? 0.75 : 1.25;
    context.strokeStyle = colours.line;
    context.stroke(plain);
    context.strokeStyle = colours.cross;
    context.setLineDash([2, 4]);
    context.stroke(dotted);
    const cross = new Path2D();
    for (const { from, to } of scene.layout.cross) this.bow(cross, scene, from, to);
    context.setLineDash([5, 4]);
    context.lineWidth = 1;
    context.stroke(cross);
    context.strokeStyle = colours.accent;
    context.lineWidth = 2;
    context.stroke(likely);
    context.setLineDash([]);
    context.lineWidth = 3;
    context.stroke(sure);
  }

  private edge(path: Path2D, scene: Scene, parent: Item, child: Item): void {
    const a = place(scene, parent);
    const b = place(scene, child);
    if (child.angle !== 0 || parent.angle !== 0) {
      if (outside(scene, a, b)) return;
      path.moveTo(a.x, a.y);
      const middle = place2(scene, 0, 0);
      const [ra, rb] = [Math.hypot(a.x - middle.x, a.y - middle.y), Math.hypot(b.x - middle.x, b.y - middle.y)];
      const r = (ra + rb) / 2;
      const [ta, tb] = [parent.depth === 0 ? child.angle : parent.angle, child.angle];
      const [ax, ay] = [middle.x + Math.cos(ta) * r, middle.y + Math.sin(ta) * r];
      path.bezierCurveTo(ax, ay, middle.x + Math.cos(tb) * r, middle.y + Math.sin(tb) * r, b.x, b.y);
      return;
    }
    const label = this.isBold(scene, parent) ? this.width(this.shortened(scene.store.name(parent.id)), true) : parent.label;
    const start = a.x + 13 + (label * size(scene.camera.k)) / FONT + 6;
    const end = b.x - 8;
    if (end < 0 || start > scene.width || Math.max(a.y, b.y) < 0 || Math.min(a.y, b.y) > scene.height) return;
    const half = Math.max(8, (end - start) / 2);
    path.moveTo(start, a.y);
    path.bezierCurveTo(start + half, a.y, end - half, b.y, end, b.y);
  }

  private bow(path: Path2D, scene: Scene, from: Item, to: Item): void {
    const a = place(scene, from);
    const b = place(scene, to);
    if (outside(scene, a, b)) return;
    path.moveTo(a.x, a.y);
    path.quadraticCurveTo((a.x + b.x) / 2 + (b.y - a.y) * 0.12, (a.y + b.y) / 2 - (b.x - a.x) * 0.12, b.x, b.y);
  }

  /** Draws the marks; returns the items that are in sight. */
  private marks(scene: Scene): { item: Item; x: number; y: number }[] {
    const seen: { item: Item; x: number; y: number }[] = [];
    const paths: Record<Kind, Path2D> = { training: new Path2D(), taught: new Path2D(), untaught: new Path2D() };
    const radius = Math.min(7, Math.max(2, 5 * scene.camera.k));
    const margin = LABEL * Math.max(1, scene.camera.k) + 60;
    for (const item of scene.layout.items) {
      const { x, y } = place(scene, item);
      if (x < -margin || x > scene.width + margin || y < -margin || y > scene.height + margin) continue;
      seen.push({ item, x, y });
      if (item.more > 0) continue;
      const kind = scene.store.get(item.id)?.kind ?? "training";
      const path = paths[kind];
      if (kind === "taught") {
        const r = radius * 1.3;
        path.moveTo(x, y - r);
        path.lineTo(x + r, y);
        path.lineTo(x, y + r);
        path.lineTo(x - r, y);
        path.closePath();
      } else {
        const r = kind === "untaught" ? radius * 0.85 : radius;
        path.moveTo(x + r, y);
        path.arc(x, y, r, 0, 2 * Math.PI);
      }
    }
    const { context, colours } = this;
    context.fillStyle = colours.training;
    context.fill(paths.training);
    context.fillStyle = colours.ground;
    context.fill(paths.untaught);
    context.lineWidth = Math.max(1, Math.min(1.75, 1.75 * scene.camera.k));
    context.strokeStyle = colours.untaught;
    context.stroke(paths.untaught);
    context.fillStyle = colours.taught;
    context.fill(paths.taught);
    for (const { item, x, y } of seen) {
      if (item.more > 0 || !scene.sure.has(item.id)) continue;
      context.strokeStyle = colours.accent;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, radius + 4, 0, 2 * Math.PI);
      context.stroke();
    }
    return seen;
  }

  private labels(scene: Scene, seen: { item: Item; x: number; y: number }[]): void {
    const { context } = this;
    const plain = size(scene.camera.k);
    const taken: { x: number; y: number; w: number }[] = [];
    context.textBaseline = "middle";
    // What matters more is drawn last and is never left out.
    const weight = ({ item }: { item: Item }) => (this.isMarked(scene, item) ? 2 : item.children.length > 0 ? 1 : 0);
    for (const one of seen.sort((a, b) => weight(a) - weight(b))) {
      const { item, x, y } = one;
      const important = weight(one);
      let px = plain;
      if (px < (item.angle === 0 ? 7.5 : 9)) {
        if (important === 0) continue;
        px = 11;
        const w = (item.label * px) / FONT + 20;
        if (important < 2 && taken.some((box) => Math.abs(box.y - y) < 15 && x < box.x + box.w && box.x < x + w)) continue;
        taken.push({ x, y, w });
      }
      this.label(scene, item, x, y, px);
    }
  }

  private isBold(scene: Scene, item: Item): boolean {
    return item.more === 0 && (item.id === scene.selected || scene.sure.has(item.id) || scene.likely.has(item.id));
  }

  private isMarked(scene: Scene, item: Item): boolean {
    if (item.more > 0) return scene.hovered === item.key || scene.focused === item.key;
    return (
      item.id === scene.selected ||
      item.key === scene.hovered ||
      item.key === scene.focused ||
      scene.sure.has(item.id) ||
      scene.likely.has(item.id)
    );
  }

  private label(scene: Scene, item: Item, x: number, y: number, px: number): void {
    const { context, colours } = this;
    const known = scene.store.get(item.id);
    const text = this.shortened(item.more > 0 ? moreLabel(item.more) : (known?.name ?? item.id));
    const bold = this.isBold(scene, item);
    const width = (this.width(text, bold) * px) / FONT;
    const flipped = Math.cos(item.angle) < -1e-9;
    context.save();
    context.translate(x, y);
    context.rotate(flipped ? item.angle + Math.PI : item.angle);
    const side = flipped ? -1 : 1;
    const start = item.more > 0 ? 0 : 13;
    context.textAlign = flipped ? "right" : "left";
    const hidden = item.more === 0 && item.children.length === 0 && (known?.childTotal ?? 0) > 0 && !scene.expanded.has(item.id);
    const badge = hidden ? `+${(known?.childTotal ?? 0).toLocaleString("en")}` : "";
    const badgeWidth = badge ? (this.width(badge) * px * 0.82) / FONT + 10 : 0;
    const pill = item.more === 0 && item.id === scene.selected ? colours.soft : item.key === scene.hovered ? colours.hover : "";
    const reach = start + width + (badge ? badgeWidth + 8 : 0) + 8;
    if (pill || item.key === scene.focused) {
      context.beginPath();
      context.roundRect(side > 0 ? -10 : -reach, -px * 0.88, reach + 10, px * 1.76, px * 0.6);
      if (pill) {
        context.fillStyle = pill;
        context.fill();
      }
      if (item.key === scene.focused) {
        context.strokeStyle = colours.accent;
        context.lineWidth = 2;
        context.stroke();
      }
      // The pill lies over the mark: draw the mark again.
      if (pill && item.more === 0 && known) this.mark(known.kind, scene.camera.k);
    }
    context.font = font(px, bold);
    // A rim keeps lines out of the letters. It is costly, and the labels of leaves in a tree cross no line.
    if (!pill && (item.children.length > 0 || bold || scene.layout.cross.length > 0 || item.more > 0) && (item.angle === 0 || bold || px > 10)) {
      context.strokeStyle = colours.ground;
      context.lineWidth = 3;
      context.lineJoin = "round";
      context.strokeText(text, side * start, 0.5);
    }
    context.fillStyle = item.more > 0 ? colours.accent : known?.kind === "untaught" && !bold ? colours.faint : colours.ink;
    context.fillText(text, side * start, 0.5);
    if (badge) {
      const left = side > 0 ? start + width + 7 : -(start + width + 7 + badgeWidth);
      context.beginPath();
      context.roundRect(left, -px * 0.62, badgeWidth, px * 1.24, px * 0.62);
      context.fillStyle = pill ? colours.ground : colours.hover;
      context.fill();
      context.font = font(px * 0.82, false);
      context.fillStyle = colours.faint;
      context.textAlign = "center";
      context.fillText(badge, left + badgeWidth / 2, 0.5);
    }
    context.restore();
  }

  private mark(kind: Kind, k: number): void {
    const { context, colours } = this;
    const r = Math.min(7, Math.max(2, 5 * k));
    context.beginPath();
    if (kind === "taught") {
      const d = r * 1.3;
      context.moveTo(0, -d);
      context.lineTo(d, 0);
      context.lineTo(0, d);
      context.lineTo(-d, 0);
      context.closePath();
    } else context.arc(0, 0, kind === "untaught" ? r * 0.85 : r, 0, 2 * Math.PI);
    context.fillStyle = kind === "untaught" ? colours.ground : colours[kind];
    context.fill();
    if (kind === "untaught") {
      context.strokeStyle = colours.untaught;
      context.lineWidth = 1.75;
      context.stroke();
    }
  }

  private shortened(text: string): string {
    if (this.width(text) <= LABEL) return text;
    let found = this.cut.get(text);
    if (found === undefined) {
      let end = text.length;
      while (end > 1 && this.width(`${text.slice(0, end)}…`) > LABEL) end -= 1;
      this.cut.set(text, (found = `${text.slice(0, end).trimEnd()}…`));
    }
    return found;
  }
}

/** Pixels of a label's font at a zoom. */
export function size(k: number): number {
  return FONT * Math.min(k, 1.2);
}

function font(px: number, bold: boolean): string {
  return `${bold ? 650 : 450} ${px}px ${FAMILY}`;
}

function place(scene: Scene, item: Item): { x: number; y: number } {
  const { x, y } = scene.at(item);
  return place2(scene, x, y);
}

function place2(scene: Scene, x: number, y: number): { x: number; y: number } {
  const { camera } = scene;
  return { x: x * camera.k + camera.x, y: y * camera.k + camera.y };
}

function outside(scene: Scene, a: { x: number; y: number }, b: { x: number; y: number }): boolean {
  return (
    Math.max(a.x, b.x) < 0 || Math.min(a.x, b.x) > scene.width || Math.max(a.y, b.y) < 0 || Math.min(a.y, b.y) > scene.height
  );
}
