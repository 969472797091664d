// The way down the taxonomy: how likely a sample is one of the classes at or below each step.

import type { Likely, Named, Sure } from "./types";

/** A step of the way: a class and the probability that the sample is it or below it. */
export interface Step extends Named {
  probability: number;
}

/** What is known of the graph above the candidates. */
export interface Above {
  parents(id: string): string[];
  name(id: string): string;
}

/** The way from the top through the class that is sure, then on to the likeliest class each time. The candidates are the likeliest
 * alone: what they add up to may be less than the whole, which the sure class knows. */
export function steps(candidates: Likely[], graph: Above, root: string, sure: Sure | null): Step[] {
  const through = sure?.path ?? [];
  const mass = new Map<string, number>();
  const below = new Map<string, Set<string>>();
  const names = new Map([...candidates, ...through].map((one) => [one.id, one.name]));
  for (const candidate of candidates) {
    // A class with several parents counts once at each class above it.
    const seen = new Set([candidate.id]);
    const open = [candidate.id];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      mass.set(id, (mass.get(id) ?? 0) + candidate.probability);
      const parents = graph.parents(id);
      // A class whose place is not known is right below the top.
      for (const parent of parents.length > 0 || id === root ? parents : [root]) {
        let known = below.get(parent);
        if (!known) below.set(parent, (known = new Set()));
        known.add(id);
        if (!seen.has(parent)) {
          seen.add(parent);
          open.push(parent);
        }
      }
    }
  }
  const way = [root, ...through.map((one) => one.id)];
  const passed = new Set(way);
  for (let next = likeliest(below.get(way.at(-1) ?? root), mass); next !== undefined && !passed.has(next); next = likeliest(below.get(next), mass)) {
    passed.add(next);
    way.push(next);
  }
  const known = (id: string, at: number): number => {
    if (at === 0) return 1;
    const sum = Math.min(1, mass.get(id) ?? 0);
    if (!sure || at > through.length) return sum;
    return id === sure.id ? sure.probability : Math.max(sum, sure.probability);
  };
  return way.map((id, at) => ({ id, name: names.get(id) ?? graph.name(id), probability: known(id, at) }));
}

function likeliest(ids: Set<string> | undefined, mass: Map<string, number>): string | undefined {
  let found: string | undefined;
  for (const id of [...(ids ?? [])].sort()) if (found === undefined || (mass.get(id) ?? 0) > (mass.get(found) ?? 0)) found = id;
  return found;
}
