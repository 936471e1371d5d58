// Makes dist/ from src/: one script, one style sheet, the page, the licences of what is bundled, and a hash of the sources, with
// which a test of rota-play says when dist/ is stale. The same sources give the same bytes.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

rmSync("dist", { recursive: true, force: true });
mkdirSync("dist");

const { metafile } = await build({
  entryPoints: { app: "src/main.ts" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: "dist",
  metafile: true,
  legalComments: "none",
});
writeFileSync("dist/index.html", readFileSync("src/index.html"));

const packages = new Set();
for (const input of Object.keys(metafile.inputs)) {
  const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/);
  if (found) packages.add(found[1]);
}
const licences = [...packages].sort().map((name) => {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
});
const rule = `\n${"-".repeat(80)}\n\n`;
writeFileSync("dist/LICENSES.txt", `Code of others in app.js and app.css.\n${rule}${licences.join(rule)}`);

const sources = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];
sources.push(...readdirSync("src").map((name) => `src/${name}`));
const hash = createHash("sha256");
for (const name of sources.sort()) hash.update(name).update("\0").update(readFileSync(name)).update("\0");
writeFileSync("dist/sources.sha256", `${hash.digest("hex")}\n`);
console.log(`${packages.size} packages bundled`);
