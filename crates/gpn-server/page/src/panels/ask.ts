// Asks what a sample is: as deep as sure, the ranking, and why.

import { said } from "../api";
import type { App, Panel } from "../app";
import { fill, h, icon } from "../dom";
import { drawnExample, madeUpExample } from "../example";
import { embeddingLength, Intake, thumb } from "../parts/intake";
import { announce } from "../parts/notices";
import { type Step, steps } from "../sure";
import { scaledToFit } from "../scale";
import type { Among, Explanation, Given, Likely, Predictions, Sure } from "../types";
import { many, percent } from "../words";
import { comparison, ladder, ranking, verdict, why } from "./answer";

/** Classes that are asked for; their probabilities add up along the way to the top. */
const TOP = 200;
/** Of these the classes above are fetched, where they are not known yet. */
const PLACED = 24;
/** Milliseconds that the slider rests before the model is asked. */
const SETTLES = 90;
const CONFIDENCE = "gpn-confidence";

interface Asked {
  given: Given;
  answer?: Explanation;
  /** The deepest class that is sure enough; null where none below the top is. */
  sure?: Sure | null;
  way?: Step[];
  error?: string;
}

export class Ask implements Panel {
  readonly element = h("section", { class: "page", "aria-label": "Ask" });
  private readonly body = h("div", { class: "answer" });
  private readonly scope = h("div", { class: "scope" });
  private readonly message = h("p", { class: "bad", role: "alert", hidden: true });
  private intake!: Intake;
  private asked: Asked[] = [];
  private active = 0;
  private round = 0;
  private among: Among = "all";
  private confidence = Number(localStorage.getItem(CONFIDENCE)) || 0.8;
  private version: number | null = null;
  private listed = 5;

  constructor(private readonly app: App) {
    this.reset();
  }

  show(id?: string): void {
    this.renderScope();
    document.title = `Ask · ${this.app.card.name} · gpn`;
    if (id === "example" && this.asked.length === 0) void this.example();
    // The model may have changed while the answer was out of sight.
    const answered = this.asked[this.active]?.answer?.version;
    if (answered !== undefined && answered !== this.app.card.version) this.refresh();
    else this.highlight();
  }

  refresh(): void {
    this.renderScope();
    if (this.asked.length > 0) void this.askAll();
  }

  reset(): void {
    const { app } = this;
    const numbers = embeddingLength(app.card) > 0;
    this.asked = [];
    this.among = "all";
    this.version = null;
    this.intake = new Intake(app.card, {
      title: "Drop a photo here",
      several: true,
      extra: h("button", { type: "button", class: "button intake-extra", onClick: () => void this.example() }, icon("spark"), "Try an example"),
      take: (given) => this.take(given),
      fail: (message) => this.say(message),
    });
    fill(
      this.element,
      h("header", {}, h("h1", { tabindex: -1 }, "What is it?"), h("p", { class: "lead" }, numbers ? "Give an embedding and see what the model takes it for, how sure it is, and why." : "Give a photo and see what the model takes it for, how sure it is, and why.")),
      this.intake.element,
      this.scope,
      this.message,
      this.body,
    );
    fill(this.body);
    this.renderScope();
  }

  drop(files: File[]): void {
    void this.intake.files(files);
  }

  /** Asks with other settings, and about other samples if there are any. */
  start(given: Given[], options: { below?: string; version?: number } = {}): void {
    if (options.below !== undefined) this.among = { below: options.below };
    if (options.version !== undefined) this.version = options.version;
    this.renderScope();
    if (given.length > 0) this.take(given);
    else if (this.asked.length > 0) void this.askAll();
  }

  private async example(): Promise<void> {
    const length = embeddingLength(this.app.card);
    this.take([length > 0 ? madeUpExample(length) : await drawnExample()]);
  }

  private take(given: Given[]): void {
    this.say("");
    this.asked = given.slice(0, this.app.card.limits.samples).map((one) => ({ given: one }));
    this.active = 0;
    this.listed = 5;
    void this.askAll();
  }

  private say(message: string): void {
    this.message.textContent = message;
    this.message.hidden = message === "";
  }

  private async askAll(): Promise<void> {
    this.round += 1;
    const { round } = this;
    this.element.classList.add("has-answer");
    this.element.setAttribute("aria-busy", "true");
    this.render();
    // The one in sight is answered first.
    const order = [this.active, ...this.asked.keys()].filter((at, place, all) => all.indexOf(at) === place);
    for (const at of order) {
      const asked = this.asked[at];
      if (!asked || round !== this.round) return;
      await this.askOne(asked);
      if (round !== this.round) return;
      this.render();
      if (at === this.active) {
        this.element.removeAttribute("aria-busy");
        this.highlight();
        const best = asked.answer?.prediction.classes[0];
        announce(best ? `Likeliest: ${best.name}, ${percent(best.probability)}.` : (asked.error ?? ""));
      }
    }
  }

  private async askOne(asked: Asked): Promise<void> {
    const { app } = this;
    try {
      const [given] = await scaledToFit([asked.given], app.card.limits);
      const answer = await app.api.explain(given ?? asked.given, { among: this.among, top: TOP, confidence: this.confidence });
      const { classes } = answer.prediction;
      await app.store.loadPaths(classes.slice(0, PLACED).filter((one) => one.probability > 1e-3).map((one) => one.id));
      asked.answer = answer;
      await this.place(asked, answer.prediction.sure);
      delete asked.error;
    } catch (error) {
      delete asked.answer;
      asked.error = said(error);
    }
  }

  /** Finds the way down, through the class that is sure. */
  private async place(asked: Asked, sure: Sure | undefined): Promise<void> {
    const { store } = this.app;
    asked.sure = sure && sure.path.length > 0 ? sure : null;
    if (asked.sure) await store.loadPaths([asked.sure.id]);
    const known = asked.answer?.prediction.classes.filter((one) => store.get(one.id)) ?? [];
    asked.way = steps(known, store, store.root, asked.sure);
  }

  /** Asks again how deep the model is sure, after the slider moved. */
  private async askSure(asked: Asked): Promise<void> {
    const { round, confidence } = this;
    const [given] = await scaledToFit([asked.given], this.app.card.limits);
    const { predictions } = await this.app.api.predict([given ?? asked.given], { among: this.among, top: 1, confidence });
    const answer = predictions[0];
    if (!answer || "error" in answer || round !== this.round || confidence !== this.confidence) return;
    await this.place(asked, answer.sure);
  }

  private highlight(): void {
    const asked = this.asked[this.active];
    const way = asked?.way ?? [];
    const sure = way.findIndex((step) => step.id === asked?.sure?.id);
    void this.app.graph.highlight(way.map((step) => step.id), sure + 1).catch((error: unknown) => this.app.fail(error));
  }

  private renderScope(): void {
    const { app } = this;
    const below = typeof this.among === "object" ? this.among.below : null;
    const choose = h(
      "select",
      {
        id: "among",
        class: "field field-small",
        onChange: () => {
          this.among = choose.value === "taught" ? "taught" : choose.value === "below" && below !== null ? { below } : "all";
          this.refresh();
        },
      },
      h("option", { value: "all" }, "all classes"),
      h("option", { value: "taught", disabled: app.card.classes.taught === 0 }, "taught classes only"),
      below !== null && h("option", { value: "below" }, `below ${app.store.name(below)}`),
    );
    choose.value = below !== null ? "below" : String(this.among);
    fill(this.scope, h("label", { for: "among", class: "faint" }, "Choose from"), choose);
  }

  private render(): void {
    const { app } = this;
    const asked = this.asked[this.active];
    if (!asked) return;
    const strip =
      this.asked.length > 1 &&
      h(
        "ul",
        { class: "strip", "aria-label": "Samples" },
        this.asked.map((one, at) =>
          h(
            "li",
            {},
            h(
              "button",
              {
                type: "button",
                class: "strip-item",
                "aria-pressed": String(at === this.active),
                onClick: () => {
                  this.active = at;
                  this.render();
                  this.highlight();
                },
              },
              thumb(one.given),
              h("span", { class: "thumb-note" }, one.answer?.prediction.classes[0]?.name ?? (one.error ? "not read" : "…")),
            ),
          ),
        ),
      );
    const { answer } = asked;
    if (!answer || !asked.way) {
      fill(this.body, strip, h("div", { class: "verdict" }, thumb(asked.given), h("div", {}, asked.error ? h("p", { class: "bad" }, asked.error) : h("p", { class: "waiting" }, "Looking…"))));
      return;
    }
    const { classes } = answer.prediction;
    const sentence = h("div", {});
    const down = h("div", {});
    const root = app.store.root;
    const showSure = () => {
      const way = asked.way ?? [];
      const sure = asked.sure ?? null;
      fill(sentence, verdict(asked.given, sure, classes[0], this.confidence, answer.prediction.unknown?.is_unknown ?? false));
      fill(down, ladder(way, way.findIndex((step) => step.id === sure?.id), root));
    };
    showSure();
    const best = classes[0];
    fill(
      this.body,
      strip,
      sentence,
      this.slider(async () => {
        await this.askSure(asked);
        showSure();
        if (asked === this.asked[this.active]) this.highlight();
      }),
      down,
      this.ranked(classes),
      h(
        "div",
        { class: "row" },
        app.card.may_write && h("button", { type: "button", class: "button", onClick: () => app.teach({ given: [asked.given] }) }, icon("teach"), "None of these? Teach it"),
        best && h("a", { class: "button", href: `#/explore/${encodeURIComponent(best.id)}` }, icon("explore"), "Show in the graph"),
      ),
      best && why(app, answer, best),
      this.compare(asked, classes),
    );
  }

  private ranked(classes: Likely[]): HTMLElement {
    const shown = classes.slice(0, this.listed);
    return h(
      "section",
      { class: "block" },
      h("h2", {}, "The ranking"),
      ranking(shown),
      classes.length > shown.length &&
        h(
          "button",
          {
            type: "button",
            class: "button button-quiet button-small",
            onClick: () => {
              this.listed += 10;
              this.render();
            },
          },
          "More classes",
        ),
    );
  }

  private slider(changed: () => Promise<void>): HTMLElement {
    let timer = 0;
    const value = h("output", { class: "number", for: "confidence" }, percent(this.confidence));
    const range = h("input", {
      type: "range",
      id: "confidence",
      min: 50,
      max: 99,
      step: 1,
      value: Math.round(this.confidence * 100),
      onInput: () => {
        this.confidence = Number(range.value) / 100;
        value.textContent = percent(this.confidence);
        range.style.setProperty("--at", `${((Number(range.value) - 50) / 49) * 100}%`);
        localStorage.setItem(CONFIDENCE, String(this.confidence));
        clearTimeout(timer);
        timer = window.setTimeout(() => void changed().catch((error: unknown) => this.app.fail(error)), SETTLES);
      },
    });
    range.style.setProperty("--at", `${((Number(range.value) - 50) / 49) * 100}%`);
    return h("div", { class: "slider" }, h("label", { for: "confidence" }, "How sure should it be?"), value, range);
  }

  private compare(asked: Asked, now: Likely[]): HTMLElement {
    const { app } = this;
    const out = h("div", { "aria-live": "polite" });
    const versions = versionsBefore(app.card.version);
    const run = async (version: number) => {
      this.version = version;
      fill(out, h("p", { class: "waiting" }, `Asking version ${version}…`));
      try {
        const [given] = await scaledToFit([asked.given], app.card.limits);
        const old: Predictions = await app.api.predict([given ?? asked.given], { among: this.among, top: TOP }, version);
        const answer = old.predictions[0];
        if (!answer || "error" in answer) throw new Error(answer?.error ?? "there is no answer");
        fill(out, comparison(answer.classes, now, old.version, app.card.version));
      } catch (error) {
        fill(out, h("p", { class: "bad" }, said(error)));
      }
    };
    const choose = h(
      "select",
      { id: "version", class: "field field-small", onChange: () => choose.value !== "" && void run(Number(choose.value)) },
      h("option", { value: "" }, "a version"),
      versions.map((version) => h("option", { value: version }, version === 0 ? "0, as it was trained" : String(version))),
    );
    if (this.version !== null && versions.includes(this.version)) {
      choose.value = String(this.version);
      void run(this.version);
    }
    return h(
      "section",
      { class: "block" },
      h("h2", {}, "Compare versions"),
      versions.length === 0
        ? h("p", { class: "hint" }, "There is only the model as it was trained. After teaching, you can ask both.")
        : [h("div", { class: "scope" }, h("label", { for: "version", class: "faint" }, `Ask the same of ${many(versions.length, "older version")}:`), choose), out],
    );
  }
}

/** The last versions before the present one, and the first. */
function versionsBefore(version: number): number[] {
  const last = Array.from({ length: Math.min(30, version) }, (_, at) => version - 1 - at);
  return last.includes(0) || version === 0 ? last : [...last, 0];
}
