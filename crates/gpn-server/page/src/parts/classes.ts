// Classes in lists and sentences.

import type { Api } from "../api";
import { type Child, h, mark } from "../dom";
import type { ClassEntry, Kind, Named } from "../types";
import { count, KIND, many } from "../words";
import type { Choice } from "./combobox";

/** A link to a class. */
export function classLink(named: Named, kind?: Kind): HTMLAnchorElement {
  return h("a", { class: "class-link", href: `#/explore/${encodeURIComponent(named.id)}` }, kind && mark(kind), h("span", {}, named.name));
}

/** The way from the top to a class, as links. */
export function wayTo(path: Named[], current = true): HTMLElement {
  return h(
    "ol",
    { class: "way", "aria-label": "Place in the taxonomy" },
    path.map((step, at) =>
      h("li", {}, at === path.length - 1 && current ? h("span", { "aria-current": "true" }, step.name) : classLink(step)),
    ),
  );
}

/** A search of classes for a combobox. */
export function classSearch(
  api: Api,
  name: (id: string) => string,
  pick: (entry: ClassEntry) => void,
  options: { limit?: number; extra?: (text: string, entries: ClassEntry[]) => Child; empty?: boolean } = {},
) {
  return async (text: string, signal: AbortSignal): Promise<{ choices: Choice[]; note?: Child }> => {
    if (text === "" && !options.empty) return { choices: [] };
    const limit = options.limit ?? 8;
    const found = await api.classes(text ? { q: text, limit } : { limit }, signal);
    const choices = found.classes.map((entry) => ({ content: row(entry, text, name), pick: () => pick(entry) }));
    const extra = options.extra?.(text, found.classes);
    if (extra) return { choices, note: extra };
    if (found.total > found.classes.length) return { choices, note: `${count(found.classes.length)} of ${many(found.total, "class", "classes")}. Type more to narrow it down.` };
    if (choices.length > 0) return { choices };
    const near = found.did_you_mean;
    return { choices, note: near ? `No class of this name. Did you mean ${near}?` : "No class of this name." };
  };
}

function row(entry: ClassEntry, text: string, name: (id: string) => string): Child {
  const above = entry.parents[0];
  return [
    mark(entry.kind),
    h("span", { class: "option-name" }, marked(entry.name, text)),
    h("span", { class: "option-more" }, above !== undefined ? name(above) : KIND[entry.kind], h("span", { class: "unseen" }, `, ${KIND[entry.kind]}`)),
  ];
}

function marked(name: string, text: string): Child {
  const at = text ? name.toLowerCase().indexOf(text.toLowerCase()) : -1;
  if (at < 0) return name;
  return [name.slice(0, at), h("b", {}, name.slice(at, at + text.length)), name.slice(at + text.length)];
}
