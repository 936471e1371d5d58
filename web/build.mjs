// Makes dist/ from src/: for each page (rota play, the live cluster) one script, one style sheet and the page; the licences of what is
// bundled; and hashes of the sources and of what was made, with which a test of rota-play says when dist/ is stale or was changed by
// hand. The same sources give the same bytes: `node build.mjs --check` makes them again and compares.
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const isCheck = process.argv.includes("--check");
const dist = isCheck ? mkdtempSync(join(tmpdir(), "rota-web-")) : "dist";
if (!isCheck) rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

const { metafile } = await build({
  entryPoints: { app: "src/main.ts", live: "src/live/main.ts" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: dist,
  metafile: true,
  legalComments: "none",
});
writeFileSync(join(dist, "index.html"), readFileSync("src/index.html"));
writeFileSync(join(dist, "live.html"), readFileSync("src/live/live.html"));

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
writeFileSync(join(dist, "LICENSES.txt"), `Code of others in the scripts and style sheets.\n${rule}${licences.join(rule)}`);

const files = (folder) => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`);
const hash = (names, base) => {
  const all = createHash("sha256");
  for (const name of names.sort()) all.update(name).update("\0").update(readFileSync(join(base, name))).update("\0");
  return all.digest("hex");
};
const sources = hash(["build.mjs", "package.json", "package-lock.json", "tsconfig.json", ...files("src")], ".");
const made = hash(readdirSync(dist), dist);
writeFileSync(join(dist, "sources.sha256"), `${sources}  sources\n${made}  bundle\n`);

if (isCheck) {
  const names = [...new Set([...readdirSync(dist), ...readdirSync("dist")])].sort();
  const read = (folder, name) => { try { return readFileSync(join(folder, name)); } catch { return Buffer.alloc(0); } };
  const other = names.filter((name) => !read(dist, name).equals(read("dist", name)));
  rmSync(dist, { recursive: true, force: true });
  if (other.length) { console.error(`dist/ is not what its sources make: ${other.join(", ")}; run npm run build`); process.exit(1); }
  console.log(`${names.length} files are what their sources make`);
} else console.log(`${packages.size} packages bundled`);
