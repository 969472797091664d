// Whom a class heard: one bar, split by shares, with a legend.

import { h } from "../dom";
import type { Share } from "../types";
import { percent, RELATION } from "../words";
import { classLink } from "./classes";

/** Shares that stand alone; the rest is one. */
const MOST = 6;

export function sharesBar(shares: Share[], own: string): HTMLElement {
  const sorted = [...shares].sort((a, b) => b.share - a.share);
  const shown = sorted.slice(0, sorted.length > MOST + 1 ? MOST : sorted.length);
  const rest = sorted.slice(shown.length).reduce((sum, share) => sum + share.share, 0);
  const seen = new Map<string, number>();
  const parts = shown.map((share) => {
    const nth = seen.get(share.relation) ?? 0;
    seen.set(share.relation, nth + 1);
    return { share, tone: `tone-${share.relation in RELATION ? share.relation : "further"}`, fade: String(Math.max(0.45, 1 - nth * 0.2)) };
  });
  const text = shown.map((share) => `${share.relation === "own" ? "own samples" : share.name || "all"} ${percent(share.share)}`).join(", ");
  return h(
    "figure",
    { class: "shares" },
    h(
      "div",
      { class: "shares-bar", role: "img", "aria-label": `Shares: ${text}` },
      parts.map(({ share, tone, fade }) => h("span", { class: tone, vars: { "--share": String(share.share), "--fade": fade } })),
      rest > 0 && h("span", { class: "tone-rest", vars: { "--share": String(rest) } }),
    ),
    h(
      "ul",
      { class: "shares-legend" },
      parts.map(({ share, tone, fade }) =>
        h(
          "li",
          {},
          h("span", { class: `swatch ${tone}`, vars: { "--fade": fade } }),
          h(
            "span",
            { class: "shares-name" },
            share.relation === "own"
              ? "its own samples"
              : share.id && share.id !== own
                ? [classLink(share), h("span", { class: "faint" }, RELATION[share.relation] ?? share.relation)]
                : (RELATION[share.relation] ?? share.relation),
          ),
          h("span", { class: "number" }, (share.weight < 0 ? "−" : "") + percent(share.share)),
        ),
      ),
      rest > 0 &&
        h(
          "li",
          {},
          h("span", { class: "swatch tone-rest" }),
          h("span", { class: "shares-name" }, `${sorted.length - shown.length} others`),
          h("span", { class: "number" }, percent(rest)),
        ),
    ),
  );
}
