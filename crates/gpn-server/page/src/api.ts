// The API of the server: one function a call, errors as `Problem`, tokens in the session only.

import type {
  Card,
  ClassList,
  ClassPage,
  Explanation,
  Given,
  GraphWindow,
  History,
  Lesson,
  ModelList,
  PredictRequest,
  Predictions,
  Undone,
} from "./types";

const TOKEN = "gpn-token";
const MODEL = "gpn-model";

/** What the server refused, in its own words. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly kind: string,
  ) {
    super(message);
  }
}

/** Asks a person for a token; gives null if there is none. */
export type AskForToken = (refused: boolean) => Promise<string | null>;

export interface TeachFields {
  name: string;
  parents: string[];
  unknownPlace: boolean;
  ifTaught: "refuse" | "add" | "replace";
}

export class Api {
  private asking: Promise<string | null> | null = null;

  constructor(private readonly askForToken: AskForToken) {}

  /** The model that is asked; empty for the first one. */
  get model(): string {
    return sessionStorage.getItem(MODEL) ?? "";
  }

  set model(name: string) {
    sessionStorage.setItem(MODEL, name);
  }

  models(): Promise<ModelList> {
    return this.json("/api/models");
  }

  card(): Promise<Card> {
    return this.json(this.at("/card"));
  }

  classes(query: { q?: string; kind?: string; limit?: number; cursor?: string }, signal?: AbortSignal): Promise<ClassList> {
    return this.json(this.at("/classes", query), signal ? { signal } : {});
  }

  class(id: string): Promise<ClassPage> {
    return this.json(this.at(`/classes/${encodeURIComponent(id)}`));
  }

  graph(query: { node?: string; up?: number; down?: number; limit?: number }): Promise<GraphWindow> {
    return this.json(this.at("/graph", query));
  }

  history(query: { limit?: number; before?: number }): Promise<History> {
    return this.json(this.at("/history", query));
  }

  async image(id: string, number: number): Promise<Blob> {
    return (await this.fetch(this.at(`/classes/${encodeURIComponent(id)}/samples/${number}/image`), {})).blob();
  }

  explain(given: Given, request: PredictRequest, version?: number): Promise<Explanation> {
    return this.json(this.at("/explain", version === undefined ? {} : { version }), this.question([given], request));
  }

  predict(given: Given[], request: PredictRequest, version?: number): Promise<Predictions> {
    return this.json(this.at("/predict", version === undefined ? {} : { version }), this.question(given, request));
  }

  teach(fields: TeachFields, given: Given[]): Promise<Lesson> {
    const rows = given.flatMap((one) => one.rows ?? []);
    const place = fields.unknownPlace ? "unknown" : "from_graph";
    if (rows.length > 0) {
      const lesson = { class: fields.name, parents: fields.parents, place, embeddings: rows };
      return this.json(this.at("/teach"), post({ classes: [lesson], if_taught: fields.ifTaught }));
    }
    const form = new FormData();
    form.append("class", fields.name);
    for (const parent of fields.parents) form.append("parents", parent);
    if (fields.parents.length === 0) form.append("place", place);
    form.append("if_taught", fields.ifTaught);
    for (const one of given) if (one.file) form.append("image", one.file, one.name);
    return this.json(this.at("/teach"), { method: "POST", body: form });
  }

  forget(id: string): Promise<{ version: number }> {
    return this.json(this.at(`/classes/${encodeURIComponent(id)}`), { method: "DELETE" });
  }

  undo(what: { number?: number; class?: string }): Promise<Undone> {
    return this.json(this.at("/undo"), post(what));
  }

  move(id: string, parents: string[]): Promise<{ version: number }> {
    return this.json(this.at(`/classes/${encodeURIComponent(id)}/move`), post({ parents }));
  }

  rename(id: string, name: string): Promise<{ version: number }> {
    return this.json(this.at(`/classes/${encodeURIComponent(id)}/rename`), post({ name }));
  }

  private at(path: string, query: Record<string, string | number | undefined> = {}): string {
    const base = this.model ? `/api/models/${encodeURIComponent(this.model)}` : "/api";
    const text = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) text.set(name, String(value));
    const search = text.toString();
    return base + path + (search ? `?${search}` : "");
  }

  private question(given: Given[], request: PredictRequest): RequestInit {
    const rows = given.flatMap((one) => one.rows ?? []);
    if (rows.length > 0) return post({ embeddings: rows, request });
    const form = new FormData();
    form.append("request", JSON.stringify(request));
    for (const one of given) if (one.file) form.append("image", one.file, one.name);
    return { method: "POST", body: form };
  }

  private async json<T>(path: string, init: RequestInit = {}): Promise<T> {
    return (await this.fetch(path, init)).json() as Promise<T>;
  }

  private async fetch(path: string, init: RequestInit, refused = false): Promise<Response> {
    const headers = new Headers(init.headers);
    const token = sessionStorage.getItem(TOKEN);
    if (token) headers.set("Authorization", `Bearer ${token}`);
    let response: Response;
    try {
      response = await fetch(path, { ...init, headers });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Problem("The server does not answer. Is it still running?", 0, "unreachable");
    }
    if (response.ok) return response;
    if (response.status === 401) {
      // Calls that are refused together ask once; a call that used an older token tries the newer one first.
      const newer = sessionStorage.getItem(TOKEN);
      if (newer !== token && newer) return this.fetch(path, init, true);
      this.asking ??= this.askForToken(refused || token !== null).finally(() => (this.asking = null));
      const given = await this.asking;
      if (given) {
        sessionStorage.setItem(TOKEN, given);
        return this.fetch(path, init, true);
      }
    }
    throw await problem(response);
  }
}

function post(body: unknown): RequestInit {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

async function problem(response: Response): Promise<Problem> {
  let detail = "";
  let kind = "";
  try {
    const body = (await response.json()) as { detail?: string; title?: string; kind?: string };
    detail = body.detail ?? body.title ?? "";
    kind = body.kind ?? "";
  } catch {
    // Not JSON: a proxy may stand between.
  }
  const wait = response.headers.get("Retry-After");
  if (response.status === 503 && wait) detail += ` Try again in ${wait} s.`;
  return new Problem(detail || `The server answered ${response.status} ${response.statusText}.`, response.status, kind);
}

/** What to tell a person about a failure. */
export function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
