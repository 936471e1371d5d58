// The whole cluster: nodes and GPUs as a map, and as a list.
import { afterPause, fill, h } from "../dom";
import { count, plural } from "./format";
import { Grid } from "./grid";
import { type Shade, NodeMap } from "./map";
import { type Change, type Node, note } from "./model";
import { Ordered } from "./order";
import { type NodeAnswer, type Page, get, query } from "./server";
import type { Shared, View } from "./view";

/** Milliseconds between looks at what GPUs report, while somebody looks at it. */
const LOOK = 10_000;
type By = "job" | "tenant" | "model" | "health" | "temperature" | "use";

export class ClusterView implements View {
  readonly title = "cluster";
  readonly box: HTMLElement;
  private readonly map: NodeMap;
  private readonly grid: Grid<Node>;
  private readonly ordered = new Ordered<Node>((node) => node.index);
  private readonly by = h("select", { "aria-label": "what colours say", id: "colour-by" });
  private readonly legend = h("ul", { className: "legend" });
  private readonly text = h("input", { type: "search", placeholder: "name, state, type, reason", "aria-label": "search nodes", spellcheck: false });
  private readonly said = h("p", { className: "quiet", role: "status" });
  private readonly soon = afterPause(120, () => void this.sort());
  private timer = 0;

  constructor(private readonly shared: Shared) {
    const open = (node: Node) => { location.hash = `#/nodes/${encodeURIComponent(node.name)}`; };
    const mapPlace = h("div", { id: "map" });
    this.map = new NodeMap(mapPlace, open);
    const held = (node: Node) => node.gpus.filter((gpu) => gpu.job !== null).length;
    this.grid = new Grid<Node>("nodes", [
      { name: "node", text: (node) => node.name, link: (node) => `#/nodes/${encodeURIComponent(node.name)}` },
      { name: "state", text: (node) => node.state, className: (node) => `state ${node.state}` },
      { name: "GPU type", text: (node) => node.gpu_type },
      { name: "GPUs held", text: (node) => `${held(node)} of ${node.gpus.length}`, isNumber: true },
      { name: "jobs", text: (node) => jobsOf(node).join(", "), className: () => "wide", isOrder: false },
      { name: "reason", text: (node) => node.reason, className: () => "wide", isOrder: false },
    ], { column: 0, isDescending: false }, () => void this.sort());
    const words: [By, string][] = [["job", "job"], ["tenant", "tenant"], ["model", "model"], ["health", "health"], ["temperature", "temperature"], ["use", "use"]];
    fill(this.by, ...words.map(([value, text]) => h("option", { value }, text)));
    this.by.addEventListener("change", () => this.shade());
    this.text.addEventListener("input", () => this.soon());
    this.box = h("section", { "aria-label": "cluster" }, h("div", { className: "row" }, h("label", { className: "row" }, "colour by", this.by), this.said), this.legend, mapPlace,
      h("h2", {}, "Nodes"), h("div", { className: "row" }, this.text), this.grid.box);
    this.shade();
    void this.sort();
  }

  update(change: Change): void {
    const begun = performance.now();
    if (change.isAll) { this.shade(); void this.sort(); }
    else if (change.nodes.size) {
      this.map.change(change.nodes);
      this.ordered.change(this.shared.cluster.nodes.filter((node) => change.nodes.has(node.name)));
      this.grid.show(this.ordered.rows);
    }
    if (change.jobs.size && ["tenant", "model"].includes(this.by.value) && !change.isAll) this.recolour();
    this.tell();
    note("nodes", begun);
  }

  close(): void { clearTimeout(this.timer); }

  private readonly recolour = afterPause(300, () => this.shade());

  private tell(): void {
    const { nodes } = this.shared.cluster;
    const up = nodes.filter((node) => node.state === "up");
    const gpus = up.reduce((sum, node) => sum + node.gpus.length, 0);
    const held = up.reduce((sum, node) => sum + node.gpus.filter((gpu) => gpu.job !== null).length, 0);
    const bad = nodes.reduce((sum, node) => sum + node.gpus.filter((gpu) => gpu.trouble).length, 0);
    this.said.textContent = `${count(up.length)} of ${plural(nodes.length, "node")} up; ${count(held)} of ${plural(gpus, "GPU")} held${bad ? `; ${plural(bad, "GPU")} not usable` : ""}`;
  }

  private shade(): void {
    const by = this.by.value as By;
    clearTimeout(this.timer);
    const shade = this.shadeBy(by);
    fill(this.legend, ...shade.legend());
    this.map.show(this.shared.cluster.nodes, shade);
    this.tell();
    if (by === "temperature" || by === "use" || by === "health") void this.look();
  }

  /** What GPUs report is not in the stream: it is asked for while it is looked at. */
  private async look(): Promise<void> {
    try {
      let cursor: string | null = "";
      while (cursor !== null) {
        const page: Page<NodeAnswer> = await get(`/nodes${query({ limit: 1000, cursor })}`);
        for (const answer of page.items) {
          const node = answer.index === null ? undefined : this.shared.cluster.nodes[answer.index];
          answer.gpus.forEach((gpu, at) => { const own = node?.gpus[at]; if (own) { own.temperature = gpu.temperature_c ?? null; own.use = gpu.use_percent ?? null; own.trouble = gpu.is_healthy ? "" : gpu.reason || "not usable"; } });
        }
        cursor = page.next ?? null;
      }
      this.map.change(this.shared.cluster.nodes.map((node) => node.name));
    } catch { /* asked again below */ }
    clearTimeout(this.timer);
    if (this.box.isConnected) this.timer = window.setTimeout(() => void this.look(), LOOK);
  }

  private shadeBy(by: By): Shade {
    const { cluster } = this.shared;
    const item = (name: string, of: number | null) => {
      const swatch = h("span", { className: "cell", "aria-hidden": "true" });
      swatch.style.background = of === null ? "var(--stripe)" : `var(--colour-${of})`;
      return h("li", {}, swatch, name);
    };
    const about = (node: Node, gpu: number) => {
      const { job, trouble, temperature, use } = node.gpus[gpu];
      const own = job !== null && job >= 0 ? cluster.jobs.get(job) : undefined;
      const held = job === null ? "free" : own ? `job ${own.id} ${own.name} of ${own.tenant}${own.model ? `, ${own.model}` : ""}` : job >= 0 ? `job ${job}` : "somebody else's job";
      return [held, trouble, temperature !== null && `${temperature} °C`, use !== null && `${use} % used`].filter(Boolean).join(", ");
    };
    if (by === "temperature" || by === "use") {
      const share = (node: Node, gpu: number) => (by === "use" ? (node.gpus[gpu].use ?? null) : node.gpus[gpu].temperature);
      const words = by === "use" ? "a full cell: 100 % used" : "an empty cell: 20 °C or less; a full one: 95 °C or more";
      return {
        of: (node, gpu) => { const value = share(node, gpu); return value === null ? null : { share: by === "use" ? value / 100 : (value - 20) / 75 }; },
        about, legend: () => [h("li", {}, `${words}; where the driver says nothing, cells stay empty`)],
      };
    }
    const names = new Map<string, number>();
    const name = (node: Node, gpu: number): string | null => {
      const { job, trouble } = node.gpus[gpu];
      if (by === "health") return node.state !== "up" ? node.state : trouble ? "not usable" : null;
      if (job === null) return null;
      if (job < 0) return "others";
      const own = cluster.jobs.get(job);
      return by === "job" ? String(job) : by === "tenant" ? own?.tenant || "no tenant" : own?.model || "no profile";
    };
    if (by === "job") {
      return { of: (node, gpu) => { const { job } = node.gpus[gpu]; return job === null ? null : { palette: job < 0 ? 10 : job % 10 } ; }, about, legend: () => [item("free", null), h("li", {}, "neighbouring colours are different jobs; point at a cell, or choose a node with the arrow keys, to read which")] };
    }
    cluster.nodes.forEach((node) => node.gpus.forEach((_gpu, at) => { const one = name(node, at); if (one !== null && !names.has(one)) names.set(one, 0); }));
    [...names.keys()].sort().forEach((one, at) => names.set(one, at % 10));
    return {
      of: (node, gpu) => { const one = name(node, gpu); return one === null ? null : { palette: names.get(one) ?? 10 }; },
      about, legend: () => [item(by === "health" ? "good" : "free", null), ...[...names].sort().slice(0, 20).map(([one, at]) => item(one, at)), ...(names.size > 20 ? [h("li", {}, `and ${names.size - 20} more`)] : [])],
    };
  }

  private async sort(): Promise<void> {
    const words = this.text.value.trim().toLowerCase();
    const held = (node: Node) => node.gpus.filter((gpu) => gpu.job !== null).length;
    const keys: ((node: Node) => number | string)[] = [(node) => node.index, (node) => node.state, (node) => node.gpu_type, held];
    const { column, isDescending } = this.grid.order;
    const wanted = (node: Node) => !words || `${node.name} ${node.state} ${node.gpu_type} ${node.reason}`.toLowerCase().includes(words);
    if (await this.ordered.sort(this.shared.cluster.nodes, keys[column] ?? keys[0], isDescending, wanted)) this.grid.show(this.ordered.rows);
  }
}

export function jobsOf(node: Node): string[] {
  const jobs = [...new Set(node.gpus.map((gpu) => gpu.job).filter((job): job is number => job !== null))];
  return jobs.map((job) => (job < 0 ? "others'" : String(job)));
}
