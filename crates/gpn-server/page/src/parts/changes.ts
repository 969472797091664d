// Changes of the model, as lists.

import type { App } from "../app";
import { h, icon } from "../dom";
import type { HistoryEntry } from "../types";
import { ago, many } from "../words";
import { classLink } from "./classes";

export function changeList(app: App, changes: HistoryEntry[], detailed: boolean): HTMLElement {
  return h("ol", { class: "changes" }, changes.map((change) => changeRow(app, change, detailed)));
}

function changeRow(app: App, change: HistoryEntry, detailed: boolean): HTMLElement {
  const stands = change.undone_by === null && change.what !== "undo";
  return h(
    "li",
    { class: change.undone_by === null ? "change" : "change change-undone" },
    h("span", { class: "change-number", title: `Version ${change.number}` }, change.number),
    h(
      "div",
      { class: "change-body" },
      h("p", { class: "change-what" }, ...sentence(change)),
      h(
        "p",
        { class: "hint" },
        samples(change),
        h("time", { datetime: change.at, title: new Date(change.at).toLocaleString("en") }, ago(change.at)),
        change.who === "local" ? "" : ` · ${change.who}`,
        change.undone_by === null ? "" : ` · undone by change ${change.undone_by}`,
      ),
    ),
    h(
      "div",
      { class: "change-acts" },
      detailed &&
        h("button", { type: "button", class: "button button-small", title: "Ask the version before it and the present one about the same sample", onClick: () => app.ask([], { version: change.number - 1 }) }, icon("compare"), "Compare"),
      stands &&
        app.card.may_write &&
        h("button", { type: "button", class: "button button-small", "aria-label": `Undo change ${change.number}`, onClick: () => void app.undo(change.number) }, icon("undo"), "Undo"),
    ),
  );
}

function sentence(change: HistoryEntry): (Node | string)[] {
  const shown = change.classes.slice(0, 3);
  const names: (Node | string)[] = [];
  shown.forEach((one, at) => names.push(at > 0 ? ", " : "", classLink(one)));
  if (change.classes.length > shown.length) names.push(` and ${change.classes.length - shown.length} more`);
  switch (change.what) {
    case "teach":
      return ["Taught ", ...names];
    case "forget":
      return ["Forgot ", ...names];
    case "move":
      return ["Moved ", ...names];
    case "rename":
      return ["Renamed ", ...names];
    case "undo":
      return [`Undid change ${change.undone ?? "?"}: `, ...names];
    default:
      return [`${change.what} `, ...names];
  }
}

/** How many samples a class had and has, where one class was taught. */
function samples(change: HistoryEntry): string {
  const [first, second] = change.classes;
  return change.what === "teach" && first && !second ? `${first.samples_before} → ${many(first.samples_after, "sample")} · ` : "";
}
