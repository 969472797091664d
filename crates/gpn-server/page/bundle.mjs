// Bundles src/ into the folder that is named, dist/ by default. The same sources give the same bytes.
import { build } from "esbuild";
import { cp, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

const LIMIT = 300_000;
const out = process.argv[2] ?? "dist";

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  entryPoints: { app: "src/main.ts", theme: "src/theme.ts", style: "src/style/index.css" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022", "chrome109", "firefox115", "safari16.4"],
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});
for (const file of ["index.html", "icon.svg", "page.webmanifest"]) await cp(join("src", file), join(out, file));

let total = 0;
for (const file of (await readdir(out)).sort()) {
  const { size } = await stat(join(out, file));
  total += size;
  console.log(`${String(size).padStart(8)}  ${file}`);
}
console.log(`${String(total).padStart(8)}  in all, of ${LIMIT} at most`);
if (total >= LIMIT) process.exit(1);
