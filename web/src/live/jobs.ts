// Jobs: running, waiting and ended ones in one table of any length, filtered and sorted here.
import { afterPause, breath, fill, h } from "../dom";
import { ask } from "./dialog";
import { away, between, count, plural } from "./format";
import { Grid } from "./grid";
import { type Change, type Job, OVER, fromAnswer, note } from "./model";
import { Ordered } from "./order";
import { type JobAnswer, type Page, get, post, query } from "./server";
import { type Shared, type View, button } from "./view";

const WAITING = new Set(["asking", "waiting", "held"]);
const RUNNING = new Set(["starting", "running", "stopping"]);
/** Jobs that have ended and are kept here; older ones are found by the history. */
const MOST_ENDED = 100_000;

/** Jobs that have ended: fetched once somebody looks, then as they end. */
export class Ended {
  readonly jobs = new Map<number, Job>();
  private isAsked = false;
  isComplete = false;
  private nGone = 0;
  private readonly soon = afterPause(400, () => void this.latest());

  constructor(private readonly tell: (jobs: Job[]) => void) {}

  async load(): Promise<void> {
    if (this.isAsked) return;
    this.isAsked = true;
    let cursor: string | null = "";
    while (cursor !== null && this.jobs.size < MOST_ENDED) {
      const page: Page<JobAnswer> = await get(`/jobs${query({ which: "ended", limit: 1000, cursor })}`);
      this.take(page.items);
      cursor = page.next ?? null;
      await breath();
    }
    this.isComplete = true;
  }

  gone(n: number): void {
    if (!this.isAsked || !n) return;
    this.nGone += n;
    this.soon();
  }

  private async latest(): Promise<void> {
    const n = Math.min(1000, this.nGone + 10);
    this.nGone = 0;
    try { this.take((await get<Page<JobAnswer>>(`/jobs${query({ which: "ended", sort: "ended", order: "desc", limit: n })}`)).items); } catch { /* the next end asks again */ }
  }

  private take(items: JobAnswer[]): void {
    const jobs = items.map(fromAnswer);
    for (const job of jobs) this.jobs.set(job.id, job);
    this.tell(jobs);
  }
}

export class JobsView implements View {
  readonly title = "jobs";
  readonly box: HTMLElement;
  private readonly ordered = new Ordered<Job>((job) => -job.id);
  private readonly grid: Grid<Job>;
  private readonly counts = h("p", { className: "quiet", role: "status", id: "job-count" });
  private readonly text = h("input", { type: "search", placeholder: "number, name, user, tenant, model", "aria-label": "search jobs", spellcheck: false });
  private readonly which = h("select", { "aria-label": "which jobs", id: "which" });
  private readonly soon = afterPause(120, () => void this.sort());
  private readonly ended: Ended;

  constructor(private readonly shared: Shared) {
    this.ended = new Ended((jobs) => { if (this.wantsEnded()) { this.ordered.change(jobs); this.show(); } });
    const now = () => shared.cluster.now();
    const progress = (job: Job) => {
      if (OVER.has(job.state)) return job.work > 0 ? `${Math.floor((100 * job.done) / job.work)} %` : "";
      return job.work > 0 ? `${Math.floor((100 * shared.cluster.doneBy(job, now())) / job.work)} %` : count(shared.cluster.doneBy(job, now()));
    };
    const expects = (job: Job) => {
      if (OVER.has(job.state)) return job.ended === null ? "" : `ended ${away(job.ended, now())}`;
      if (job.started !== null && job.end !== null && RUNNING.has(job.state)) return `ends ${away(job.end, now())}`;
      if (WAITING.has(job.state) && job.startMedian !== null) return `starts ${away(job.startMedian, now())} (${between({ low_s: job.startLow ?? 0, high_s: job.startHigh }, now())})`;
      return "";
    };
    this.grid = new Grid<Job>("jobs", [
      { name: "job", text: (job) => String(job.id), link: (job) => `#/jobs/${job.id}`, isNumber: true },
      { name: "name", text: (job) => job.name, className: () => "wide" },
      { name: "state", text: (job) => job.state, className: (job) => `state ${job.state}` },
      { name: "user", text: (job) => job.user },
      { name: "tenant", text: (job) => job.tenant },
      { name: "model", text: (job) => job.model },
      { name: "GPUs", text: (job) => (job.held && job.held !== job.gpus ? `${job.held} of ${job.gpus}` : String(job.gpus)), isNumber: true },
      { name: "priority", text: (job) => String(job.priority), isNumber: true },
      { name: "submitted", text: (job) => away(job.submitted, now()) },
      { name: "progress", text: progress, isNumber: true, isOrder: false },
      { name: "expected", text: expects, isOrder: false },
      { name: "reason", text: (job) => job.reason, className: () => "wide", isOrder: false },
    ], { column: 0, isDescending: true }, () => void this.sort());
    const words: [string, string][] = [["active", "running and waiting"], ["running", "running"], ["waiting", "waiting"], ["ended", "ended"], ["all", "all"], ["mine", "mine"]];
    fill(this.which, ...words.map(([value, text]) => h("option", { value }, text)));
    this.which.addEventListener("change", () => void this.sort());
    this.text.addEventListener("input", () => this.soon());
    this.box = h("section", { "aria-label": "jobs", className: "fills" },
      h("div", { className: "row" }, this.which, this.text, button(shared, "submit", "submit a job", () => void submit(shared), "main"), this.counts), this.grid.box);
    void this.sort();
  }

  update(change: Change): void {
    this.ended.gone(change.gone.length);
    if (change.isAll) { void this.sort(); return; }
    const begun = performance.now();
    this.ordered.change([...change.jobs, ...change.gone]);
    note("order", begun);
    this.show();
  }

  private wantsEnded(): boolean {
    return this.which.value === "ended" || this.which.value === "all";
  }

  private async sort(): Promise<void> {
    const { cluster, me } = this.shared;
    const which = this.which.value;
    if (this.wantsEnded()) void this.ended.load().catch((error: Error) => this.shared.say(error.message));
    const words = this.text.value.trim().toLowerCase();
    const isIn = (job: Job): boolean => {
      const isOver = OVER.has(job.state);
      switch (which) {
        case "running": return RUNNING.has(job.state);
        case "waiting": return WAITING.has(job.state);
        case "ended": return isOver && this.ended.jobs.has(job.id);
        case "mine": return !isOver && job.user === me.user && cluster.jobs.has(job.id);
        case "all": return isOver ? this.ended.jobs.has(job.id) : cluster.jobs.has(job.id);
        default: return !isOver && cluster.jobs.has(job.id);
      }
    };
    const isLive = (job: Job) => OVER.has(job.state) || cluster.jobs.has(job.id);
    const wanted = (job: Job) => isIn(job) && isLive(job) && (!words || job.words.includes(words));
    const keys: ((job: Job) => number | string)[] = [
      (job) => job.id, (job) => job.name.toLowerCase(), (job) => job.state, (job) => job.user, (job) => job.tenant, (job) => job.model, (job) => job.gpus, (job) => job.priority, (job) => job.submitted,
    ];
    const { column, isDescending } = this.grid.order;
    const live = cluster.jobs;
    const over = this.ended.jobs;
    const all = function* () { yield* live.values(); yield* over.values(); };
    if (await this.ordered.sort(all(), keys[column] ?? keys[0], isDescending, wanted)) this.show();
  }

  private show(): void {
    this.grid.show(this.ordered.rows);
    const status = this.shared.cluster.status;
    this.counts.textContent = `${plural(this.ordered.rows.length, "job")}${status ? `; ${count(status.n_running)} run, ${count(status.n_waiting)} wait in all` : ""}`;
  }
}

/** A form for the usual job; `rota submit` and the API know more. */
export async function submit(shared: Shared): Promise<void> {
  const tenants = shared.me.tenants;
  await ask("Submit a job", "", "submit", [
    { name: "name", label: "name", value: "job", isNeeded: true },
    ...(tenants.length > 1 ? [{ name: "tenant", label: "tenant", choices: tenants.map((one): [string, string] => [one, one]) }] : []),
    { name: "gpus", label: "GPUs", kind: "number" as const, value: "1", min: 1, isNeeded: true },
    { name: "command", label: "command", kind: "area" as const, about: "run by sh -c on its nodes; empty: an emulated job, which only sleeps" },
    { name: "model", label: "profile", about: "empty: none" },
    { name: "minutes", label: "expected length, in minutes", kind: "number" as const, value: "10", min: 0 },
    { name: "limit", label: "time limit, in minutes", kind: "number" as const, about: "empty: none", min: 0 },
    { name: "deadline", label: "done within, in minutes", kind: "number" as const, about: "empty: no deadline", min: 0 },
    { name: "priority", label: "priority", kind: "number" as const, value: "0" },
    { name: "hold", label: "keep it back until it is released", kind: "switch" as const },
  ], async (of) => {
    const minutes = (text: string | undefined) => (text ? Number(text) * 60 : undefined);
    const job: Record<string, unknown> = {
      name: of.name, gpus: Number(of.gpus), time_s: minutes(of.minutes), time_limit_s: minutes(of.limit), deadline_s: minutes(of.deadline), priority: Number(of.priority || 0),
      ...(of.tenant ? { tenant: of.tenant } : {}), ...(of.model ? { model: of.model } : {}), ...(of.hold === "true" ? { hold: true } : {}),
      ...(of.command ? { command: ["sh", "-c", of.command] } : { emulate: true }),
    };
    const { ids } = await post<{ ids: number[] }>("/jobs", { jobs: [job], key: Math.floor(Math.random() * 2 ** 52) });
    shared.say(`submitted as job ${ids.join(", ")}`);
    location.hash = `#/jobs/${ids[0]}`;
  });
}
