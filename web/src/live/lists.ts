// Tenants with their quotas, and what happened.
import { afterPause, fill, h } from "../dom";
import { count, when } from "./format";
import type { Change } from "./model";
import { type EventLine, type Page, get, query } from "./server";
import { type Shared, type View, jobLink, nodeLink, table } from "./view";

export class TenantsView implements View {
  readonly title = "tenants";
  readonly box = h("section", { "aria-label": "tenants" });
  private stamp = "";

  constructor(private readonly shared: Shared) { this.draw(); }

  update(change: Change): void { if (change.isAll || change.hasTenants) this.draw(); }

  private draw(): void {
    const { tenants } = this.shared.cluster;
    const stamp = JSON.stringify(tenants);
    if (stamp === this.stamp) return;
    this.stamp = stamp;
    const quota = (held: number, most: number | null) => (most === null ? h("span", {}, `${count(held)}, no quota`) : h("span", { className: "quota" },
      h("meter", { min: 0, max: Math.max(1, most), value: Math.min(held, most), high: most * 0.9, "aria-label": "share of the quota" }), ` ${count(held)} of ${count(most)}`));
    fill(this.box, h("h2", {}, "Tenants"), tenants.length ? table("tenants", ["tenant", "GPUs held of its quota", "jobs that run", "jobs that wait", "GPUs they wait for"],
      tenants.map((one) => [one.name, quota(one.gpus_held, one.quota), count(one.n_running), count(one.n_waiting), count(one.gpus_waiting)]), [2, 3, 4]) : h("p", { className: "quiet" }, "None yet: a tenant is there with its first job."));
  }
}

/** Events in one table: the newest first, older ones on request. */
export class EventsView implements View {
  readonly title = "events";
  readonly box = h("section", { "aria-label": "events" });
  private events: EventLine[] = [];
  private readonly list = h("div", {});
  private readonly text = h("input", { type: "search", placeholder: "words, kind, user", "aria-label": "search events", spellcheck: false });
  private readonly older = h("button", { type: "button", onclick: () => void this.load() }, "older ones");
  private readonly soon = afterPause(120, () => this.draw());
  private readonly often = afterPause(250, () => this.draw());

  constructor(private readonly shared: Shared) {
    this.text.addEventListener("input", () => this.soon());
    fill(this.box, h("h2", {}, "Events"), h("div", { className: "row" }, this.text), this.list, h("div", { className: "row" }, this.older));
    void this.load();
  }

  update(change: Change): void {
    if (change.isAll) { this.events = []; void this.load(); return; }
    if (!change.events.length) return;
    this.take(change.events);
    this.often();
  }

  private async load(): Promise<void> {
    const first = this.events[0]?.line;
    try {
      const page = await get<Page<EventLine>>(`/events${query({ before: first, limit: 200 })}`);
      this.older.disabled = !page.items.length || page.next === null;
      this.take(page.items);
      this.draw();
    } catch (error) { this.shared.say((error as Error).message); }
  }

  private take(more: EventLine[]): void {
    const all = new Map(this.events.map((one) => [one.line, one]));
    for (const one of more) all.set(one.line, one);
    this.events = [...all.values()].sort((a, b) => a.line - b.line).slice(-5000);
  }

  private draw(): void {
    const words = this.text.value.trim().toLowerCase();
    const shown = this.events.filter((one) => !words || `${one.kind} ${one.text} ${one.user ?? ""}`.toLowerCase().includes(words)).slice(-500).reverse();
    fill(this.list, table("events", ["when", "what", "about", "by", "line"], shown.map((one) => [when(one.at_s, this.shared.cluster.status), one.text,
      one.job != null ? jobLink(one.job, `job ${one.job}`) : one.node ? nodeLink(one.node) : "", one.user ?? "", String(one.line)]), [4]));
  }
}
