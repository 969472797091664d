// Teaches a class: a name, samples, its place; then what it was before and is now.

import { Problem, said } from "../api";
import type { App, Panel } from "../app";
import { fill, h, icon, mark } from "../dom";
import { classSearch, wayTo } from "../parts/classes";
import { Combobox } from "../parts/combobox";
import { embeddingLength, Intake, thumb } from "../parts/intake";
import { notice } from "../parts/notices";
import { ParentPicker } from "../parts/parents";
import { sharesBar } from "../parts/shares";
import { scaledToFit } from "../scale";
import type { ClassEntry, ClassState, Given, Lesson } from "../types";
import { KIND, many } from "../words";
import { nearList } from "./explore";

export class Teach implements Panel {
  readonly element = h("section", { class: "page", "aria-label": "Teach" });
  private readonly result = h("div", { class: "result", tabindex: -1 });
  private readonly about = h("div", { class: "about-name" });
  private readonly tray = h("ul", { class: "thumbs thumbs-edit", "aria-label": "Samples" });
  private readonly button = h("button", { type: "submit", class: "button button-main button-wide" }, "Teach");
  private readonly message = h("p", { class: "bad", role: "alert" });
  private readonly place = h("div", {});
  private name!: Combobox;
  private parents!: ParentPicker;
  private intake!: Intake;
  private unknown!: HTMLInputElement;
  private ifTaught: "add" | "replace" = "add";
  private known: ClassEntry | null = null;
  private given: Given[] = [];
  private looking = 0;

  constructor(private readonly app: App) {
    this.reset();
  }

  show(): void {
    document.title = `Teach · ${this.app.card.name} · gpn`;
    this.refresh();
  }

  refresh(): void {
    if (this.name.value.trim()) void this.look(this.name.value);
  }

  /** Begins with what is known already. */
  start(start: { given?: Given[]; name?: string; parent?: string }): void {
    fill(this.result);
    if (start.given && start.given.length > 0) this.take(start.given);
    if (start.name !== undefined) {
      this.name.value = start.name;
      void this.look(start.name);
    }
    if (start.parent !== undefined) {
      this.name.value = "";
      void this.look("");
      this.parents.set([{ id: start.parent, name: this.app.store.name(start.parent) }]);
    }
    if (start.name === undefined) this.name.input.focus({ preventScroll: true });
  }

  reset(): void {
    const { app } = this;
    this.given = [];
    this.known = null;
    const numbers = embeddingLength(app.card) > 0;
    this.name = new Combobox({
      label: "What is it?",
      labelled: true,
      placeholder: "A name, new or known",
      id: "teach-name",
      keep: true,
      typed: (text) => void this.look(text),
      search: classSearch(
        app.api,
        (id) => app.store.name(id),
        (entry) => {
          this.name.value = entry.name;
          void this.look(entry.name);
        },
        { limit: 6, extra: (text, entries) => text && !entries.some((entry) => same(entry, text)) && `Enter keeps “${text}” as a new class.` },
      ),
      enter: () => this.name.close(),
    });
    this.parents = new ParentPicker(app, "It is a kind of", "Its relatives lend it what they know. Several are possible.");
    this.unknown = h("input", {
      type: "checkbox",
      id: "unknown-place",
      onChange: () => {
        this.parents.element.hidden = this.unknown.checked;
      },
    });
    this.intake = new Intake(app.card, {
      title: "Drop photos of it here",
      several: true,
      take: (given) => this.take(given),
      fail: (message) => this.say(message),
    });
    fill(
      this.place,
      this.parents.element,
      h("label", { class: "check", for: "unknown-place" }, this.unknown, h("span", {}, "I do not know: link it to the classes it looks like")),
    );
    fill(
      this.element,
      h("header", {}, h("h1", { tabindex: -1 }, "Teach a class"), h("p", { class: "lead" }, numbers ? "A few embeddings are enough: relatives in the taxonomy help out. Nothing is trained; it takes a moment." : "Three photos are a good start: relatives in the taxonomy help out. Nothing is trained; it takes a moment.")),
      h(
        "form",
        {
          class: "stack",
          novalidate: true,
          onSubmit: (event: Event) => {
            event.preventDefault();
            void this.teach();
          },
        },
        h("div", {}, this.name.element, this.about),
        h("div", {}, this.intake.element, this.tray),
        this.place,
        this.message,
        this.button,
      ),
      this.result,
    );
    fill(this.result);
    this.render();
  }

  /** Takes files that were dropped beside the form. */
  drop(files: File[]): void {
    void this.intake.files(files);
  }

  private take(given: Given[]): void {
    const room = this.app.card.limits.samples - this.given.length;
    this.say(given.length > room ? `This server takes ${many(this.app.card.limits.samples, "sample")} at a time; the rest was left out.` : "");
    this.given.push(...given.slice(0, Math.max(0, room)));
    this.render();
  }

  private say(message: string): void {
    this.message.textContent = message;
    this.message.hidden = message === "";
  }

  private render(): void {
    this.message.hidden = this.message.textContent === "";
    this.tray.hidden = this.given.length === 0;
    fill(
      this.tray,
      this.given.map((one, at) =>
        h(
          "li",
          {},
          thumb(one),
          h(
            "button",
            {
              type: "button",
              class: "thumb-close",
              "aria-label": `Remove ${one.name}`,
              onClick: () => {
                this.given.splice(at, 1);
                this.render();
              },
            },
            icon("close"),
          ),
        ),
      ),
    );
    const name = this.name.value.trim();
    const samples = this.given.length > 0 ? ` with ${many(this.given.length, "sample")}` : "";
    this.button.textContent = name ? `Teach ${name}${samples}` : `Teach${samples}`;
  }

  /** Finds out whether the model knows the name. */
  private async look(text: string): Promise<void> {
    const name = text.trim();
    this.looking += 1;
    const looking = this.looking;
    this.render();
    let found: ClassEntry | null = null;
    if (name) {
      try {
        // A name that is being typed is mostly unknown, and a search without a find is no failure.
        found = (await this.app.api.classes({ q: name, limit: 6 })).classes.find((entry) => same(entry, name)) ?? null;
        if (found) await this.app.store.loadPath(found.id);
      } catch {
        // Teaching tells what is wrong; here it only means that no more is known.
      }
      if (looking !== this.looking) return;
    }
    this.known = found;
    this.place.hidden = found !== null;
    fill(this.about, found ? this.aboutKnown(found) : null);
  }

  private aboutKnown(entry: ClassEntry): HTMLElement {
    const path = this.app.store.path(entry.id).map((id) => ({ id, name: this.app.store.name(id) }));
    const choice = (value: "add" | "replace", text: string) =>
      h(
        "label",
        { class: "check" },
        h("input", {
          type: "radio",
          name: "if-taught",
          value,
          checked: this.ifTaught === value,
          onChange: () => {
            this.ifTaught = value;
          },
        }),
        h("span", {}, text),
      );
    return h(
      "div",
      { class: "card card-small" },
      h("p", { class: "known" }, mark(entry.kind), h("span", {}, `The model knows ${entry.name}: ${KIND[entry.kind]}${entry.samples > 0 ? `, ${many(entry.samples, "sample")}` : ""}.`)),
      path.length > 1 && wayTo(path),
      entry.kind === "taught" && h("fieldset", { class: "plain row" }, h("legend", { class: "unseen" }, "With the samples it has"), choice("add", "add to its samples"), choice("replace", "replace them")),
    );
  }

  private async teach(): Promise<void> {
    const { app } = this;
    const name = this.name.value.trim();
    if (!name) {
      this.say("Name the class first.");
      this.name.input.focus();
      return;
    }
    if (this.given.length === 0) {
      this.say(embeddingLength(app.card) > 0 ? "Give at least one embedding of it." : "Give at least one photo of it; three are a good start.");
      return;
    }
    this.say("");
    this.button.disabled = true;
    this.button.textContent = "Teaching…";
    const given = this.given;
    try {
      const unknownPlace = !this.known && this.unknown.checked;
      const lesson = await app.api.teach(
        {
          name: this.known?.id ?? name,
          parents: this.known || unknownPlace ? [] : this.parents.ids(),
          unknownPlace,
          ifTaught: this.known?.kind === "taught" ? this.ifTaught : "refuse",
        },
        await scaledToFit(given, app.card.limits),
      );
      await app.changed(lesson.taught.map((one) => one.id));
      this.told(lesson, given);
    } catch (error) {
      this.say(error instanceof Problem && error.status === 413 ? `${said(error)} Give fewer or smaller photos.` : said(error));
    } finally {
      this.button.disabled = false;
      this.render();
    }
  }

  private told(lesson: Lesson, given: Given[]): void {
    const { app } = this;
    const [taught, states] = [lesson.taught[0], lesson.classes[0]];
    if (!taught || !states) return;
    this.given = [];
    this.name.value = "";
    this.parents.set([]);
    this.unknown.checked = false;
    this.parents.element.hidden = false;
    void this.look("");
    const repeated = taught.repeated > 0 ? ` ${many(taught.repeated, "sample")} it had already.` : "";
    notice(`Taught ${taught.name}.${repeated}`, { action: { label: "Undo", act: () => void app.undo(lesson.version) } });
    void app.graph.reveal(taught.id).catch((error: unknown) => app.fail(error));
    fill(
      this.result,
      h(
        "section",
        { class: "card lesson", "aria-label": "What changed" },
        h("h2", {}, icon("check"), `${taught.name} is taught`),
        h("p", { class: "hint" }, placed(taught.place, (id) => app.store.name(id)), repeated),
        h("div", { class: "thumbs" }, given.slice(0, 12).map((one) => thumb(one))),
        h("div", { class: "before-after" }, stateCard("Before", states.before), stateCard("Now", states.after)),
        h(
          "div",
          { class: "row" },
          h("a", { class: "button", href: `#/explore/${encodeURIComponent(taught.id)}` }, icon("explore"), "Show it in the graph"),
          h("a", { class: "button", href: "#/ask" }, icon("ask"), "Ask about one"),
          h(
            "button",
            {
              type: "button",
              class: "button button-quiet",
              onClick: () => {
                void app.undo(lesson.version).then(() => fill(this.result));
              },
            },
            icon("undo"),
            "Undo",
          ),
        ),
      ),
    );
    this.result.focus({ preventScroll: true });
    this.result.scrollIntoView({ block: "nearest" });
  }
}

function stateCard(title: string, state: ClassState | null): HTMLElement {
  if (!state) return h("section", {}, h("h3", {}, title), h("p", { class: "hint" }, "The model did not know it."));
  return h(
    "section",
    {},
    h("h3", {}, title),
    h("p", { class: "class-facts" }, h("span", { class: `badge badge-${state.class.kind}` }, mark(state.class.kind), KIND[state.class.kind]), state.class.kind !== "untaught" && h("span", {}, many(state.class.samples, "sample"))),
    state.shares && [h("h4", {}, "Whom it hears"), sharesBar(state.shares, state.class.id)],
    state.similar.length > 0 && [h("h4", {}, "Most alike"), h("p", { class: "hint" }, "Distance of the prototypes: the shorter, the more alike."), nearList(state.similar)],
  );
}

function placed(place: Lesson["taught"][number]["place"], name: (id: string) => string): string {
  if (place === "in_graph") return "It stands where the taxonomy has it.";
  if (place === "nearest") return "Its place is not known; it is linked to the classes it looks like.";
  return `It is a kind of ${place.below.map(name).join(" and of ")}.`;
}

function same(entry: ClassEntry, text: string): boolean {
  return entry.id === text || entry.name.toLowerCase() === text.toLowerCase();
}
