// Puts the page together: the model, the graph, the views beside it.

import { Api, said } from "./api";
import type { App, Panel, View } from "./app";
import { byId, fill, h, icon, type IconName, mark } from "./dom";
import { GraphStore } from "./graph/store";
import { GraphView } from "./graph/view";
import { Ask } from "./panels/ask";
import { Explore } from "./panels/explore";
import { HistoryPanel } from "./panels/history";
import { Teach } from "./panels/teach";
import { classSearch } from "./parts/classes";
import { Combobox } from "./parts/combobox";
import { announce, notice } from "./parts/notices";
import { askForToken } from "./parts/token";
import type { Card, Given, ModelList } from "./types";
import { count } from "./words";

const VIEWS: { view: View; label: string; sign: IconName }[] = [
  { view: "explore", label: "Explore", sign: "explore" },
  { view: "ask", label: "Ask", sign: "ask" },
  { view: "teach", label: "Teach", sign: "teach" },
  { view: "history", label: "History", sign: "history" },
];

class Page implements App {
  readonly store: GraphStore;
  readonly graph: GraphView;
  private readonly panels: Record<View, Panel>;
  private readonly explore: Explore;
  private readonly asking: Ask;
  private readonly teaching: Teach;
  private view: View | null = null;
  private shownId: string | undefined;
  private readonly links = new Map<View, HTMLAnchorElement>();
  private readonly legend = h("ul", { class: "legend", "aria-label": "Kinds of classes" });

  constructor(
    readonly api: Api,
    public card: Card,
    models: ModelList,
  ) {
    this.store = new GraphStore(api);
    this.graph = new GraphView(byId("graph"), this.store, { select: (id) => this.go("explore", id), fail: (error) => this.fail(error) });
    byId("graph").append(this.legend);
    this.explore = new Explore(this);
    this.asking = new Ask(this);
    this.teaching = new Teach(this);
    this.panels = { explore: this.explore, ask: this.asking, teach: this.teaching, history: new HistoryPanel(this) };
    const panel = byId("panel");
    for (const one of Object.values(this.panels)) {
      one.element.hidden = true;
      panel.append(one.element);
    }
    this.header(models);
    this.navigation();
    this.dropAnywhere();
    // The address says which view is open: the link for the keyboard must not change it.
    document.querySelector(".skip")?.addEventListener("click", (event) => {
      event.preventDefault();
      byId("panel").focus();
    });
    addEventListener("hashchange", () => this.route(true));
    addEventListener("keydown", (event) => this.shortcut(event));
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && void this.catchUp());
  }

  async begin(): Promise<void> {
    this.renderLegend();
    await this.store.start(this.card.root, this.total());
    this.graph.begin();
    this.route(false);
  }

  go(view: View, id?: string): void {
    const to = id === undefined ? `#/${view}` : `#/${view}/${encodeURIComponent(id)}`;
    if (location.hash === to) this.route(true);
    else location.hash = to;
  }

  async changed(ids: string[]): Promise<void> {
    this.card = await this.api.card();
    await this.store.refresh(ids, this.total());
    this.graph.update();
    this.renderLegend();
    this.renderVersion();
    (byId("class-search") as HTMLInputElement).placeholder = this.searchHint();
    if (this.view === "explore" && this.shownId !== undefined && ids.includes(this.shownId) && !this.store.get(this.shownId)) this.go("explore");
    else if (this.view) this.panels[this.view].refresh();
  }

  fail(error: unknown): void {
    notice(said(error), { bad: true });
  }

  async undo(number: number): Promise<void> {
    try {
      const { undone } = await this.api.undo({ number });
      await this.changed(undone.classes.map((one) => one.id));
      notice(`Undone: ${undone.what} ${undone.classes.map((one) => one.name).slice(0, 3).join(", ")}.`);
    } catch (error) {
      this.fail(error);
    }
  }

  ask(given: Given[], options: { below?: string; version?: number } = {}): void {
    this.go("ask");
    this.asking.start(given, options);
  }

  teach(start: { given?: Given[]; name?: string; parent?: string }): void {
    this.go("teach");
    this.teaching.start(start);
  }

  private total(): number {
    const { training, taught, untaught } = this.card.classes;
    return training + taught + untaught;
  }

  private route(moved: boolean): void {
    const [, word, rest] = /^#\/([a-z]+)(?:\/(.*))?$/.exec(location.hash) ?? [];
    const known = VIEWS.find(({ view }) => view === word && (view !== "teach" || this.card.may_write));
    const view = known?.view ?? "explore";
    let id: string | undefined;
    try {
      id = rest ? decodeURIComponent(rest) : undefined;
    } catch {
      id = undefined;
    }
    const same = view === this.view && id === this.shownId;
    this.view = view;
    this.shownId = id;
    byId("main").dataset.view = view;
    byId("main").toggleAttribute("data-class", view === "explore" && id !== undefined);
    for (const [name, link] of this.links) {
      if (name === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    for (const [name, panel] of Object.entries(this.panels)) panel.element.hidden = name !== view;
    this.panels[view].show(id);
    if (view !== "explore" || id === undefined) this.graph.deselect();
    // The way to an answer stays in sight with the answer, and with the class that it leads to.
    if (view !== "ask" && !(view === "explore" && id !== undefined && this.graph.isOnWay(id))) void this.graph.highlight([], 0);
    if (!moved || same) return;
    byId("panel").scrollTop = 0;
    (byId("class-search") as HTMLInputElement).value = "";
    // The focus goes along, so that the next key and the screen reader are where the eyes are; not while one explores the graph.
    const title = this.panels[view].element.querySelector<HTMLElement>("h1");
    if (document.activeElement?.closest(".graph, .search, .page") === null) title?.focus({ preventScroll: true });
    announce(VIEWS.find((one) => one.view === view)?.label ?? "");
  }

  private header(models: ModelList): void {
    const box = new Combobox({
      label: "Search classes",
      placeholder: this.searchHint(),
      icon: "search",
      id: "class-search",
      search: classSearch(this.api, (id) => this.store.name(id), (entry) => this.go("explore", entry.id), { limit: 10 }),
    });
    fill(byId("search"), box.element, h("kbd", { class: "key", "aria-hidden": "true" }, "/"));
    const theme = h("button", { type: "button", class: "round", onClick: () => turnTheme(theme) });
    showTheme(theme);
    fill(byId("tools"), theme);
    if (models.models.length > 1) {
      const choose = h(
        "select",
        {
          class: "field field-small",
          "aria-label": "Model",
          onChange: () => {
            this.api.model = choose.value;
            location.hash = "#/explore";
            location.reload();
          },
        },
        models.models.map((model) => h("option", { value: model.default ? "" : model.name }, model.name)),
      );
      choose.value = this.api.model;
      fill(byId("model"), choose, h("span", { class: "version", id: "version-now" }));
    } else fill(byId("model"), h("span", { class: "model-name" }, this.card.name), h("a", { class: "version", id: "version-now", href: "#/history" }));
    this.renderVersion();
  }

  private searchHint(): string {
    return `Search ${count(this.total())} classes`;
  }

  private renderVersion(): void {
    const chip = byId("version-now");
    chip.textContent = `v${this.card.version}`;
    chip.title = `Version ${this.card.version}`;
  }

  private renderLegend(): void {
    const { classes } = this.card;
    fill(
      this.legend,
      h("li", {}, mark("training"), "trained"),
      h("li", {}, mark("taught"), "taught"),
      classes.untaught > 0 && h("li", {}, mark("untaught"), "not taught yet"),
    );
  }

  private navigation(): void {
    for (const { view, label, sign } of VIEWS) {
      if (view === "teach" && !this.card.may_write) continue;
      const link = h("a", { class: "view", href: `#/${view}` }, icon(sign), h("span", {}, label));
      this.links.set(view, link);
      byId("views").append(link);
    }
  }

  /** Samples may be dropped wherever one likes: on the form that is open, otherwise they are asked about. */
  private dropAnywhere(): void {
    let inside = 0;
    const carries = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const mark = (on: boolean) => document.documentElement.classList.toggle("dragging", on);
    addEventListener("dragenter", (event) => {
      if (!carries(event)) return;
      inside += 1;
      mark(true);
    });
    addEventListener("dragleave", () => {
      inside = Math.max(0, inside - 1);
      mark(inside > 0);
    });
    addEventListener("dragover", (event) => carries(event) && event.preventDefault());
    // Forms stop the event: the mark goes in the capturing phase.
    addEventListener(
      "drop",
      () => {
        inside = 0;
        mark(false);
      },
      true,
    );
    addEventListener("drop", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      const files = [...(event.dataTransfer?.files ?? [])];
      if (this.view === "teach") this.teaching.drop(files);
      else {
        this.go("ask");
        this.asking.drop(files);
      }
    });
  }

  private shortcut(event: KeyboardEvent): void {
    const field = event.target instanceof Element && event.target.closest("input, textarea, select, dialog");
    if (event.key !== "/" || field || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    byId("class-search").focus();
  }

  /** Others may have taught meanwhile. */
  private async catchUp(): Promise<void> {
    try {
      const card = await this.api.card();
      if (card.version === this.card.version) return;
      const { changes } = await this.api.history({ limit: 50 });
      const newer = changes.filter((change) => change.number > this.card.version);
      await this.changed(newer.flatMap((change) => change.classes.map((one) => one.id)));
    } catch {
      // The next thing that a person does tells what is wrong.
    }
  }
}

type Theme = "auto" | "light" | "dark";

function themeNow(): Theme {
  const set = document.documentElement.dataset.theme;
  return set === "light" || set === "dark" ? set : "auto";
}

function showTheme(button: HTMLButtonElement): void {
  const label = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" }[themeNow()];
  fill(button, icon(themeNow()));
  button.setAttribute("aria-label", label);
  button.title = label;
}

function turnTheme(button: HTMLButtonElement): void {
  const next = ({ auto: "light", light: "dark", dark: "auto" } as const)[themeNow()];
  if (next === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem("gpn-theme");
  } else {
    document.documentElement.dataset.theme = next;
    localStorage.setItem("gpn-theme", next);
  }
  showTheme(button);
}

async function begin(): Promise<void> {
  const api = new Api(askForToken);
  try {
    const models = await api.models();
    if (!models.models.some((model) => model.name === api.model)) api.model = "";
    await new Page(api, await api.card(), models).begin();
  } catch (error) {
    fill(
      byId("panel"),
      h("section", { class: "page" }, h("h1", {}, "This did not work"), h("p", { class: "bad", role: "alert" }, said(error)), h("button", { type: "button", class: "button button-main", onClick: () => location.reload() }, "Try again")),
    );
  }
}

void begin();
