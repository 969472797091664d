// The browser, the server, and what a test says.

import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { chromium } from "playwright-core";
import { start as startMock } from "../../page/mock/server.mjs";

// No name but loopback is ever found: nothing leaves the machine.
const FLAGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

export function launch() {
  const executablePath = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  if (!executablePath) throw new Error("there is no chromium; install it, or name it in CHROMIUM");
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}

/** Serves a copy of a model, so that what is taught leaves no trace. */
export async function serve(binary, model, more = [], environment = {}) {
  if (binary === "--mock") return startMock({ classes: 120, ...(environment.GPN_WRITE_TOKEN ? { token: environment.GPN_WRITE_TOKEN } : {}) });
  const folder = mkdtempSync(join(tmpdir(), "gpn-browser-"));
  const copy = join(folder, basename(model));
  const isRun = statSync(model).isDirectory();
  cpSync(model, copy, { recursive: true, filter: (path) => !path.endsWith(".redb") && !(isRun && path.includes("checkpoints/")) });
  const child = spawn(binary, ["serve", copy, "--addr", "127.0.0.1:0", "--keep-images", ...more], { stdio: ["ignore", "inherit", "pipe"], env: { ...process.env, ...environment } });
  const url = await new Promise((resolve, reject) => {
    let said = "";
    const late = setTimeout(() => reject(new Error(`the server is not up after 60 s; it said:\n${said}`)), 60_000);
    child.stderr.on("data", (bytes) => {
      said += bytes;
      const found = /https?:\/\/[\d.:]+\//.exec(said);
      if (!found) return;
      clearTimeout(late);
      resolve(found[0]);
    });
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}; it said:\n${said}`)));
  });
  const close = async () => {
    child.removeAllListeners("exit");
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, close };
}

/** A page whose console must stay silent. */
export async function open(browser, options) {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const faults = [];
  page.on("console", (message) => (message.type() === "error" || message.type() === "warning") && faults.push(`${message.type()}: ${message.text()} ${message.location().url}`));
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol.startsWith("http") && host !== new URL(page.url() === "about:blank" ? request.url() : page.url()).host) faults.push(`foreign request: ${request.url()}`);
  });
  return { page, context, faults };
}

export function check(holds, what) {
  if (!holds) throw new Error(`failed: ${what}`);
}
