// The model at a glance, or one class of it.

import type { App, Panel } from "../app";
import { fill, h, icon, mark } from "../dom";
import { changeList } from "../parts/changes";
import { classLink, wayTo } from "../parts/classes";
import { embeddingLength } from "../parts/intake";
import { notice } from "../parts/notices";
import { keptSamples } from "../parts/samples";
import { sharesBar } from "../parts/shares";
import { said } from "../api";
import type { ClassPage, Kind, Named } from "../types";
import { count, distance, KIND, many } from "../words";
import { editPlace } from "./place";

/** Relatives that are listed before "and more". */
const LISTED = 18;

export class Explore implements Panel {
  readonly element = h("section", { class: "page", "aria-label": "Explore" });
  private id: string | null = null;
  private asked = 0;

  constructor(private readonly app: App) {}

  show(id?: string): void {
    this.id = id ?? null;
    this.refresh();
  }

  reset(): void {
    this.id = null;
  }

  refresh(): void {
    this.asked += 1;
    if (this.id === null) void this.overview(this.asked);
    else void this.class(this.id, this.asked);
  }

  private async overview(asked: number): Promise<void> {
    const { app } = this;
    const { card } = app;
    document.title = `${card.name} · gpn`;
    const total = card.classes.training + card.classes.taught + card.classes.untaught;
    const thing = embeddingLength(card) > 0 ? "an embedding" : "a photo";
    const things = embeddingLength(card) > 0 ? "embeddings" : "photos";
    const taught = h("div", { class: "block" });
    fill(
      this.element,
      h(
        "header",
        { class: "hero" },
        h("p", { class: "eyebrow" }, `Model ${card.name} · version ${card.version}`),
        h("h1", { tabindex: -1 }, "Classes that learn from their relatives"),
        h(
          "p",
          { class: "lead" },
          `This model knows ${many(card.classes.training, "class", "classes")} from training, and how ${count(total)} are related. Ask it what ${thing} shows`,
          card.may_write ? `, or teach it a class of your own with three ${things}: the relatives help.` : ".",
        ),
        h(
          "div",
          { class: "row" },
          h("a", { class: "button button-main", href: "#/ask" }, icon("ask"), `Ask about ${thing}`),
          card.may_write && h("a", { class: "button", href: "#/teach" }, icon("teach"), "Teach a class"),
        ),
      ),
      h(
        "dl",
        { class: "figures" },
        this.figure("training", card.classes.training, "trained"),
        this.figure("taught", card.classes.taught, "taught here"),
        this.figure("untaught", card.classes.untaught, "known by place only"),
      ),
      taught,
      h(
        "details",
        { class: "block fold" },
        h("summary", {}, "About the model"),
        h(
          "dl",
          { class: "facts" },
          fact("Method", card.method),
          fact("Network", card.backbone),
          fact("Takes", "image" in card.input ? `images, brought to ${card.input.image.width} × ${card.input.image.height}` : `embeddings of ${many(card.input.embedding.len, "number")}`),
          fact("Keeps images", card.keep_images ? "yes, those that are taught" : "no, only what the network makes of them"),
          fact("You are", `${card.who}, may ${card.may_write ? "read and teach" : "read"}`),
          fact("Served by", card.program),
          fact("For programs", h("a", { href: "/api/docs" }, "the API")),
        ),
        card.card && h("pre", { class: "card-text", tabindex: 0, "aria-label": "Model card" }, card.card),
      ),
    );
    try {
      const found = await app.api.classes({ kind: "taught", limit: 40 });
      if (asked !== this.asked) return;
      if (found.total === 0) {
        fill(
          taught,
          h("h2", {}, "A minute's tour"),
          h(
            "ol",
            { class: "tour" },
            h("li", {}, h("b", {}, "Look around."), " Click a class to open it, its +number to see what is below. Drag and scroll to move."),
            h("li", {}, h("b", {}, "Ask."), ` Drop ${thing} anywhere on this page. No ${embeddingLength(card) > 0 ? "numbers" : "photo"} at hand? `, h("a", { href: "#/ask/example" }, "Try an example"), "."),
            card.may_write && h("li", {}, h("b", {}, "Teach."), " Name a class, give a few samples, say what it is a kind of. Every change can be undone."),
          ),
        );
        return;
      }
      fill(
        taught,
        h("h2", {}, "Taught here"),
        h(
          "ul",
          { class: "chips" },
          found.classes.map((entry) => h("li", {}, chip(entry, entry.kind, String(entry.samples)))),
        ),
        found.total > found.classes.length && h("p", { class: "hint" }, `and ${count(found.total - found.classes.length)} more`),
      );
    } catch (error) {
      if (asked === this.asked) fill(taught, h("p", { class: "bad" }, said(error)));
    }
  }

  private figure(kind: Kind, value: number, text: string): HTMLElement {
    return h("div", {}, h("dt", {}, mark(kind), text), h("dd", {}, count(value)));
  }

  private async class(id: string, asked: number): Promise<void> {
    let page: ClassPage;
    try {
      page = await this.app.api.class(id);
    } catch (error) {
      if (asked !== this.asked) return;
      fill(this.element, h("h1", { tabindex: -1 }, "No such class"), h("p", { class: "bad" }, said(error)), h("a", { class: "button", href: "#/explore" }, "Back to the model"));
      return;
    }
    if (asked !== this.asked) return;
    const { class: entry } = page;
    document.title = `${entry.name} · gpn`;
    const path = page.path.length > 0 ? page.path : [entry];
    void this.app.graph.reveal(entry.id, path.map((step) => step.id)).catch((error: unknown) => this.app.fail(error));
    const place = h("div", { class: "place" });
    fill(
      this.element,
      h(
        "header",
        { class: "class-head" },
        wayTo(path.slice(0, -1), false),
        h("h1", { tabindex: -1 }, mark(entry.kind), entry.name),
        h(
          "p",
          { class: "class-facts" },
          h("span", { class: `badge badge-${entry.kind}` }, KIND[entry.kind]),
          entry.samples > 0 && h("span", {}, many(entry.samples, "sample")),
          page.children_total > 0 && h("span", {}, `${many(page.children_total, "class", "classes")} below`),
          entry.id !== entry.name && h("code", {}, entry.id),
        ),
        page.description && h("p", { class: "lead" }, page.description),
        this.acts(page, place),
        place,
      ),
      this.prototype(page),
      page.samples.length > 0 &&
        h("section", { class: "block" }, h("h2", {}, "Its samples"), keptSamples(this.app.api, entry.id, page.samples, (sample) => sample.name)),
      this.relatives("Below it", page.children, page.children_total),
      entry.nearest.length > 0 &&
        h(
          "section",
          { class: "block" },
          h("h2", {}, "Linked to"),
          h("p", { class: "hint" }, "Its place is not known; these trained classes are the nearest."),
          h("ul", { class: "chips" }, entry.nearest.map((near) => h("li", {}, chip({ id: near, name: this.app.store.name(near) }, "training")))),
        ),
      this.relatives("Beside it", page.siblings, page.siblings.length),
      page.history.length > 0 && h("section", { class: "block" }, h("h2", {}, "Its history"), changeList(this.app, page.history, false)),
    );
  }

  private acts(page: ClassPage, place: HTMLElement): HTMLElement {
    const { app } = this;
    const { class: entry } = page;
    const writes = app.card.may_write && entry.id !== app.store.root;
    const forget = async () => {
      try {
        const { version } = await app.api.forget(entry.id);
        await app.changed([entry.id]);
        notice(`Forgot ${entry.name}.`, { action: { label: "Undo", act: () => void app.undo(version) } });
      } catch (error) {
        app.fail(error);
      }
    };
    const row = h(
      "div",
      { class: "row" },
      writes && entry.kind !== "training" && h("button", { type: "button", class: "button button-main", onClick: () => app.teach({ name: entry.name }) }, icon("teach"), entry.kind === "taught" ? "Teach more" : "Teach it"),
      app.card.may_write && h("button", { type: "button", class: "button", onClick: () => app.teach({ parent: entry.id }) }, icon("plus"), "New class below"),
      page.children_total > 1 && h("button", { type: "button", class: "button", onClick: () => app.ask([], { below: entry.id }) }, icon("ask"), "Ask among these"),
      page.children_total > 0 &&
        h("button", { type: "button", class: "button", onClick: () => void app.graph.openBelow(entry.id).catch((error: unknown) => app.fail(error)) }, icon("explore"), "Open all below"),
    );
    if (writes && entry.kind === "taught") {
      row.append(h("button", { type: "button", class: "button", onClick: () => editPlace(app, page, place) }, icon("edit"), "Rename or move"));
      row.append(h("button", { type: "button", class: "button button-quiet", onClick: () => void forget() }, icon("trash"), "Forget"));
    }
    return row;
  }

  private prototype(page: ClassPage): HTMLElement | null {
    const { class: entry } = page;
    if (!page.shares && page.similar.length === 0) {
      return entry.kind === "untaught"
        ? h("section", { class: "block note" }, h("p", {}, "The taxonomy knows its place, but nobody has shown it yet. Teach it with a few samples and it can be an answer."))
        : null;
    }
    return h(
      "section",
      { class: "block" },
      page.shares && [h("h2", {}, "Whom it hears"), h("p", { class: "hint" }, "What its prototype is made of."), sharesBar(page.shares, entry.id)],
      page.similar.length > 0 && [h("h2", {}, "Most alike"), h("p", { class: "hint" }, "Distance of the prototypes: the shorter, the more alike."), nearList(page.similar)],
    );
  }

  private relatives(title: string, entries: (Named & { kind: Kind })[], total: number): HTMLElement | null {
    if (entries.length === 0) return null;
    const shown = entries.slice(0, LISTED);
    return h(
      "section",
      { class: "block" },
      h("h2", {}, title, " ", h("span", { class: "faint" }, count(total))),
      h("ul", { class: "chips" }, shown.map((entry) => h("li", {}, chip(entry, entry.kind)))),
      total > shown.length && h("p", { class: "hint" }, `and ${count(total - shown.length)} more; the search finds them`),
    );
  }
}

/** Classes with the distance of their prototypes. */
export function nearList(similar: (Named & { distance: number })[]): HTMLElement {
  const most = Math.max(...similar.map((one) => one.distance), 1e-9);
  return h(
    "ol",
    { class: "near" },
    similar.map((one) =>
      h("li", {}, classLink(one), h("span", { class: "near-bar", vars: { "--w": `${(one.distance / most) * 100}%` } }), h("span", { class: "number", title: "squared distance of the prototypes" }, distance(one.distance))),
    ),
  );
}

function chip(named: Named, kind: Kind, note?: string): HTMLElement {
  return h("a", { class: "chip", href: `#/explore/${encodeURIComponent(named.id)}` }, mark(kind), h("span", {}, named.name), note && h("span", { class: "faint" }, note));
}

function fact(name: string, value: string | Node): HTMLElement {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}
