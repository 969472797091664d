// The parts of an answer: the verdict, the way down, the ranking, why, and against another version.

import type { App } from "../app";
import { type Child, h, icon, mark } from "../dom";
import { classLink } from "../parts/classes";
import { thumb } from "../parts/intake";
import { keptSamples } from "../parts/samples";
import { sharesBar } from "../parts/shares";
import type { Step } from "../sure";
import type { Explanation, Given, Likely, Sure } from "../types";
import { distance, percent } from "../words";

/** What can be said with the confidence asked for. `sure` is null where that is no class below the top. */
export function verdict(given: Given, sure: Sure | null, best: Likely | undefined, confidence: number, strange: boolean): HTMLElement {
  const exact = sure !== null && sure.id === best?.id;
  const closest = best ? `Closest is ${best.name}, ${percent(best.probability)}.` : "There is no class to choose from.";
  const words: Child = strange
    ? [h("p", { class: "verdict-name" }, "None of these"), h("p", { class: "hint" }, `It is unlike everything that the model knows. ${closest}`)]
    : !sure
      ? [h("p", { class: "verdict-name" }, "It cannot tell"), h("p", { class: "hint" }, `No class is ${percent(confidence)} sure. ${closest}`)]
      : [
          h("p", { class: "verdict-name" }, classLink(sure)),
          h("p", { class: "hint" }, `${percent(sure.probability)} sure, estimated with care.`, !exact && best && ` Likeliest in detail: ${best.name}, ${percent(best.probability)}.`),
        ];
  return h(
    "div",
    { class: "verdict" },
    thumb(given),
    h(
      "div",
      { class: "verdict-words" },
      h("p", { class: "eyebrow" }, strange ? "Strange" : !sure ? "Not sure" : exact ? "It is" : "Some kind of"),
      words,
    ),
  );
}

/** The way from the top down, with the probability left at every step. */
export function ladder(way: Step[], at: number, root: string): HTMLElement {
  return h(
    "ol",
    { class: "ladder", "aria-label": "The way down the taxonomy" },
    way.map((step, place) =>
      h(
        "li",
        { class: place <= at ? "sure" : "unsure", vars: { "--w": `${step.probability * 100}%` } },
        h("span", { class: "ladder-dot" }, place === at && icon("check")),
        h("span", { class: "ladder-name" }, step.id === root ? h("span", {}, step.name) : classLink(step), place === at && h("span", { class: "unseen" }, ", as deep as sure")),
        h("span", { class: "ladder-bar" }),
        h("span", { class: "number" }, percent(step.probability)),
      ),
    ),
  );
}

export function ranking(classes: Likely[]): HTMLElement {
  return h(
    "ol",
    { class: "ranking" },
    classes.map((one) =>
      h(
        "li",
        { vars: { "--w": `${one.probability * 100}%` } },
        h("span", { class: "ranking-name" }, classLink(one)),
        h("span", { class: "number", title: `squared distance ${distance(one.distance)}` }, percent(one.probability)),
        h("span", { class: "ranking-bar" }),
      ),
    ),
  );
}

/** What shaped the likeliest class, and its samples that are nearest. */
export function why(app: App, answer: Explanation, best: Likely): HTMLElement {
  const shares = answer.prediction.shaped_by;
  return h(
    "section",
    { class: "block why" },
    h("h2", {}, `Why ${best.name}`),
    h("p", { class: "hint" }, `Its prototype is the nearest, at a squared distance of ${distance(best.distance)}. `, shares && shares.length > 0 && "This is what shaped the prototype:"),
    shares && shares.length > 0 && sharesBar(shares, best.id),
    answer.nearest_samples.length > 0
      ? [h("h3", {}, "Samples it was taught that are nearest"), keptSamples(app.api, best.id, answer.nearest_samples, (sample) => distance(sample.distance ?? 0))]
      : h("p", { class: "hint" }, mark("training"), " It was learned in training, whose samples the server does not have."),
  );
}

/** The same question to an older version and to the present one. */
export function comparison(old: Likely[], now: Likely[], oldVersion: number, version: number): HTMLElement {
  const ids = [...new Set([...now.slice(0, 4), ...old.slice(0, 4)].map((one) => one.id))];
  const of = (list: Likely[], id: string) => list.find((one) => one.id === id);
  const cell = (one: Likely | undefined, first: boolean) =>
    h("td", { class: first ? "number first" : "number" }, one ? percent(one.probability) : h("span", { class: "faint" }, "not known"));
  return h(
    "table",
    { class: "compare" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Class"), h("th", { scope: "col", class: "number" }, `v${oldVersion}`), h("th", { scope: "col", class: "number" }, `v${version}, now`), h("th", { scope: "col", class: "number" }, "Change"))),
    h(
      "tbody",
      {},
      ids.map((id) => {
        const [before, after] = [of(old, id), of(now, id)];
        const change = (after?.probability ?? 0) - (before?.probability ?? 0);
        const points = `${change < 0 ? "−" : "+"}${Math.abs(change * 100).toFixed(1)}`;
        return h(
          "tr",
          {},
          h("th", { scope: "row" }, classLink({ id, name: after?.name ?? before?.name ?? id })),
          cell(before, old[0]?.id === id),
          cell(after, now[0]?.id === id),
          h("td", { class: `number ${Math.abs(change) < 0.0005 ? "faint" : change > 0 ? "up" : "down"}` }, Math.abs(change) < 0.0005 ? "0" : points),
        );
      }),
    ),
  );
}
