// What the head is asked (`/api/v1`), and the shapes of its answers.

export type Action = "submit" | "cancel" | "hold" | "release" | "requeue" | "priority" | "drain" | "give-up" | "policy-set" | "what-if" | "forecast" | "journal" | "rules" | "shutdown" | "stop-all" | "fast-forward";
export interface Me { user: string; role: string; tenants: string[]; csrf: string; expires_unix_s: number; may: Action[] }
export interface Status {
  version: string; epoch: number; now_s: number; clock: { born_unix_s: number; time_scale: number }; is_ready: boolean; policy: string; trouble: string;
  round_s: number; n_rounds: number; n_nodes: number; n_nodes_up: number; n_gpus: number; n_gpus_up: number; n_gpus_busy: number; n_waiting: number; n_running: number;
}
/** No highest value: beyond the horizon. */
export interface Spread { median_s: number; low_s: number; high_s: number | null }
export interface JobAnswer {
  id: number; name: string; user: string; tenant: string; model: string; state: string; reason: string; gpus: number; gpus_held: number; nodes: string[]; priority: number;
  submitted_s: number; started_s?: number | null; ended_s?: number | null; deadline_s?: number | null; done: number; work: number; rate?: number | null; end_s?: number | null;
  start?: Spread | null; launches: number; n_failures: number; n_preemptions: number; time_limit_s?: number | null; exit_code?: number | null;
}
export interface JobRequest {
  batch: number; levels: number[]; gpu_type: string; launcher: string; image: string; command: string[]; env: [string, string][]; workdir: string; processes: string; keep: boolean;
  grace_s: number; retries: number; checkpoint_every_s: number; after: { job: number; needs: string }[];
}
export interface JobPage extends JobAnswer {
  request: JobRequest | null; placement: { node: string; gpus: number[]; cpus: number; mem_bytes: number }[]; ranks: { node: string; state: string }[]; pace: number; best_rate?: number | null;
  checkpointed: number; held_by?: string | null; limit_at_s?: number | null; gpu_s: number;
}
export interface Attempt {
  launch: number; nodes: string[]; gpus: number; ordered_s?: number | null; started_s?: number | null; ended_s?: number | null; end?: string | null; reason: string;
  done_from: number; done_to: number | null; exit_code?: number | null;
}
export interface EventLine { line: number; at_s: number; kind: string; text: string; job?: number | null; node?: string | null; user?: string | null }
export interface JobHistory { attempts: Attempt[]; points: [number, number][]; events: EventLine[]; is_complete: boolean }
export interface Output { offset: number; text: string; next: number; is_end: boolean; is_lossy: boolean }
export interface GpuAnswer {
  job: number | null; tenant?: string | null; model?: string | null; is_healthy: boolean; reason?: string | null; temperature_c?: number | null; use_percent?: number | null;
  mem_used_bytes?: number | null; power_w?: number | null;
}
export interface NodeAnswer {
  name: string; index: number | null; state: string; reason: string; gpu_type: string; rack: number; cpus: number; mem_bytes: number; version: string; since_s: number; n_gpus: number; n_busy: number;
  jobs: number[]; gpus: GpuAnswer[]; is_emulated?: boolean;
}
export interface NodePage extends NodeAnswer { placements: { job: number; gpus: number[]; cpus: number; mem_bytes: number }[]; drained_reason: string; events: EventLine[] }
export interface Tenant { name: string; quota: number | null; gpus_held: number; n_running: number; n_waiting: number; gpus_waiting: number }
export interface PolicyPart { name: string; file: string; is_shipped: boolean; text: string }
export interface PolicyParameter { part: string; name: string; kind: string; default: string; value: string; doc: string; min?: number | null; max?: number | null; choices?: string[] | null }
export interface Policy { name: string; set: [string, string][]; refused: string; trouble: string; parts: PolicyPart[]; parameters?: PolicyParameter[] }
export interface PolicyBrief { name: string; set: [string, string][]; refused: string }
export interface WhatIf { text: string; changes: { job: number; what: string; gpus_from: number; gpus_to: number; nodes: string[] }[]; n_kept?: number }
export interface Forecast {
  policy: string; made_at_s: number; seeds: number; noise: number; horizon_s: number; took_ms: number; coverage: number;
  jobs: { job: number; start: Spread | null; end: Spread | null; n_started: number }[]; gpus_busy: [number, number, number, number][]; n_waiting: [number, number, number, number][];
}
export interface Page<T> { items: T[]; next: string | null; total?: number }

/** An answer that says why not. */
export class Refused extends Error {
  constructor(readonly status: number, readonly code: string, message: string) { super(message); }
}

let csrf = "";

async function answered<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (response.ok) return (text ? JSON.parse(text) : null) as T;
  let error = { code: "", message: text.trim() || response.statusText };
  try { error = { ...error, ...JSON.parse(text).error }; } catch { /* a plain sentence */ }
  throw new Refused(response.status, error.code, error.message);
}

export async function get<T>(path: string): Promise<T> {
  return answered(await fetch(`/api/v1${path}`, { headers: { accept: "application/json" } }));
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  return answered(await fetch(`/api/v1${path}`, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", "x-rota-csrf": csrf } }));
}

export async function whoAmI(): Promise<Me> {
  const me = await get<Me>("/me");
  csrf = me.csrf;
  return me;
}

/** Words for the address behind `?`; what is empty is left out. */
export function query(of: Record<string, string | number | null | undefined>): string {
  const words = Object.entries(of).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return words.length ? `?${new URLSearchParams(words.map(([name, value]) => [name, String(value)]))}` : "";
}
