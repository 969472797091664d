// Elements from code: the page has no inline script or style, so all of it is made here.

export type Child = Node | string | number | null | undefined | false | Child[];

type Listener = (event: never) => void;
type Prop = string | number | boolean | null | undefined | Listener | Record<string, string>;

/** Makes an element. `on…` are listeners, `vars` are CSS variables, `true` is an attribute without value. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Record<string, Prop> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2).toLowerCase(), value as EventListener);
    else if (typeof value === "object") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "value") (element as HTMLInputElement).value = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) add(parent, child);
    else if (child instanceof Node) parent.appendChild(child);
    else if (child !== null && child !== undefined && child !== false) parent.appendChild(document.createTextNode(String(child)));
  }
}

/** Replaces all that an element holds. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  add(parent, children);
}

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found;
}

let made = 0;
/** An id for an element that another one points to. */
export function newId(word: string): string {
  made += 1;
  return `${word}-${made}`;
}

const SVG = "http://www.w3.org/2000/svg";

const PATHS = {
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14M20 20l-4-4",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V5a1 1 0 0 1 1-1h4M15 4h4a1 1 0 0 1 1 1v4M20 15v4a1 1 0 0 1-1 1h-4M9 20H5a1 1 0 0 1-1-1v-4",
  light: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8M12 2.5v2M12 19.5v2M4.6 4.6L6 6M18 18l1.4 1.4M2.5 12h2M19.5 12h2M4.6 19.4L6 18M18 6l1.4-1.4",
  dark: "M20 14.2A8 8 0 0 1 9.8 4 8.1 8.1 0 1 0 20 14.2z",
  auto: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 4v16M12 8h3.6M12 12h4.8M12 16h3.6",
  camera: "M4 8h3l2-3h6l2 3h3a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V9a1 1 0 0 1 1-1M12 9.8a3.4 3.4 0 1 1 0 6.8 3.4 3.4 0 0 1 0-6.8",
  image: "M4 5h16a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1M3 16l5-5 5 5 3-3 5 4M15.5 8.6a1.3 1.3 0 1 1 0 2.6 1.3 1.3 0 0 1 0-2.6",
  rows: "M4 6h16M4 12h16M4 18h10",
  undo: "M8 5L4 9l4 4M4 9h10a5 5 0 0 1 0 10h-3",
  history: "M12 4a8 8 0 1 1-7.4 5M4 4.5V9h4.5M12 8v4.5l3 2",
  explore: "M5 12h4M9 12c4 0 3-6 6-6M9 12c4 0 3 6 6 6M17 4a2 2 0 1 1 0 4 2 2 0 0 1 0-4M17 16a2 2 0 1 1 0 4 2 2 0 0 1 0-4M5 10a2 2 0 1 1 0 4 2 2 0 0 1 0-4",
  ask: "M5 5h14a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1h-7l-4 3.5V17H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1M9.8 9.4a2.2 2.2 0 1 1 3 2c-.6.3-.8.6-.8 1.1M12 14.4v.1",
  teach: "M12 4l9 4.5-9 4.5-9-4.5zM6.5 10.5V15c0 1.6 2.5 3 5.5 3s5.5-1.4 5.5-3v-4.5M21 8.5V14",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12M10.5 10.5v5M13.5 10.5v5",
  edit: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  move: "M12 4v16M4 12h16M12 4l-2.5 2.5M12 4l2.5 2.5M12 20l-2.5-2.5M12 20l2.5-2.5M4 12l2.5-2.5M4 12l2.5 2.5M20 12l-2.5-2.5M20 12l-2.5 2.5",
  check: "M5 12.5l4.5 4.5L19 7.5",
  next: "M9 5l7 7-7 7",
  spark: "M12 4l1.8 5.2L19 11l-5.2 1.8L12 18l-1.8-5.2L5 11l5.2-1.8z",
  compare: "M8 4v16M16 4v16M4 9l4-5 4 5M12 15l4 5 4-5",
  target: "M12 5a7 7 0 1 1 0 14 7 7 0 0 1 0-14M12 2.5v5M12 16.5v5M2.5 12h5M16.5 12h5",
  tree: "M5 6h5M10 6v12M10 12h5M10 6h5M10 18h5M17 4.5h2v3h-2zM17 10.5h2v3h-2zM17 16.5h2v3h-2zM3 4.5h2v3H3z",
  radial: "M12 10a2 2 0 1 1 0 4 2 2 0 0 1 0-4M12 10V5M13.8 13l4.2 2.5M10.2 13L6 15.5M12 3a1 1 0 1 1 0 2 1 1 0 0 1 0-2M19 15a1 1 0 1 1 0 2 1 1 0 0 1 0-2M5 15a1 1 0 1 1 0 2 1 1 0 0 1 0-2",
  key: "M8 11a4 4 0 1 1 0 8 4 4 0 0 1 0-8M11 12.5L20 4M16.5 7l2.5 2.5",
} as const;

export type IconName = keyof typeof PATHS;

/** A drawn sign; it says nothing to a screen reader, the text beside it does. */
export function icon(name: IconName): SVGSVGElement {
  return svg("0 0 24 24", "icon", PATHS[name]);
}

const MARKS = { training: "M6 1.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9z", taught: "M6 .6L11.4 6 6 11.4.6 6z", untaught: "M6 2.3a3.7 3.7 0 1 1 0 7.4 3.7 3.7 0 0 1 0-7.4z" };

/** The shape of a kind of class: disc, diamond, ring. */
export function mark(kind: "training" | "taught" | "untaught"): SVGSVGElement {
  return svg("0 0 12 12", `mark mark-${kind}`, MARKS[kind]);
}

function svg(box: string, name: string, path: string): SVGSVGElement {
  const element = document.createElementNS(SVG, "svg");
  element.setAttribute("viewBox", box);
  element.setAttribute("class", name);
  element.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  element.appendChild(line);
  return element;
}
