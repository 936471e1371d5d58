// One node: what it has, what runs there, and taking it out of service or back.
import { fill, h } from "../dom";
import { away, gibibytes, short, when } from "./format";
import type { Change } from "./model";
import { type NodePage, get } from "./server";
import { type Shared, type View, act, button, facts, jobLink, stateMark, table } from "./view";

const LOOK = 10_000;

export class NodeView implements View {
  readonly title: string;
  readonly box = h("section", { "aria-label": "node" });
  private readonly body = h("div", {});
  private timer = 0;
  private stamp = "";

  constructor(private readonly shared: Shared, private readonly name: string) {
    this.title = `node ${name}`;
    fill(this.box, h("p", {}, h("a", { href: "#/" }, "← the cluster")), this.body);
    void this.load();
  }

  update(change: Change): void {
    if (change.isAll || change.nodes.has(this.name)) void this.load();
  }

  close(): void { clearTimeout(this.timer); }

  private path(): string { return `/nodes/${encodeURIComponent(this.name)}`; }

  private async load(): Promise<void> {
    clearTimeout(this.timer);
    try {
      const node = await get<NodePage>(this.path());
      const stamp = JSON.stringify(node);
      if (stamp !== this.stamp) { this.stamp = stamp; this.draw(node); }
    } catch (error) { fill(this.body, h("h2", {}, `Node ${this.name}`), h("p", { className: "wrong" }, (error as Error).message)); }
    // Temperatures and the like are not in the stream.
    if (this.box.isConnected) this.timer = window.setTimeout(() => void this.load(), LOOK);
  }

  private draw(node: NodePage): void {
    const { cluster } = this.shared;
    const gpu = (one: NodePage["gpus"][number], at: number) => [
      String(at), one.job === null ? "free" : one.job < 0 ? "somebody else's" : jobLink(one.job), one.tenant ?? "", one.model ?? "", one.is_healthy ? "good" : one.reason || "not usable",
      one.temperature_c != null ? `${one.temperature_c} °C` : "", one.use_percent != null ? `${one.use_percent} %` : "", one.mem_used_bytes != null ? gibibytes(one.mem_used_bytes) : "", one.power_w != null ? `${one.power_w} W` : "",
    ];
    fill(this.body, h("h2", {}, "Node ", h("span", { className: "name" }, node.name), " ", stateMark(node.state)), node.reason || node.drained_reason ? h("p", {}, node.reason || node.drained_reason) : null, this.actions(node),
      facts([
        ["in this state since", `${when(node.since_s, cluster.status)}, ${away(node.since_s, cluster.now())}`], ["GPU type", node.gpu_type], ["GPUs held", `${node.n_busy} of ${node.n_gpus}`], ["CPUs", short(node.cpus)],
        ["memory", gibibytes(node.mem_bytes)], ["rack", String(node.rack)], ["its agent", `version ${node.version}${node.is_emulated ? ", emulated" : ""}`],
      ]),
      h("h2", {}, "GPUs"), table("GPUs", ["GPU", "job", "tenant", "model", "health", "temperature", "use", "memory used", "power"], node.gpus.map(gpu), [0, 5, 6, 7, 8]),
      h("h2", {}, "Jobs"), node.placements.length ? table("jobs on the node", ["job", "GPUs", "CPUs", "memory"], node.placements.map((one) => [jobLink(one.job), one.gpus.join(", "), short(one.cpus), gibibytes(one.mem_bytes)]), [2, 3])
        : h("p", { className: "quiet" }, node.n_busy ? "None that you may see." : "None."),
      h("h2", {}, "What happened"), node.events.length ? table("events of the node", ["when", "what"], node.events.slice().reverse().map((one) => [when(one.at_s, cluster.status), one.text])) : h("p", { className: "quiet" }, "Nothing yet."));
  }

  private actions(node: NodePage): HTMLElement {
    const { shared, name } = this;
    const why = { name: "reason", label: "why", about: "people read it beside the node" };
    const isOut = node.state === "drained" || node.state === "draining";
    const service = (service: string, label: string, about: string, fields: typeof why[]) => button(shared, "drain", label, () => void act(shared, `${label}: ${name}`, about, label, fields,
      `${this.path()}/service`, (of) => ({ service, reason: of.reason ?? "" }), () => `${name}: ${label}`).then(() => this.load()));
    return h("div", { className: "row", id: "node-actions" },
      ...(isOut ? [service("in", "resume", "It takes jobs again.", [])]
        : [service("out", "drain", "Nothing is started there any more, and its jobs move to other nodes at the next round.", [why]), service("out-when-idle", "drain when idle", "Nothing is started there any more; what runs there runs to its end.", [why])]),
      node.state === "unreachable" ? button(shared, "give-up", "give up", () => void act(shared, `Give up ${name}`, "Its jobs are started elsewhere at once. Do this only if you know that nothing runs there any more.", "give up",
        [{ name: "sure", label: "I know that nothing runs there any more", kind: "switch" }], `${this.path()}/give-up`, (of) => ({ nothing_runs_there: of.sure === "true" }), () => `${name} is given up`).then(() => this.load())) : null);
  }
}
