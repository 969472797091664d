// What the API takes and gives. The last word is /api/openapi.json.

export type Kind = "training" | "taught" | "untaught";

export interface Named {
  id: string;
  name: string;
}

export interface ClassEntry extends Named {
  kind: Kind;
  samples: number;
  parents: string[];
  nearest: string[];
}

export interface Share extends Named {
  relation: string;
  weight: number;
  share: number;
}

export interface Similar extends Named {
  distance: number;
}

export interface KeptSample {
  number: number;
  name: string;
  at: string;
  image: boolean;
}

export interface NearSample extends KeptSample {
  class: string;
  distance: number;
}

export interface ChangedClass extends Named {
  samples_before: number;
  samples_after: number;
}

export interface HistoryEntry {
  number: number;
  at: string;
  who: string;
  what: string;
  undone: number | null;
  undone_by: number | null;
  classes: ChangedClass[];
}

export interface History {
  changes: HistoryEntry[];
  next: number | null;
}

export interface ClassState {
  class: ClassEntry;
  shares: Share[] | null;
  similar: Similar[];
}

export interface ClassPage extends ClassState {
  version: number;
  description: string | null;
  parents: ClassEntry[];
  children: ClassEntry[];
  children_total: number;
  siblings: ClassEntry[];
  path: Named[];
  samples: KeptSample[];
  history: HistoryEntry[];
}

export interface ClassList {
  total: number;
  next: string | null;
  classes: ClassEntry[];
  did_you_mean?: string | null;
}

export interface Card {
  name: string;
  version: number;
  method: string;
  backbone: string;
  input: { image: { height: number; width: number } } | { embedding: { len: number } };
  dim: number;
  classes: { training: number; taught: number; untaught: number };
  root: string;
  keep_images: boolean;
  may_write: boolean;
  who: string;
  limits: { body: number; samples: number; pixels: number };
  card: string | null;
  program: string;
}

export interface ModelList {
  models: { name: string; default: boolean; version: number; classes: number }[];
  loadable: string[];
}

export interface WindowNode extends Named {
  kind: Kind;
  samples: number;
  depth: number;
  parents: number;
  children: number;
}

export interface GraphWindow {
  center: string;
  version: number;
  nodes: WindowNode[];
  edges: [string, string][];
  links: [string, string][];
  truncated: boolean;
}

export interface Likely extends Named {
  probability: number;
  distance: number;
}

export interface Sure extends Named {
  probability: number;
  path: Named[];
}

export interface Prediction {
  file: string;
  classes: Likely[];
  shaped_by?: Share[];
  /** The deepest class that is as sure as asked for; the path is empty where that is the top. */
  sure?: Sure;
  /** How strange the sample is, where the model can tell. */
  unknown?: { score: number; is_unknown: boolean };
}

export type Answer = Prediction | { file: string; error: string };

export interface Predictions {
  version: number;
  predictions: Answer[];
}

export interface Explanation {
  version: number;
  prediction: Prediction;
  path: Named[];
  nearest_samples: NearSample[];
}

export type Among = "all" | "taught" | { below: string };

export interface PredictRequest {
  among: Among;
  top: number;
  confidence?: number;
}

export interface Taught extends Named {
  place: "in_graph" | "nearest" | { below: string[] };
  samples: number;
  repeated: number;
}

export interface Lesson {
  version: number;
  taught: Taught[];
  classes: { id: string; before: ClassState | null; after: ClassState }[];
}

export interface Undone {
  version: number;
  undone: HistoryEntry;
}

/** What a person gives: an image file, or rows of numbers. */
export interface Given {
  name: string;
  file?: File;
  rows?: number[][];
}
