// A stand-in for `gpn serve`, for work on the page and for tests of what a small model cannot show: large graphs, models of
// embeddings, tokens. It knows no classes by sight: its answers follow from the bytes of a sample alone.
//
//   node mock/server.mjs [--port 8090] [--classes 1000 | --taxonomy FILE.csv] [--embedding 64] [--token T] [--wide]

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; font-src 'self'; " +
  "media-src 'self' blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { html: "text/html; charset=utf-8", css: "text/css", js: "text/javascript", svg: "image/svg+xml", webmanifest: "application/manifest+json" };
const dist = join(dirname(fileURLToPath(import.meta.url)), "..", "dist");

export function start(options = {}) {
  const { port = 0, classes = 200, taxonomy, embedding = 0, token = "", wide = false } = options;
  const graph = new Map();
  const root = "thing";
  const node = (id, name = id) => {
    if (!graph.has(id)) graph.set(id, { id, name, kind: "training", samples: 20, parents: [], children: [], nearest: [], kept: [] });
    return graph.get(id);
  };
  const edge = (parent, child) => {
    node(parent).children.push(child);
    node(child).parents.push(parent);
  };
  node(root);
  if (taxonomy) {
    for (const line of readFileSync(taxonomy, "utf8").trim().split("\n").slice(1)) {
      const [child, parent] = line.split(",");
      edge(parent, child);
      graph.get(child).name = child.replaceAll("-", " ");
    }
  } else {
    const fan = wide ? Math.ceil(classes / 10) : 8;
    let next = 1;
    for (const open = [root]; next < classes; ) {
      const parent = open.shift();
      for (let at = 0; at < fan && next < classes; at += 1, next += 1) {
        const id = `c${next}`;
        edge(parent, id);
        graph.get(id).name = `${["grey", "amber", "tiny", "wild", "still", "round", "pale", "long"][next % 8]} ${["fern", "kite", "otter", "drum", "stone", "lamp", "heron", "spoon", "maple", "boat"][next % 10]} ${next}`;
        open.push(id);
      }
    }
  }
  let at = 0;
  for (const one of graph.values()) if (one.children.length === 0 && (at += 1) % 3 === 0) Object.assign(one, { kind: "untaught", samples: 0 });

  const history = [];
  const images = new Map();
  let samples = 0;
  const version = () => history.length;
  const entry = ({ id, name, kind, samples, parents, nearest }) => ({ id, name, kind, samples, parents, nearest });
  const find = (text) => graph.get(text) ?? [...graph.values()].find((one) => one.name.toLowerCase() === text.toLowerCase());
  const noise = (text) => createHash("sha256").update(text).digest().readUInt32LE() / 2 ** 32;
  const path = (one) => {
    const way = [];
    for (let next = one; next; next = graph.get(next.parents[0])) way.unshift({ id: next.id, name: next.name });
    return way;
  };
  const shares = (one) => {
    const parts = [{ id: one.id, name: one.name, relation: "own", weight: one.kind === "taught" ? 0.55 : 0.8 }];
    for (const id of one.parents) parts.push({ id, name: graph.get(id).name, relation: "parent", weight: 0.25 });
    for (const id of one.children.slice(0, 9)) parts.push({ id, name: graph.get(id).name, relation: "child", weight: 0.1 });
    for (const id of one.nearest) parts.push({ id, name: graph.get(id).name, relation: "nearest", weight: 0.2 });
    parts.push({ id: "", name: "", relation: "all", weight: 0.06 });
    const sum = parts.reduce((total, part) => total + part.weight, 0);
    return parts.map((part) => ({ ...part, share: part.weight / sum }));
  };
  const similar = (one) =>
    graph.size > 20000
      ? []
      : [...graph.values()]
          .filter((other) => other !== one && other.kind !== "untaught" && other.id !== root)
          .map((other) => ({ id: other.id, name: other.name, distance: 1 + 9 * noise(one.id + other.id) + (other.parents[0] === one.parents[0] ? 0 : 6) }))
          .sort((a, b) => a.distance - b.distance)
          .slice(0, 5);
  const state = (one) => ({ class: entry(one), shares: one.kind === "untaught" || one.id === root ? null : shares(one), similar: one.kind === "untaught" ? [] : similar(one) });
  const record = (what, list, undo) => {
    const change = { number: history.length + 1, at: new Date().toISOString(), who: "local", what, undone: null, undone_by: null, classes: list, undo };
    history.push(change);
    return change;
  };
  const told = ({ undo, ...change }) => change;
  const kept = (one) => one.kept.map(({ number, name, at, image }) => ({ number, name, at, image }));

  function predict(file, bytes, request, asOf) {
    const among = request.among ?? "all";
    const below = among.below && new Set();
    if (below) for (const open = [find(among.below).id]; open.length > 0; ) for (const id of graph.get(open.pop()).children) below.add(id), open.push(id);
    const list = [...graph.values()].filter((one) => one.kind !== "untaught" && one.id !== root && (among !== "taught" || one.kind === "taught") && (!below || below.has(one.id)) && (one.since ?? 0) <= asOf);
    const key = createHash("sha256").update(bytes).digest("hex");
    const own = list.find((one) => one.kept.some((sample) => sample.key === key));
    const target = own ?? list[Math.floor(noise(key) * list.length)];
    const near = new Set(target.parents.flatMap((id) => graph.get(id).children));
    const scored = list.slice(0, 4000).concat(target).map((one) => ({ one, distance: one === target ? 1 : near.has(one.id) ? 3 + 2 * noise(key + one.id) : 6 + 4 * noise(key + one.id) }));
    const unique = [...new Map(scored.map((score) => [score.one.id, score])).values()].sort((a, b) => a.distance - b.distance);
    const sum = unique.reduce((total, { distance }) => total + Math.exp(-distance), 0);
    const ranked = unique.slice(0, request.top ?? 5).map(({ one, distance }) => ({ id: one.id, name: one.name, probability: Math.exp(-distance) / sum, distance }));
    const prediction = { file, classes: ranked.map((one) => ({ ...one, path: path(graph.get(one.id)).slice(1) })) };
    if (request.confidence !== undefined) {
      const mass = new Map();
      for (const { one, distance } of unique) for (const { id } of path(one)) mass.set(id, (mass.get(id) ?? 0) + Math.exp(-distance) / sum);
      const deep = [...mass].filter(([, part]) => part >= request.confidence).map(([id, probability]) => ({ id, name: graph.get(id).name, probability, path: path(graph.get(id)).filter((step) => step.id !== root) }));
      prediction.sure = deep.sort((a, b) => b.path.length - a.path.length)[0] ?? { id: root, name: root, probability: 1, path: [] };
    }
    return prediction;
  }

  const problem = (status, detail, kind) => Object.assign(new Error(detail), { status, kind });
  async function body(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const type = request.headers["content-type"] ?? "";
    if (type.startsWith("application/json")) return { json: JSON.parse(bytes.toString() || "{}"), files: [], fields: {} };
    const form = await new Response(bytes, { headers: { "content-type": type } }).formData();
    const files = [];
    const fields = {};
    for (const [name, value] of form) {
      if (typeof value === "string") (fields[name] ??= []).push(value);
      else files.push({ name: value.name, bytes: Buffer.from(await value.arrayBuffer()) });
    }
    return { files, fields };
  }
  const question = ({ json, files, fields }) =>
    json
      ? { given: json.embeddings.map((row, at) => ({ name: `row ${at}`, bytes: Buffer.from(JSON.stringify(row)) })), request: json.request ?? {} }
      : { given: files, request: JSON.parse(fields.request?.[0] ?? "{}") };

  const routes = {
    "GET /models": () => ({ models: [{ name: "run", default: true, version: version(), classes: graph.size }], loadable: [] }),
    "GET /card": () => {
      const counts = { training: 0, taught: 0, untaught: 0 };
      for (const one of graph.values()) counts[one.kind] += 1;
      return { name: "run", version: version(), method: "gpn", backbone: "resnet08", input: embedding ? { embedding: { len: embedding } } : { image: { height: 32, width: 32 } }, dim: 128, classes: counts, root, keep_images: true, may_write: true, who: "local", limits: { body: 33554432, samples: 512, pixels: 40000000 }, card: "# Model card\n\nA stand-in.", program: "mock" };
    },
    "GET /classes": (url) => {
      const q = (url.searchParams.get("q") ?? "").toLowerCase();
      const kind = url.searchParams.get("kind");
      const limit = Number(url.searchParams.get("limit") ?? 50);
      const all = [...graph.values()].filter((one) => (!kind || one.kind === kind) && (one.name.toLowerCase().includes(q) || one.id.toLowerCase().includes(q)));
      const rank = (one) => (one.name.toLowerCase() === q ? 0 : one.name.toLowerCase().startsWith(q) ? 1 : 2);
      if (q) all.sort((a, b) => rank(a) - rank(b));
      return { total: all.length, next: null, classes: all.slice(0, limit).map(entry), did_you_mean: null };
    },
    "GET /graph": (url) => {
      const get = (name, other) => Number(url.searchParams.get(name) ?? other);
      const asked = url.searchParams.get("node");
      const center = asked ? find(asked) : graph.get(root);
      if (!center) throw problem(404, `class \`${asked}\`: there is no such class`, "not_found");
      const limit = get("limit", 200);
      const depths = new Map([[center.id, 0]]);
      let truncated = false;
      for (const id of depths.keys()) {
        const [depth, one] = [depths.get(id), graph.get(id)];
        const up = depth <= 0 && -depth < get("up", 2) ? one.parents : [];
        const down = depth >= 0 && depth < get("down", 2) ? one.children : [];
        for (const [list, step] of [[up, -1], [down, 1]]) for (const next of list) if (!depths.has(next)) depths.size < limit ? depths.set(next, depth + step) : (truncated = true);
      }
      const links = [];
      for (const one of graph.values()) {
        if (one.nearest.length === 0) continue;
        const near = one.nearest.filter((id) => depths.has(id));
        if (near.length > 0 && !depths.has(one.id)) depths.set(one.id, depths.get(near[0]) + 1);
        for (const id of near) links.push([one.id, id]);
      }
      const nodes = [...depths].map(([id, depth]) => ({ id, name: graph.get(id).name, kind: graph.get(id).kind, samples: graph.get(id).samples, depth, parents: graph.get(id).parents.length, children: graph.get(id).children.length }));
      const edges = [...depths.keys()].flatMap((id) => graph.get(id).children.filter((child) => depths.has(child)).map((child) => [id, child]));
      return { center: center.id, version: version(), nodes, edges, links, truncated };
    },
    "GET /history": () => ({ changes: history.map(told).reverse(), next: null }),
    "POST /predict": async (url, request) => {
      const { given, request: asked } = question(await body(request));
      const asOf = Number(url.searchParams.get("version") ?? version());
      return { version: asOf, predictions: given.map((one) => predict(one.name, one.bytes, asked, asOf)) };
    },
    "POST /explain": async (url, request) => {
      const { given, request: asked } = question(await body(request));
      const prediction = predict(given[0].name, given[0].bytes, asked, version());
      const best = graph.get(prediction.classes[0].id);
      prediction.shaped_by = shares(best);
      return { version: version(), prediction, path: path(best), nearest_samples: kept(best).map((sample, at) => ({ ...sample, class: best.id, distance: at + 0.5 })) };
    },
    "POST /teach": async (url, request) => {
      const { json, files, fields } = await body(request);
      const lesson = json ? json.classes[0] : { class: fields.class[0], parents: fields.parents ?? [], place: fields.place?.[0] };
      const given = json ? lesson.embeddings.map((row, at) => ({ name: `row ${at}`, bytes: Buffer.from(JSON.stringify(row)) })) : files;
      const ifTaught = json ? json.if_taught : (fields.if_taught?.[0] ?? "refuse");
      const known = find(lesson.class);
      if (known?.kind === "taught" && ifTaught === "refuse") throw problem(409, `class \`${lesson.class}\` has been taught before`, "conflict");
      const before = known ? state(known) : null;
      const copy = known && structuredClone(known);
      const one = known ?? node(lesson.class.toLowerCase().replaceAll(" ", "-"), lesson.class);
      if (!known) {
        one.since = version() + 1;
        for (const parent of lesson.parents) edge(find(parent).id, one.id);
        if (lesson.parents.length === 0) one.nearest = [...graph.values()].filter((other) => other.kind === "training" && other !== one && other.id !== root).map((other) => other.id).sort((a, b) => noise(one.id + a) - noise(one.id + b)).slice(0, 3);
      }
      if (ifTaught === "replace") one.kept = [];
      for (const sample of given) {
        samples += 1;
        images.set(samples, sample.bytes);
        one.kept.push({ number: samples, name: sample.name, at: new Date().toISOString(), image: !json, key: createHash("sha256").update(sample.bytes).digest("hex") });
      }
      Object.assign(one, { kind: "taught", samples: one.kept.length });
      const change = record("teach", [{ id: one.id, name: one.name, samples_before: copy?.kept.length ?? 0, samples_after: one.samples }], () => {
        if (copy) return graph.set(one.id, copy);
        for (const parent of one.parents) graph.get(parent).children = graph.get(parent).children.filter((id) => id !== one.id);
        graph.delete(one.id);
      });
      const place = known ? "in_graph" : one.parents.length > 0 ? { below: one.parents } : "nearest";
      return { version: change.number, taught: [{ id: one.id, name: one.name, place, samples: one.samples, repeated: 0 }], classes: [{ id: one.id, before, after: state(one) }] };
    },
    "POST /undo": async (url, request) => {
      const { json } = await body(request);
      const change = json.number ? history[json.number - 1] : history.findLast((one) => one.undo && !one.undone_by);
      if (!change?.undo || change.undone_by) throw problem(404, "there is nothing to undo", "not_found");
      change.undo();
      change.undone_by = record("undo", change.classes, null).number;
      history.at(-1).undone = change.number;
      return { version: version(), undone: told(change) };
    },
  };
  async function ofClass(method, id, rest, request, response) {
    const one = find(id);
    if (!one) throw problem(404, `class \`${id}\`: there is no such class`, "not_found");
    if (method === "GET" && !rest) {
      const list = (ids) => ids.map((other) => entry(graph.get(other)));
      const siblings = one.parents.flatMap((parent) => graph.get(parent).children).filter((other) => other !== one.id);
      const changes = history.filter((change) => change.classes.some((other) => other.id === one.id));
      return { version: version(), ...state(one), description: null, parents: list(one.parents), children: list(one.children.slice(0, 100)), children_total: one.children.length, siblings: list(siblings.slice(0, 100)), path: path(one), samples: kept(one), history: changes.map(told).reverse() };
    }
    const image = /^samples\/(\d+)\/image$/.exec(rest ?? "");
    if (method === "GET" && image) {
      response.setHeader("content-type", "image/png").end(images.get(Number(image[1])));
      return undefined;
    }
    const copy = structuredClone(one);
    const changed = (after) => [{ id: one.id, name: one.name, samples_before: copy.kept.length, samples_after: after }];
    const unhook = () => {
      for (const parent of one.parents) graph.get(parent).children = graph.get(parent).children.filter((other) => other !== one.id);
    };
    const hook = (parents) => {
      one.parents = [];
      for (const parent of parents) edge(parent, one.id);
    };
    if (method === "DELETE") {
      unhook();
      graph.delete(one.id);
      return { version: record("forget", changed(0), () => (graph.set(one.id, one), hook(copy.parents))).number };
    }
    const { json } = await body(request);
    if (rest === "rename") {
      one.name = json.name;
      return { version: record("rename", changed(one.samples), () => (one.name = copy.name)).number };
    }
    if (rest === "move") {
      unhook();
      hook(json.parents.map((parent) => find(parent).id));
      return { version: record("move", changed(one.samples), () => (unhook(), hook(copy.parents))).number };
    }
    throw problem(404, "there is nothing at this address", "not_found");
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    void (async () => {
      if (!url.pathname.startsWith("/api/")) {
        const file = url.pathname === "/" ? "index.html" : normalize(url.pathname).slice(1);
        const bytes = readFileSync(join(dist, file));
        response.setHeader("content-type", TYPES[file.split(".").pop()] ?? "application/octet-stream").setHeader("content-security-policy", POLICY).end(bytes);
        return;
      }
      if (token && request.headers.authorization !== `Bearer ${token}`) throw problem(401, "a token is needed: send `Authorization: Bearer TOKEN`", "unauthorized");
      const [, id, rest] = /^\/api\/classes\/([^/]+)(?:\/(.*))?$/.exec(url.pathname) ?? [];
      const route = routes[`${request.method} ${url.pathname.slice(4)}`];
      if (!id && !route) throw problem(404, "there is nothing at this address", "not_found");
      const answer = id ? await ofClass(request.method, decodeURIComponent(id), rest, request, response) : await route(url, request);
      if (answer !== undefined) response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
    })().catch((error) => {
      response.statusCode = error.status ?? (error.code === "ENOENT" ? 404 : 500);
      response.setHeader("content-type", "application/problem+json").end(JSON.stringify({ type: "about:blank", title: "Problem", status: response.statusCode, detail: error.message, kind: error.kind ?? "bug" }));
    });
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve({ url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() })));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const given = (name) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? undefined : process.argv[at + 1];
  };
  const { url } = await start({ port: Number(given("port") ?? 8090), classes: Number(given("classes") ?? 200), taxonomy: given("taxonomy"), embedding: Number(given("embedding") ?? 0), token: given("token") ?? "", wide: process.argv.includes("--wide") });
  console.log(url);
}
