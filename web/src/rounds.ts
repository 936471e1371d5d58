// Round by round: one decision of a run, or of two side by side: the queue with its keys, what became of every job, what it cost.
import { type Result, post } from "./api";
import { afterPause, breath, fill, h } from "./dom";

interface JobAt {
  job: string; model: string; asked: number; queued: number | null; keys: (number | string | null)[]; becomes: string; gpus: number | null;
  nodes: string[] | null; of_best: number | null; why: string | null;
}
interface StageCost { stage: string; file: string | null; operations: number; took_us: number; is_within: boolean }
interface Round {
  decision: number; time_s: number; waiting: number; running: number; gpus_held: number; gpus_up: number;
  stages: StageCost[]; keys: string[]; is_by_keys: boolean; ordered_at: string | null;
  operations: number; took_us: number; printed: string[]; jobs: JobAt[]; n_more: number;
}
interface Difference { text: string; time_s: number | null; job: string | null; decisions: [number | null, number | null] }
type Pick = (job: string, policy: number) => void;

export class Rounds {
  private result: Result | null = null;
  private decision = 0;
  private policy = 0;
  /** The policy shown beside it; -1 for none. */
  private other = -1;
  private isOpen = false;
  /** The newest question: an answer to an older one comes too late. */
  private turn = 0;
  private readonly select = h("select", { "aria-label": "policy whose rounds are shown" });
  private readonly beside = h("select", { "aria-label": "policy whose rounds are shown beside it" });
  private readonly scrubber = h("input", { type: "range", min: "0", value: "0", "aria-label": "decision" });
  private readonly job = h("input", { type: "text", placeholder: "a job's name", "aria-label": "job to follow", spellcheck: false });
  private readonly said = h("p", { role: "status", className: "quiet" }, "Move the scrubber to see a decision.");
  private readonly parting = h("button", { type: "button", id: "parting", onclick: () => void this.part() }, "first difference");
  private readonly panels: [Panel, Panel];
  private readonly place: HTMLElement;
  private readonly soon = afterPause(60, () => void this.load(null));

  constructor(place: HTMLElement, pick: Pick) {
    this.panels = [new Panel("round-jobs", pick), new Panel("round-jobs-beside", pick)];
    this.place = h("div", { className: "beside" }, this.panels[0].box, this.panels[1].box);
    const step = (by: number) => () => this.go(this.decision + by);
    fill(place, h("div", { className: "row" }, this.select, "beside", this.beside, this.parting),
      h("div", { className: "row" }, h("button", { type: "button", onclick: step(-1) }, "back"), h("button", { type: "button", onclick: step(1) }, "forward"), this.job,
        h("button", { type: "button", onclick: () => void this.load(this.job.value.trim()) }, "next change of the job")),
      this.scrubber, this.said, this.place);
    this.scrubber.addEventListener("input", () => this.go(Number(this.scrubber.value)));
    this.select.addEventListener("change", () => { this.policy = Number(this.select.value); this.choices(); this.go(this.decision); });
    this.beside.addEventListener("change", () => { this.other = Number(this.beside.value); this.choices(); this.go(this.decision); });
    this.choices();
  }

  /** Another result: its rounds are asked for when somebody looks at one. */
  show(result: Result): void {
    this.result = result;
    this.policy = Math.min(this.policy, result.labels.length - 1);
    if (this.other >= result.labels.length) this.other = -1;
    this.choices();
    if (this.isOpen) this.soon();
  }

  private choices(): void {
    const labels = this.result?.labels ?? [];
    if (this.other === this.policy) this.other = -1;
    const option = (label: string, at: number) => h("option", { value: String(at) }, label);
    fill(this.select, ...labels.map(option));
    fill(this.beside, option("no other policy", -1), ...labels.map(option).filter((_one, at) => at !== this.policy));
    this.select.value = String(this.policy);
    this.beside.value = String(this.other);
    this.parting.disabled = this.other < 0;
    this.parting.title = this.other < 0 ? "choose a policy beside it first" : "go to the first decision in which they differ";
    this.place.classList.toggle("two", this.other >= 0);
    this.panels[1].box.hidden = this.other < 0;
    this.scrubber.max = String(Math.max(0, (this.result?.n_decisions[this.policy] ?? 1) - 1));
  }

  private go(decision: number): void {
    this.decision = Math.max(0, Math.min(decision, Number(this.scrubber.max)));
    this.scrubber.value = String(this.decision);
    this.isOpen = true;
    this.soon();
  }

  /** The first decision in which the two policies differ. */
  private async part(): Promise<void> {
    const result = this.result;
    if (!result || this.other < 0) return;
    try {
      const found = await post<Difference>("/api/difference", { id: result.id, policy: this.policy, other: this.other });
      if (result !== this.result) return;
      if (found.decisions[0] === null) { this.said.textContent = `${result.labels[this.policy]} and ${result.labels[this.other]} decide alike to the end.`; return; }
      if (found.job) this.job.value = found.job;
      this.decision = found.decisions[0];
      this.scrubber.value = String(this.decision);
      this.isOpen = true;
      await this.load(null);
    } catch (error) { this.said.textContent = (error as Error).message; }
  }

  private async load(nextOf: string | null): Promise<void> {
    const result = this.result;
    if (!result || nextOf === "") return;
    const { policy, other } = this;
    const turn = ++this.turn;
    const isOld = () => turn !== this.turn || result !== this.result || policy !== this.policy || other !== this.other;
    try {
      const own = await post<Round>("/api/round", { id: result.id, policy, decision: this.decision, next_of: nextOf });
      if (isOld()) return;
      this.isOpen = true;
      this.decision = own.decision;
      this.scrubber.value = String(own.decision);
      const beside = other < 0 ? null : await post<Round>("/api/round", { id: result.id, policy: other, decision: 0, by_time_s: own.time_s });
      if (isOld()) return;
      this.panels[0].draw(own, beside, result.labels[policy], policy, this.job.value.trim());
      await breath();
      if (beside && !isOld()) this.panels[1].draw(beside, own, result.labels[other], other, this.job.value.trim());
      this.said.textContent = beside ? apart(own, beside) : facts(own);
    } catch (error) { this.said.textContent = (error as Error).message; }
  }
}

const hours = (round: Round) => (round.time_s / 3600).toFixed(2);
const what = (one: JobAt) => `${one.becomes}|${one.gpus ?? ""}|${(one.nodes ?? []).join()}`;
const count = (n: number) => n.toLocaleString("en");

function facts(round: Round): string {
  return `decision ${round.decision} at ${hours(round)} h: ${round.running} jobs run, ${round.waiting} wait, ${round.gpus_held} of ${round.gpus_up} GPUs held`;
}

function apart(own: Round, beside: Round): string {
  const others = new Map(beside.jobs.map((one) => [one.job, what(one)]));
  const n = own.jobs.filter((one) => others.has(one.job) && others.get(one.job) !== what(one)).length;
  return `decision ${own.decision} at ${hours(own)} h, beside decision ${beside.decision} at ${hours(beside)} h: ${n ? `${n} job${n === 1 ? "" : "s"} fare${n === 1 ? "s" : ""} differently, marked ≠` : "every job fares alike"}`;
}

/** One decision of one policy. */
class Panel {
  readonly box = h("div", { className: "panel" });
  private readonly table: HTMLTableElement;

  constructor(id: string, private readonly pick: Pick) {
    this.table = h("table", { id, className: "jobs" });
  }

  draw(round: Round, beside: Round | null, label: string, policy: number, followed: string): void {
    const others = new Map(beside?.jobs.map((one) => [one.job, what(one)]) ?? []);
    const heads = ["#", "job", "what becomes of it", ...round.keys, "GPUs", "asked", "of best speed", "where, or for want of what", "model"];
    const row = (one: JobAt) => {
      const differs = beside !== null && others.get(one.job) !== what(one);
      return h("tr", { className: [differs && "differs", one.job === followed && "followed"].filter(Boolean).join(" ") },
        h("td", {}, one.queued === null ? "" : String(one.queued)),
        h("th", { scope: "row" }, h("button", { type: "button", title: "explain", onclick: () => this.pick(one.job, policy) }, one.job), differs && h("span", { title: "it fares differently under the other policy" }, " ≠")),
        h("td", {}, one.becomes),
        ...one.keys.map((key) => h("td", { className: "key" }, key === null ? "" : typeof key === "string" ? key : String(Number(key.toPrecision(6))))),
        h("td", {}, one.gpus === null ? "" : String(one.gpus)), h("td", {}, String(one.asked)),
        h("td", {}, one.of_best === null ? "" : `${Math.round(100 * one.of_best)} %`), h("td", {}, one.nodes ? [...new Set(one.nodes)].join(", ") : one.why ?? ""), h("td", {}, one.model));
    };
    const head = (text: string, at: number) => h("th", { scope: "col", className: at >= 3 && at < 3 + round.keys.length ? "key" : "" }, text);
    this.table.setAttribute("aria-label", `queue and decisions under ${label}`);
    fill(this.table, h("thead", {}, h("tr", {}, ...heads.map(head))), h("tbody", {}, ...round.jobs.map(row)));
    fill(this.box, h("h3", {}, label), beside && h("p", { className: "quiet" }, facts(round)), h("p", {}, ordered(round)), costs(round),
      round.printed.length ? h("pre", { "aria-label": "lines printed by the policy" }, round.printed.join("\n")) : null,
      h("div", { className: "scroll tall", tabIndex: 0, role: "region", "aria-label": `jobs at this decision under ${label}` }, this.table),
      round.n_more ? h("p", { className: "quiet" }, `${count(round.n_more)} more jobs wait further back`) : null);
    this.table.querySelector(".followed")?.scrollIntoView({ block: "nearest" });
  }
}

/** By which keys the policy ordered the queue. */
function ordered(round: Round): HTMLElement {
  if (!round.keys.length) return h("span", { className: "quiet" }, "The script made its plan without an order by keys.");
  const keys = round.keys.flatMap((key, at) => [at ? ", then " : "", h("code", {}, key)]);
  const place = round.ordered_at ? ` (${round.ordered_at})` : " (no part orders: the default)";
  return h("span", {}, "Ordered by ", ...keys, `${place}, smallest first${round.is_by_keys ? "" : "; then rearranged by the script"}.`);
}

/** Operations and microseconds by stage. */
function costs(round: Round): HTMLElement {
  const rows = round.stages.map((one) => h("tr", {}, h("th", { scope: "row" }, one.is_within ? `of which ${one.stage}` : one.stage),
    h("td", {}, one.file ?? "by default"), h("td", { className: "number" }, count(one.operations)), h("td", { className: "number" }, count(one.took_us))));
  const sum = h("tr", {}, h("th", { scope: "row" }, "all"), h("td", {}), h("td", { className: "number" }, count(round.operations)), h("td", { className: "number" }, count(round.took_us)));
  return h("table", { className: "costs" }, h("caption", { className: "quiet" }, "what each stage cost"),
    h("thead", {}, h("tr", {}, ...["stage", "part", "operations", "µs"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, ...rows, sum));
}
