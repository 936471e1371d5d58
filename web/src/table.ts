// The table of figures: the edited policy first, and of every other one how much better or worse the edited one is.
import type { Compared, Result, Seeds } from "./api";
import { fill, h } from "./dom";

export function showTable(table: HTMLElement, result: Result, seeds: Seeds | null): void {
  const { headings, rows } = result.table;
  const own = rows[0];
  const head = h("tr", {}, h("th", { scope: "col" }, "policy"),
    ...headings.map((heading) => h("th", { scope: "col" }, heading.unit ? `${heading.name} (${heading.unit})` : heading.name)));
  const body = rows.map((row, at) => {
    const of = seeds?.against.find((one) => one.policy === result.labels[at])?.figures ?? [];
    const swatch = h("span", { className: "swatch", "aria-hidden": "true" });
    const line = result.figures.find((figure) => figure.lines)?.lines?.[at];
    if (line) { swatch.style.borderTopColor = `var(--colour-${line.colour})`; swatch.style.borderTopStyle = line.dash ? "dashed" : "solid"; }
    return h("tr", {}, h("th", { scope: "row" }, swatch, row.policy),
      ...row.cells.map((cell, column) => {
        const heading = headings[column];
        const compared = of.find((one) => one.name === heading.name);
        const note = at > 0 ? difference(own.cells[column].value, cell.value, heading.better, compared) : null;
        const label = heading.unit ? `${heading.name} (${heading.unit})` : heading.name;
        return h("td", { className: cell.best ? "best" : "", "data-label": label }, h("span", {}, cell.text, ...(note ?? [])));
      }));
  });
  fill(table, h("thead", {}, head), h("tbody", {}, ...body));
}

/** The edited policy against another: by how many per cent its figure is higher or lower. */
function difference(own: number | null, other: number | null, better: string, compared: Compared | undefined): HTMLElement[] | null {
  if (own === null || other === null || !other || !better) return null;
  const ratio = compared && compared.n > 1 ? compared.ratio : own / other;
  const gain = better === "lower" ? ratio < 1 : ratio > 1;
  const isSame = Math.abs(ratio - 1) < 5e-4;
  const interval = compared && compared.n > 1 ? h("small", { className: "quiet" }, `${short(compared.low)} to ${short(compared.high)}`) : null;
  const name = isSame ? "quiet" : gain ? "better" : "worse";
  const spoken = compared?.told_apart ? "told apart" : "";
  const main = h("small", { className: `${name}${compared?.told_apart ? " apart" : ""}`, title: spoken }, percent(ratio));
  return interval ? [main, interval] : [main];
}

function percent(ratio: number): string {
  const value = 100 * (ratio - 1);
  return `${value > 0 ? "+" : value < 0 ? "−" : "±"}${Math.abs(value).toFixed(1)} %`;
}

function short(ratio: number): string {
  return percent(ratio).replace(" %", "");
}

/** A sentence about the seeds so far. */
export function aboutSeeds(result: Result, seeds: Seeds | null): string {
  const jobs = result.n_jobs.toLocaleString("en");
  const one = `${jobs} jobs of ${result.workload}, seed ${result.seed}`;
  if (!seeds) return one;
  const apart = seeds.against.filter((one) => one.figures.some((figure) => figure.name === "avg JCT" && figure.told_apart));
  const told = apart.length ? `; average completion time told apart from ${apart.map((one) => one.policy).join(", ")}` : "";
  return `${one}; differences over ${seeds.n} of ${seeds.of} seeds${told}`;
}
