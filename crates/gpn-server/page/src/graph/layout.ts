// Where the visible classes are drawn: a tree from left to right, or around the top class.

import type { GraphStore } from "./store";

export const ROW = 26;
const GAP = 64;
/** The widest label that a column makes room for. */
export const LABEL = 190;
/** Room beside a label for the number of classes below that are not shown. */
export const BADGE = 64;

export type Form = "tree" | "radial";

/** A class on the canvas, or the classes below one that are not shown. */
export interface Item {
  key: string;
  id: string;
  /** How many more there are; 0 for a class. */
  more: number;
  parent: Item | null;
  children: Item[];
  depth: number;
  x: number;
  y: number;
  /** Direction of the label, in radians; 0 in a tree. */
  angle: number;
  label: number;
  /** Drawn below a class that it is only linked to. */
  guest: boolean;
  position: number;
}

export interface Layout {
  /** From top to bottom. */
  items: Item[];
  byId: Map<string, Item>;
  /** Further parents and links, between classes that are both visible. */
  cross: { from: Item; to: Item; guest: boolean }[];
  box: { x: number; y: number; width: number; height: number };
}

export interface Shown {
  expanded: Set<string>;
  /** How many children of a class are shown, where it is not the default. */
  limits: Map<string, number>;
}

/** Children of a class that are shown at first. */
export const FIRST = 60;

export function layout(store: GraphStore, shown: Shown, form: Form, width: (text: string) => number): Layout {
  const byId = new Map<string, Item>();
  const items: Item[] = [];
  const root = grow(store, shown, width, byId);
  if (!root) return { items, byId, cross: [], box: { x: 0, y: 0, width: 1, height: 1 } };
  const rows = rowsOf(root, items);
  if (form === "tree") placeTree(items);
  else placeRadial(items, rows);
  return { items, byId, cross: crossings(store, byId), box: boxOf(store, items) };
}

function grow(
  store: GraphStore,
  shown: Shown,
  width: (text: string) => number,
  byId: Map<string, Item>,
): Item | null {
  const make = (id: string, parent: Item | null, more: number): Item => {
    const text = more > 0 ? moreLabel(more) : store.name(id);
    const item: Item = {
      key: more > 0 ? `+${id}` : id,
      id,
      more,
      parent,
      children: [],
      depth: parent ? parent.depth + 1 : 0,
      x: 0,
      y: 0,
      angle: 0,
      label: Math.min(LABEL, width(text)),
      guest: more === 0 && !!parent && store.hangsFrom(id) === parent.id,
      position: parent ? parent.children.length : 0,
    };
    if (more === 0) byId.set(id, item);
    return item;
  };
  if (!store.get(store.root)) return null;
  const reached = reachable(store, shown);
  // A class with several parents is drawn below the one that was chosen, if that one is open.
  const elsewhere = (child: string, parent: string) => {
    const chosen = store.drawnBelow.get(child);
    return chosen !== undefined && chosen !== parent && reached.has(chosen) && shown.expanded.has(chosen);
  };
  const root = make(store.root, null, 0);
  const open = [root];
  for (let item = open.pop(); item; item = open.pop()) {
    if (item.more > 0 || !shown.expanded.has(item.id)) continue;
    const parent = item.id;
    const children = store.shown(parent).filter((child) => !byId.has(child) && !elsewhere(child, parent));
    const limit = shown.limits.get(item.id) ?? FIRST;
    // A single class left over is shown instead of "1 more".
    const visible = children.length <= limit + 1 ? children : children.slice(0, limit);
    for (const id of visible) item.children.push(make(id, item, 0));
    const known = store.get(item.id);
    const missing = Math.max(0, (known?.childTotal ?? 0) - (known?.children.length ?? 0)) + children.length - visible.length;
    if (missing > 0) item.children.push(make(item.id, item, missing));
    for (let at = item.children.length - 1; at >= 0; at -= 1) {
      const child = item.children[at];
      if (child) open.push(child);
    }
  }
  return root;
}

/** All classes that are below open ones. */
function reachable(store: GraphStore, shown: Shown): Set<string> {
  const reached = new Set([store.root]);
  for (const id of reached) if (shown.expanded.has(id)) for (const child of store.shown(id)) reached.add(child);
  return reached;
}

export function moreLabel(more: number): string {
  return `${more.toLocaleString("en")} more`;
}

/** Lists the items from top to bottom, gives every leaf a row and every other class the middle of its children. Returns the
 * number of rows. */
function rowsOf(root: Item, items: Item[]): number {
  let rows = 0;
  const open: { item: Item; done: boolean }[] = [{ item: root, done: false }];
  for (let step = open.pop(); step; step = open.pop()) {
    const { item, done } = step;
    const first = item.children[0];
    const last = item.children.at(-1);
    if (!done) items.push(item);
    if (!first || !last) {
      item.y = rows;
      rows += 1;
    } else if (done) item.y = (first.y + last.y) / 2;
    else {
      open.push({ item, done: true });
      for (let at = item.children.length - 1; at >= 0; at -= 1) {
        const child = item.children[at];
        if (child) open.push({ item: child, done: false });
      }
    }
  }
  return rows;
}

function placeTree(items: Item[]): void {
  const widths: number[] = [];
  for (const item of items) if (item.children.length > 0) widths[item.depth] = Math.max(widths[item.depth] ?? 0, item.label);
  const columns: number[] = [0];
  for (let depth = 0; depth < widths.length; depth += 1) columns.push((columns[depth] ?? 0) + (widths[depth] ?? 0) + GAP);
  for (const item of items) {
    item.x = columns[item.depth] ?? 0;
    item.y *= ROW;
  }
}

function placeRadial(items: Item[], rows: number): void {
  const deepest = items.reduce((most, item) => Math.max(most, item.depth), 1);
  const ring = Math.max(150, (rows * 17) / (2 * Math.PI) / deepest);
  const turn = (2 * Math.PI) / Math.max(rows, 6);
  for (const item of items) {
    const angle = item.y * turn - Math.PI / 2;
    const radius = item.depth * ring;
    item.angle = item.depth === 0 ? 0 : angle;
    item.x = Math.cos(angle) * radius;
    item.y = Math.sin(angle) * radius;
  }
}

function crossings(store: GraphStore, byId: Map<string, Item>): Layout["cross"] {
  const cross: Layout["cross"] = [];
  for (const item of byId.values()) {
    const known = store.get(item.id);
    if (!known) continue;
    const guest = known.links.length > 0;
    for (const other of guest ? known.links : known.parents) {
      const from = byId.get(other);
      if (from && from !== item.parent) cross.push({ from, to: item, guest });
    }
  }
  return cross;
}

function boxOf(store: GraphStore, items: Item[]): Layout["box"] {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const item of items) {
    const closed = item.more === 0 && item.children.length === 0 && store.expandable(item.id);
    const reach = item.label + (closed ? BADGE : 26);
    const [dx, dy] = item.angle === 0 ? [reach, 0] : [Math.cos(item.angle) * reach, Math.sin(item.angle) * reach];
    left = Math.min(left, item.x - 12, item.x + dx);
    right = Math.max(right, item.x + 12, item.x + dx);
    top = Math.min(top, item.y - ROW / 2, item.y + dy);
    bottom = Math.max(bottom, item.y + ROW / 2, item.y + dy);
  }
  return { x: left, y: top, width: Math.max(1, right - left), height: Math.max(1, bottom - top) };
}
