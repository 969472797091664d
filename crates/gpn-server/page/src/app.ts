// What the parts of the page share.

import type { Api } from "./api";
import type { GraphView } from "./graph/view";
import type { GraphStore } from "./graph/store";
import type { Card, Given } from "./types";

export type View = "explore" | "ask" | "teach" | "history";

export interface App {
  readonly api: Api;
  readonly store: GraphStore;
  readonly graph: GraphView;
  card: Card;
  /** Goes to a view, or to a class. */
  go(view: View, id?: string): void;
  /** Looks again after classes changed. */
  changed(ids: string[]): Promise<void>;
  /** Tells of a failure. */
  fail(error: unknown): void;
  /** Undoes a change, and says so. */
  undo(number: number): Promise<void>;
  ask(given: Given[], options?: { below?: string; version?: number }): void;
  teach(start: { given?: Given[]; name?: string; parent?: string }): void;
}

/** A part of the page beside the graph. */
export interface Panel {
  readonly element: HTMLElement;
  /** The panel comes into sight. */
  show(id?: string): void;
  /** Something changed in the model while the panel is in sight. */
  refresh(): void;
  /** Another model is asked, or the same one anew. */
  reset(): void;
}
