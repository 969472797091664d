// What the page knows of the class graph: windows of it, joined.

import type { Api } from "../api";
import type { GraphWindow, Kind } from "../types";

/** A model up to this size is loaded at once; of a larger one, what is looked at. */
const WHOLE = 3000;
const MOST = 5000;
/** Children of a class that are fetched at a time. */
const BATCH = 400;

export interface KnownClass {
  id: string;
  name: string;
  kind: Kind;
  samples: number;
  /** How many parents and children it has, known or not. */
  parentTotal: number;
  childTotal: number;
  parents: string[];
  children: string[];
  /** For a class of unknown place: the training classes it is linked to. */
  links: string[];
  /** Classes of unknown place that are linked to this one. */
  linked: string[];
}

export class GraphStore {
  readonly classes = new Map<string, KnownClass>();
  /** Of a class with several parents: the one that it is drawn below. */
  readonly drawnBelow = new Map<string, string>();
  root = "";
  version = -1;

  constructor(private readonly api: Api) {}

  /** Begins with the top of the graph, or with all of it. */
  async start(root: string, total: number): Promise<void> {
    const window = await this.api.graph(total <= WHOLE ? { up: 0, down: 64, limit: MOST } : { up: 0, down: 1, limit: BATCH });
    this.classes.clear();
    this.root = root || window.center;
    this.join(window);
  }

  get(id: string): KnownClass | undefined {
    return this.classes.get(id);
  }

  /** The children as they are shown: by name, those of unknown place last. */
  shown(id: string): string[] {
    const found = this.classes.get(id);
    if (!found) return [];
    const byName = (a: string, b: string) => this.name(a).localeCompare(this.name(b), "en", { numeric: true });
    const guests = found.linked.filter((guest) => this.hangsFrom(guest) === id && !found.children.includes(guest));
    const own = found.children.filter((child) => (this.hangsFrom(child) ?? id) === id);
    return [...own.sort(byName), ...guests.sort(byName)];
  }

  /** For a class of unknown place: the class that it is drawn below. */
  hangsFrom(id: string): string | undefined {
    const found = this.classes.get(id);
    if (!found || found.links.length === 0) return undefined;
    return found.links.find((link) => this.classes.has(link));
  }

  expandable(id: string): boolean {
    const found = this.classes.get(id);
    return !!found && (found.childTotal > 0 || this.shown(id).length > 0);
  }

  name(id: string): string {
    return this.classes.get(id)?.name ?? id;
  }

  /** The classes above one; none where its place is not known. */
  parents(id: string): string[] {
    const found = this.classes.get(id);
    return found && found.links.length === 0 ? found.parents : [];
  }

  /** Draws the classes of a way one below the other. */
  prefer(way: string[]): void {
    way.forEach((id, at) => {
      const above = way[at - 1];
      if (above !== undefined && this.classes.get(above)?.children.includes(id)) this.drawnBelow.set(id, above);
    });
  }

  /** A way from the top to a class. */
  path(id: string): string[] {
    const way: string[] = [];
    const seen = new Set<string>();
    for (let next: string | undefined = id; next !== undefined && !seen.has(next); ) {
      seen.add(next);
      way.push(next);
      next = this.hangsFrom(next) ?? this.drawnBelow.get(next) ?? this.classes.get(next)?.parents.find((parent) => this.classes.has(parent));
    }
    return way.reverse();
  }

  /** Whether all ways from a class to the top are known. */
  private rooted(id: string): boolean {
    const seen = new Set<string>();
    const open = [id];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      const found = this.classes.get(next);
      if (!found || found.parents.length < found.parentTotal) return false;
      open.push(...found.parents);
    }
    return true;
  }

  /** Gets more children of a class, as far as there are. */
  async loadChildren(id: string, wanted = BATCH): Promise<void> {
    const found = this.classes.get(id);
    if (!found || found.children.length >= Math.min(found.childTotal, wanted)) return;
    this.join(await this.api.graph({ node: id, up: 0, down: 1, limit: Math.min(MOST, wanted + 1) }));
  }

  /** Gets a class and the classes above it. */
  async loadPath(id: string): Promise<void> {
    if (this.rooted(id)) return;
    this.join(await this.api.graph({ node: id, up: 64, down: 1, limit: BATCH }));
    const guest = this.hangsFrom(id) ?? this.classes.get(id)?.links[0];
    if (guest && !this.rooted(guest)) this.join(await this.api.graph({ node: guest, up: 64, down: 0, limit: BATCH }));
  }

  /** Gets the classes above several, a few at a time. */
  async loadPaths(ids: string[]): Promise<void> {
    const open = ids.filter((id) => !this.rooted(id));
    const worker = async () => {
      for (let id = open.shift(); id !== undefined; id = open.shift()) await this.loadPath(id);
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
  }

  /** Looks again at classes that changed. */
  async refresh(ids: string[], total: number): Promise<void> {
    if (total <= WHOLE) return this.start(this.root, total);
    for (const id of ids) {
      this.remove(id);
      const { classes } = await this.api.classes({ q: id, limit: 20 });
      if (classes.some((entry) => entry.id === id)) this.join(await this.api.graph({ node: id, up: 64, down: 1, limit: BATCH }));
    }
  }

  private remove(id: string): void {
    const found = this.classes.get(id);
    if (!found) return;
    const without = (list: string[]) => list.filter((other) => other !== id);
    for (const parent of found.parents) {
      const above = this.classes.get(parent);
      if (!above) continue;
      above.children = without(above.children);
      above.childTotal -= 1;
    }
    for (const link of found.links) {
      const near = this.classes.get(link);
      if (near) near.linked = without(near.linked);
    }
    this.classes.delete(id);
    this.drawnBelow.delete(id);
  }

  private join(window: GraphWindow): void {
    this.version = window.version;
    for (const node of window.nodes) {
      const known = this.classes.get(node.id);
      this.classes.set(node.id, {
        id: node.id,
        name: node.name,
        kind: node.kind,
        samples: node.samples,
        parentTotal: node.parents,
        childTotal: node.children,
        parents: known?.parents ?? [],
        children: known?.children ?? [],
        links: known?.links ?? [],
        linked: known?.linked ?? [],
      });
    }
    const put = (list: string[] | undefined, id: string) => {
      if (list && !list.includes(id)) list.push(id);
    };
    // Thousands of children of one class are joined by a set: looking through the list each time takes too long.
    const children = new Map<string, Set<string>>();
    for (const [parent, child] of window.edges) {
      let set = children.get(parent);
      if (!set) children.set(parent, (set = new Set(this.classes.get(parent)?.children)));
      set.add(child);
      put(this.classes.get(child)?.parents, parent);
    }
    for (const [parent, set] of children) {
      const known = this.classes.get(parent);
      if (known) known.children = [...set];
    }
    for (const [id, near] of window.links) {
      put(this.classes.get(id)?.links, near);
      put(this.classes.get(near)?.linked, id);
    }
  }
}
