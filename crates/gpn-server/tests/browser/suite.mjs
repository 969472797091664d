// The page in a real browser, as a person uses it. Exit code 0: all of it works.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { check, launch, open, serve } from "./browser.mjs";
import { embeddings, large, renameAndMove } from "./mocked.mjs";
import { stripes } from "./png.mjs";

const [binary, model] = process.argv.slice(2);
const shots = process.env.GPN_SHOTS ?? join(import.meta.dirname ?? ".", "out");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(shots, { recursive: true });

const NAME = "test kite";
const photo = (at) => ({ name: `kite ${at}.png`, mimeType: "image/png", buffer: stripes([200, 60, 30], [240, 220, 190], at) });
const view = (page) => page.locator(".page:not([hidden])");
const ranked = (page) => page.locator(".ranking li");

/** No serious or critical finding of axe in what is in sight. */
async function accessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const told = grave.map(({ id, help, nodes }) => `${id}: ${help}\n    ${nodes.slice(0, 3).map((node) => `${node.html}\n    ${node.failureSummary}`).join("\n    ")}`);
  check(grave.length === 0, `accessibility of ${what}:\n  ${told.join("\n  ")}`);
}

/** Whether the canvas shows the colour of taught classes. */
function showsTaught(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector(".graph canvas");
    const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--taught");
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] === r && data[at + 1] === g && data[at + 2] === b) found += 1;
    return found > 12;
  });
}

async function search(page, text) {
  await page.fill("#class-search", text);
  return page.locator(".search .option");
}

async function teach(page, url, parent) {
  await page.goto(`${url}#/teach`);
  await page.fill("#teach-name", NAME);
  await view(page).locator("[data-choose]").setInputFiles([photo(1), photo(2), photo(3)]);
  check((await view(page).locator(".thumbs-edit li").count()) === 3, "three photos lie ready");
  const box = view(page).getByRole("combobox", { name: "It is a kind of" });
  await box.fill(parent);
  await view(page).locator(".option", { hasText: parent }).first().click();
  await view(page).locator(".chip", { hasText: parent }).waitFor();
  await page.getByRole("button", { name: `Teach ${NAME} with 3 samples` }).click();
  await view(page).locator(".lesson").waitFor();
}

async function journey(browser, url) {
  const { page, context, faults } = await open(browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(url);
  await view(page).locator("h1").waitFor();
  check((await page.title()).includes("gpn"), "the page has a title");

  // Search, with the keyboard alone.
  const { classes } = await page.evaluate(() => fetch("/api/classes?kind=training&limit=200").then((answer) => answer.json()));
  const parent = classes.find((one) => one.parents.length > 0 && classes.filter((other) => other.name.includes(one.name)).length === 1) ?? classes[1];
  await page.keyboard.press("/");
  await page.keyboard.type(parent.name);
  await page.locator(".search .option", { hasText: parent.name }).first().waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await view(page).locator("h1", { hasText: parent.name }).waitFor();
  check((await view(page).locator(".shares-bar span").count()) > 0, "a class tells whom it hears");
  console.log(`ok search: ${parent.name}`);

  // Teach.
  check(!(await showsTaught(page)), "no taught class is in the graph at first");
  await teach(page, url, parent.name);
  const lesson = view(page).locator(".lesson");
  check((await lesson.innerText()).includes("did not know it"), "before, the class was unknown");
  check((await lesson.locator(".shares-bar span").count()) > 0, "after, it tells whom it heard");
  await lesson.getByRole("link", { name: "Show it in the graph" }).click();
  await view(page).locator("h1", { hasText: NAME }).waitFor();
  await page.waitForFunction((name) => document.querySelector("[role=treeitem][aria-selected=true]")?.textContent.startsWith(name), NAME);
  check((await page.locator("[role=treeitem][aria-selected=true]").innerText()).includes("taught"), "the tree says that it is taught");
  check(await showsTaught(page), "the graph shows the taught class");
  check((await view(page).locator(".thumbs img").count()) === 3, "its three samples are shown");
  console.log("ok teach, and see it in the graph");

  // Ask, by dropping a photo on the graph.
  const dropped = await page.evaluateHandle((bytes) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(bytes)], "dropped.png", { type: "image/png" }));
    return transfer;
  }, [...photo(1).buffer]);
  await page.dispatchEvent("#graph", "drop", { dataTransfer: dropped });
  await ranked(page).first().waitFor();
  const shares = (await ranked(page).locator(".number").allInnerTexts()).map((text) => Number.parseFloat(text.replace("<", "")));
  check(shares.length === 5 && shares.every((share, at) => at === 0 || share <= shares[at - 1]), `five classes, the likeliest first: ${shares}`);
  check((await page.locator(".ladder li").count()) > 1, "the way down the taxonomy is shown");
  check((await page.locator(".why .shares-bar span").count()) > 0, "the answer says why");
  await page.locator("#confidence").fill("99");
  await page.waitForFunction(() => {
    const text = document.querySelector(".verdict-words").innerText;
    return /It cannot tell/.test(text) || Number.parseFloat(/([\d.]+)% sure/.exec(text)?.[1] ?? "0") >= 99;
  });
  await page.locator("#confidence").fill("50");
  await page.waitForFunction(() => !document.querySelector(".verdict-words").innerText.includes("99% sure"));
  check((await page.locator(".ladder .sure").count()) !== 1, "nobody is sure of the top alone");
  const [, said] = /([\d.]+%) sure/.exec(await page.locator(".verdict-words").innerText()) ?? [];
  const way = await page.locator(".ladder .sure .number").allInnerTexts();
  check(way.length === 0 || (way[0] === "100%" && way.at(-1) === said), `the way says what the verdict says, ${said}: ${way}`);
  await page.selectOption("#among", "taught");
  await page.locator(".verdict-name", { hasText: NAME }).waitFor();
  await page.locator(".why .thumbs img").nth(2).waitFor();
  check(await page.locator(".why .thumbs img").first().evaluate((image) => image.decode().then(() => image.naturalWidth > 0)), "the nearest samples are shown as images");
  await page.selectOption("#among", "all");
  await ranked(page).nth(4).waitFor();
  await page.selectOption("#version", "0");
  await page.locator(".compare tbody tr").first().waitFor();
  check((await page.locator(".compare thead").innerText()).includes("v0"), "an older version answers beside the present one");
  console.log("ok ask, why, as deep as sure, versions");

  // Undo, from the history.
  await page.goto(`${url}#/history`);
  await view(page).getByRole("button", { name: "Undo change 1" }).click();
  await page.locator(".toast", { hasText: "Undone" }).waitFor();
  await view(page).locator(".change-undone").waitFor();
  await (await search(page, NAME)).page().locator(".popup-note", { hasText: "No class of this name" }).waitFor();
  await page.keyboard.press("Escape");
  check(!(await showsTaught(page)), "the graph has it no more");
  console.log("ok undo");

  // Teach again, reload: still there.
  await teach(page, url, parent.name);
  await page.reload();
  await view(page).locator("h1").waitFor();
  await (await search(page, NAME)).filter({ hasText: NAME }).first().click();
  await view(page).locator("h1", { hasText: NAME }).waitFor();
  await page.waitForFunction(() => document.querySelector("[role=treeitem][aria-selected=true]") !== null);
  check(await showsTaught(page), "after a reload the graph shows it still");
  console.log("ok teach again and reload");

  // Forget, and take it back by the notice.
  await view(page).getByRole("button", { name: "Forget" }).click();
  await page.locator(".toast", { hasText: `Forgot ${NAME}` }).getByRole("button", { name: "Undo" }).click();
  await page.locator(".toast", { hasText: "Undone" }).waitFor();
  await page.goto(`${url}#/explore/${encodeURIComponent(parent.id)}`);
  await view(page).locator(".chip", { hasText: NAME }).waitFor();
  console.log("ok forget and take it back");

  // The graph by keyboard.
  await page.goto(`${url}#/explore`);
  await view(page).locator("h1", { hasText: "relatives" }).waitFor();
  await page.locator(".graph-tree").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  const focused = await page.evaluate(() => document.getElementById(document.querySelector(".graph-tree").getAttribute("aria-activedescendant"))?.textContent.split(",")[0]);
  await page.keyboard.press("Enter");
  await view(page).locator("h1", { hasText: focused }).waitFor();
  for (const key of ["+", "-", "0", "ArrowRight", "ArrowLeft", "End", "Shift+ArrowUp"]) await page.keyboard.press(key);
  console.log("ok graph by keyboard");

  check(faults.length === 0, `a silent console, but: ${faults.join("; ")}`);
  await context.close();
  return parent;
}

/** Every view in a width and a theme: nothing sticks out, axe is content, a picture is taken. */
async function looks(browser, url, width, height, colorScheme, parent) {
  const { page, context, faults } = await open(browser, { viewport: { width, height }, colorScheme, deviceScaleFactor: width < 500 ? 2 : 1 });
  const picture = async (what) => {
    await page.waitForTimeout(250);
    const wide = await page.evaluate(() => [document.documentElement.scrollWidth, document.querySelector("#panel").scrollWidth - document.querySelector("#panel").clientWidth]);
    check(wide[0] <= width && wide[1] <= 0, `nothing sticks out of ${what} at ${width} px: ${wide}`);
    await page.screenshot({ path: join(shots, `${width}-${colorScheme}-${what}.png`) });
    await accessible(page, `${what} at ${width} px, ${colorScheme}`);
  };
  await page.goto(url);
  await view(page).locator("h1").waitFor();
  await picture("start");
  await (await search(page, parent.name.slice(0, 4))).first().waitFor();
  await picture("search");
  await page.keyboard.press("Escape");
  await page.goto(`${url}#/explore/${encodeURIComponent(parent.id)}`);
  await view(page).locator("h1", { hasText: parent.name }).waitFor();
  await picture("class");
  await page.goto(`${url}#/ask`);
  await picture("ask");
  await view(page).getByRole("button", { name: "Try an example" }).click();
  await ranked(page).first().waitFor();
  await picture("answer");
  await page.goto(`${url}#/teach`);
  await page.fill("#teach-name", `${NAME} ${width} ${colorScheme}`);
  await view(page).locator("[data-choose]").setInputFiles([photo(width), photo(width + 1), photo(width + (colorScheme === "dark" ? 3 : 2))]);
  await picture("teach");
  await page.locator("#unknown-place").check();
  await page.locator(".button-wide").click();
  await view(page).locator(".lesson").waitFor();
  await picture("lesson");
  await page.goto(`${url}#/history`);
  await view(page).locator(".change").first().waitFor();
  await picture("history");
  await page.goto(`${url}#/explore/nothing-of-this-name`);
  await view(page).locator("h1", { hasText: "No such class" }).waitFor();
  check(faults.every((fault) => fault.includes("404")), `a silent console at ${width} px, but: ${faults.join("; ")}`);
  await context.close();
  console.log(`ok looks at ${width} px, ${colorScheme}`);
}

async function tokens(browser) {
  const server = await serve(binary, model, [], { GPN_WRITE_TOKEN: "a-token-for-the-test-of-the-page" });
  const { page, context, faults } = await open(browser, { viewport: { width: 1000, height: 700 } });
  await page.goto(server.url);
  await page.getByLabel("Token", { exact: true }).fill("wrong");
  await page.keyboard.press("Enter");
  await page.locator(".dialog", { hasText: "not accepted" }).waitFor();
  await accessible(page, "the question for a token");
  await page.getByLabel("Token", { exact: true }).fill("a-token-for-the-test-of-the-page");
  await page.keyboard.press("Enter");
  await view(page).locator("h1").waitFor();
  await page.reload();
  await view(page).locator("h1").waitFor();
  check((await page.locator("dialog").count()) === 0, "the token lasts for the session");
  check(!page.url().includes("a-token"), "the token is in no address");
  check(await page.evaluate(() => !JSON.stringify({ ...localStorage }).includes("a-token")), "the token is not kept for longer");
  check(faults.every((fault) => fault.includes("401")), `a silent console, but: ${faults.join("; ")}`);
  await context.close();
  await server.close();
  console.log("ok token");
}

const browser = await launch();
try {
  const server = await serve(binary, model);
  const parent = await journey(browser, server.url);
  for (const [width, height] of [[1280, 800], [360, 740]]) for (const scheme of ["light", "dark"]) await looks(browser, server.url, width, height, scheme, parent);
  await server.close();
  await tokens(browser);
  await embeddings(browser);
  await large(browser);
  await renameAndMove(browser);
  console.log(`the page works; pictures are in ${shots}`);
} catch (error) {
  console.error(error);
  const page = browser.contexts().at(-1)?.pages()[0];
  await page?.screenshot({ path: join(shots, "failed.png") }).catch(() => undefined);
  process.exitCode = 1;
} finally {
  await browser.close();
  process.exit();
}
