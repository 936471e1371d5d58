// Round by round: one decision of a run, with what became of every job.
import { type Result, post } from "./api";
import { afterPause, fill, h } from "./dom";

interface JobAt { job: string; model: string; asked: number; becomes: string; gpus: number | null; nodes: string[] | null; of_best: number | null; why: string | null }
interface Round {
  decision: number; time_s: number; waiting: number; running: number; gpus_held: number; gpus_up: number;
  operations: number; took_us: number; printed: string[]; jobs: JobAt[]; n_more: number;
}

export class Rounds {
  private result: Result | null = null;
  private decision = 0;
  private policy = 0;
  private readonly select = h("select", { "aria-label": "policy whose rounds are shown" });
  private readonly scrubber = h("input", { type: "range", min: "0", value: "0", "aria-label": "decision" });
  private readonly job = h("input", { type: "text", placeholder: "a job's name", "aria-label": "job to follow", spellcheck: false });
  private readonly facts = h("p", { role: "status", className: "quiet" }, "Move the scrubber to see a decision.");
  private readonly printed = h("pre", { hidden: true, "aria-label": "lines printed by the policy" });
  private readonly table = h("table", { id: "round-jobs" });
  private readonly soon = afterPause(60, () => void this.load(null));

  constructor(place: HTMLElement, private readonly pick: (job: string, policy: number) => void) {
    const step = (by: number) => () => this.go(this.decision + by);
    fill(place, h("div", { className: "row" }, this.select,
      h("button", { type: "button", onclick: step(-1) }, "back"), h("button", { type: "button", onclick: step(1) }, "forward"), this.job,
      h("button", { type: "button", onclick: () => void this.load(this.job.value.trim()) }, "next change of the job")),
    this.scrubber, this.facts, this.printed, h("div", { className: "scroll tall" }, this.table));
    this.scrubber.addEventListener("input", () => this.go(Number(this.scrubber.value)));
    this.select.addEventListener("change", () => { this.policy = Number(this.select.value); this.limits(); this.go(this.decision); });
  }

  /** Another result: its rounds are asked for when somebody looks at one. */
  show(result: Result): void {
    this.result = result;
    this.policy = Math.min(this.policy, result.labels.length - 1);
    fill(this.select, ...result.labels.map((label, at) => h("option", { value: String(at) }, label)));
    this.select.value = String(this.policy);
    this.limits();
    if (this.table.rows.length) this.soon();
  }

  private limits(): void {
    this.scrubber.max = String(Math.max(0, (this.result?.n_decisions[this.policy] ?? 1) - 1));
  }

  private go(decision: number): void {
    this.decision = Math.max(0, Math.min(decision, Number(this.scrubber.max)));
    this.scrubber.value = String(this.decision);
    this.soon();
  }

  private async load(nextOf: string | null): Promise<void> {
    const result = this.result;
    if (!result || nextOf === "") return;
    try {
      const round = await post<Round>("/api/round", { id: result.id, policy: this.policy, decision: this.decision, next_of: nextOf });
      if (result !== this.result) return;
      this.decision = round.decision;
      this.scrubber.value = String(round.decision);
      this.draw(round);
    } catch (error) { this.facts.textContent = (error as Error).message; }
  }

  private draw(round: Round): void {
    const hours = (round.time_s / 3600).toFixed(2);
    this.facts.textContent = `decision ${round.decision} at ${hours} h: ${round.running} jobs run, ${round.waiting} wait, ${round.gpus_held} of ${round.gpus_up} GPUs held; ` +
      `${round.operations.toLocaleString("en")} operations, ${round.took_us.toLocaleString("en")} µs`;
    this.printed.hidden = !round.printed.length;
    this.printed.textContent = round.printed.join("\n");
    const heads = ["job", "model", "asked", "what becomes of it", "GPUs", "of best speed", "where, or for want of what"];
    const row = (one: JobAt) => h("tr", {},
      h("th", { scope: "row" }, h("button", { type: "button", title: "explain", onclick: () => this.pick(one.job, this.policy) }, one.job)),
      h("td", {}, one.model), h("td", {}, String(one.asked)), h("td", {}, one.becomes), h("td", {}, one.gpus === null ? "" : String(one.gpus)),
      h("td", {}, one.of_best === null ? "" : `${Math.round(100 * one.of_best)} %`), h("td", {}, one.nodes ? [...new Set(one.nodes)].join(", ") : one.why ?? ""));
    fill(this.table, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...round.jobs.map(row)));
    if (round.n_more) this.facts.append(`; ${round.n_more} more jobs are not listed`);
  }
}
