// The cluster as the page knows it: a snapshot, then changes, both from the head's stream.
import { breath } from "../dom";
import type { EventLine, JobAnswer, PolicyBrief, Status, Tenant } from "./server";

export interface Job {
  id: number; name: string; user: string; tenant: string; model: string; state: string; reason: string; gpus: number; held: number; nodes: number[]; priority: number;
  submitted: number; started: number | null; ended: number | null; deadline: number | null; done: number; rate: number | null; asOf: number; work: number; end: number | null;
  startLow: number | null; startMedian: number | null; startHigh: number | null;
  /** What a search looks in, in small letters. */
  words: string;
}
export interface Gpu { job: number | null; trouble: string; temperature: number | null; use: number | null }
export interface Node { index: number; name: string; state: string; gpu_type: string; rack: number; reason: string; gpus: Gpu[] }

/** What one update changed. */
export interface Change { isAll: boolean; jobs: Set<Job>; gone: Job[]; nodes: Set<string>; hasTenants: boolean; hasPolicy: boolean; events: EventLine[] }

type Row = unknown[];
interface Update {
  seq: number; now_s: number; status?: Status; columns?: { jobs: string[]; nodes: string[] }; jobs?: Row[]; nodes?: Row[]; tenants?: Tenant[];
  policy?: PolicyBrief; gone?: number[]; events?: EventLine[]; last_event?: number; n_jobs?: number;
}

export const OVER = new Set(["finished", "declined", "cancelled", "failed", "time-limit"]);
/** What is known of a job in a row of the stream; the snapshot says in which order. */
const JOB_COLUMNS = [
  "id", "name", "user", "tenant", "model", "state", "gpus", "held", "nodes", "priority", "submitted_s", "started_s", "deadline_s", "done", "rate", "as_of_s", "work", "reason", "end_s",
  "start_low_s", "start_median_s", "start_high_s",
] as const;
type Places = Record<(typeof JOB_COLUMNS)[number], number>;
const NOWHERE: number[] = [];
/** Rows that are taken in at once. */
const PIECE = 2000;

export class Cluster {
  status: Status | null = null;
  readonly jobs = new Map<number, Job>();
  nodes: Node[] = [];
  tenants: Tenant[] = [];
  policy: PolicyBrief | null = null;
  events: EventLine[] = [];
  private places = Object.fromEntries(JOB_COLUMNS.map((name, at) => [name, at])) as Places;
  private nodePlaces = new Map<string, number>();
  private nowAt = { head: 0, here: 0 };
  private readonly queue: [string, Update][] = [];
  private isBusy = false;

  constructor(private readonly tell: (change: Change) => void) {}

  /** The head's clock, in seconds. */
  now(): number {
    return this.nowAt.head + ((performance.now() - this.nowAt.here) / 1000) * (this.status?.clock.time_scale ?? 1);
  }

  /** Iterations by now: progress is not sent every time. */
  doneBy(job: Job, now: number): number {
    const done = job.done + (job.rate ?? 0) * Math.max(0, now - job.asOf);
    return job.work > 0 ? Math.min(done, job.work) : done;
  }

  /** Takes in a message of the stream, in its turn and in pieces. */
  take(kind: string, text: string): void {
    const begun = performance.now();
    this.queue.push([kind, JSON.parse(text) as Update]);
    note("parse", begun);
    if (!this.isBusy) void this.work();
  }

  private async work(): Promise<void> {
    this.isBusy = true;
    for (let next = this.queue.shift(); next; next = this.queue.shift()) await this.apply(...next);
    this.isBusy = false;
  }

  private async apply(kind: string, update: Update): Promise<void> {
    const change: Change = { isAll: kind === "snapshot", jobs: new Set(), gone: [], nodes: new Set(), hasTenants: !!update.tenants, hasPolicy: !!update.policy, events: update.events ?? [] };
    let begun = performance.now();
    if (kind === "snapshot") this.begin(update);
    if (update.now_s !== undefined) this.nowAt = { head: update.now_s, here: performance.now() };
    if (update.status) this.status = update.status;
    if (update.tenants) this.tenants = update.tenants;
    if (update.policy) this.policy = update.policy;
    if (update.events) this.events = [...this.events, ...update.events].slice(-2000);
    for (const row of update.nodes ?? []) { const node = this.node(row); change.nodes.add(node.name); }
    for (const id of update.gone ?? []) { const job = this.jobs.get(id); if (job) { this.jobs.delete(id); change.gone.push(job); } }
    const rows = update.jobs ?? [];
    for (let at = 0; at < rows.length; at += PIECE) {
      for (const row of rows.slice(at, at + PIECE)) {
        const job = this.job(row);
        if (OVER.has(job.state)) { this.jobs.delete(job.id); change.gone.push(job); } else { this.jobs.set(job.id, job); change.jobs.add(job); }
      }
      note("apply", begun);
      if (rows.length > PIECE) await breath();
      begun = performance.now();
    }
    this.tell(change);
    note("apply", begun);
  }

  private begin(update: Update): void {
    const { columns } = update;
    if (columns) {
      this.places = Object.fromEntries(JOB_COLUMNS.map((name) => [name, columns.jobs.indexOf(name)])) as Places;
      this.nodePlaces = new Map(columns.nodes.map((name, place) => [name, place]));
    }
    this.jobs.clear();
    this.nodes = [];
  }

  /** The same object for the same job: what is shown refers to it. */
  private job(row: Row): Job {
    const at = this.places;
    const text = (place: number) => (row[place] as string | undefined) ?? "";
    const number = (place: number) => (row[place] as number | null | undefined) ?? null;
    const id = number(at.id) ?? 0;
    const job = this.jobs.get(id) ?? ({ id, ended: null } as Job);
    const [name, user, tenant, model] = [text(at.name), text(at.user), text(at.tenant), text(at.model)];
    if (job.name !== name || job.user !== user || job.tenant !== tenant || job.model !== model) {
      job.name = name; job.user = user; job.tenant = tenant; job.model = model;
      job.words = `${id} ${name} ${user} ${tenant} ${model}`.toLowerCase();
    }
    job.state = text(at.state); job.reason = text(at.reason);
    job.gpus = number(at.gpus) ?? 0; job.held = number(at.held) ?? 0; job.nodes = (row[at.nodes] as number[] | null) ?? NOWHERE; job.priority = number(at.priority) ?? 0;
    job.submitted = number(at.submitted_s) ?? 0; job.started = number(at.started_s); job.deadline = number(at.deadline_s);
    job.done = number(at.done) ?? 0; job.rate = number(at.rate); job.asOf = number(at.as_of_s) ?? 0; job.work = number(at.work) ?? 0; job.end = number(at.end_s);
    job.startLow = number(at.start_low_s); job.startMedian = number(at.start_median_s); job.startHigh = number(at.start_high_s);
    return job;
  }

  private node(row: Row): Node {
    const cell = (name: string) => { const at = this.nodePlaces.get(name); return at === undefined ? null : row[at]; };
    const index = Number(cell("index") ?? 0);
    const health = new Set((cell("health") as number[] | null) ?? []);
    const before = this.nodes[index];
    const gpus = ((cell("gpus") as (number | null)[] | null) ?? []).map((job, at): Gpu => ({
      job, trouble: health.has(at) ? "not usable" : "", temperature: before?.gpus[at]?.temperature ?? null, use: before?.gpus[at]?.use ?? null,
    }));
    const name = String(cell("name") ?? index);
    const node = before?.name === name ? before : (this.nodes[index] = { index, name } as Node);
    return Object.assign(node, { state: String(cell("state") ?? ""), gpu_type: String(cell("gpu_type") ?? ""), rack: Number(cell("rack") ?? 0), reason: String(cell("reason") ?? ""), gpus });
  }
}

/** A job as a list gave it: those that have ended are not in the stream. */
export function fromAnswer(answer: JobAnswer): Job {
  return {
    id: answer.id, name: answer.name, user: answer.user, tenant: answer.tenant, model: answer.model, state: answer.state, reason: answer.reason, gpus: answer.gpus, held: answer.gpus_held, nodes: [],
    priority: answer.priority, submitted: answer.submitted_s, started: answer.started_s ?? null, ended: answer.ended_s ?? null, deadline: answer.deadline_s ?? null, done: answer.done, rate: null, asOf: 0,
    work: answer.work, end: null, startLow: null, startMedian: null, startHigh: null,
    words: `${answer.id} ${answer.name} ${answer.user} ${answer.tenant} ${answer.model}`.toLowerCase(),
  };
}

/** Milliseconds of the page's own work, for those who measure it. */
export function note(what: string, begun: number): void {
  performance.measure(`rota-${what}`, { start: begun, end: performance.now() });
  if (++nNoted % 4000 === 0) performance.clearMeasures();
}
let nNoted = 0;
