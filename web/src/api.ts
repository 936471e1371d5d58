// What the server is asked, and the shapes of its answers.

export interface Part { name: string; file: string; text: string; is_file: boolean; version: string }
export interface Entry { kind: string; owner: string; name: string; signature: string; doc: string }
export interface Script { name: string; role: string; summary: string }

export interface Choices {
  cluster?: string | null; workload?: string | null; trace?: number | null; jobs?: number | null;
  jobs_per_hour?: number | null; multi_gpu?: boolean | null; seed?: number | null; restart_cost_s?: number | null;
  estimate_noise?: number | null; mtbf_h?: number | null; round_s?: number | null;
}

export interface Menus { clusters: string[]; workloads: string[]; defaults: Choices; trace: string | null }

export interface Start {
  version: string; policy: string; against: string[]; parts: Part[]; scripts: Script[]; entries: Entry[]; menus: Menus;
}

export interface Diagnostic {
  part: number | null; line: number | null; column: number | null; message: string; hint: string | null; stage: string | null;
}

export interface Parameter {
  key: string; part: string; name: string; about: string; kind: "switch" | "whole" | "number" | "word" | "text";
  value: string; default: string; low: number | null; high: number | null; words: string[];
}

export interface Axis { label: string; from: number; to: number; log: boolean; ticks: [number, string][] }
export interface Line { label: string; colour: number; dash: number; x: number[]; y: number[] }
export interface Bar { label: string; colour: number; value: number; text: string }
export interface Figure { name: string; title: string; caption: string; x: Axis; y: Axis; lines?: Line[]; bars?: Bar[] }
export interface Cell { text: string; best: boolean; value: number | null }
export interface Table {
  headings: { name: string; unit: string; better: string }[];
  rows: { policy: string; cells: Cell[] }[];
}
export interface Compared { name: string; better: string; n: number; ratio: number; low: number; high: number; told_apart: boolean }

export interface Result {
  kind: "result"; id: number; seed: string; n_jobs: number; workload: string;
  cluster: { name: string; gpus: number; nodes: number };
  labels: string[]; n_decisions: number[]; table: Table; figures: Figure[];
}
export interface Seeds { kind: "seeds"; n: number; of: number; against: { policy: string; figures: Compared[] }[] }

export type Message =
  | { kind: "checked"; diagnostics: Diagnostic[]; parameters?: Parameter[]; label?: string }
  | { kind: "refused" | "remark"; message: string }
  | { kind: "failed"; diagnostics: Diagnostic[] }
  | Result | Seeds | { kind: "done" };

export interface Question {
  policy: string; texts: string[]; set: [string, string][]; against: string[]; choices: Choices; n_seeds: number;
}

/** An answer that says why not. */
export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try { message = JSON.parse(text).message ?? text; } catch { /* a plain sentence */ }
  throw new Refused(response.status, message);
}

export async function get<T>(path: string): Promise<T> {
  return (await checked(await fetch(path))).json();
}

export async function getBytes(path: string): Promise<ArrayBuffer> {
  return (await checked(await fetch(path))).arrayBuffer();
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  return (await checked(await postRaw(path, body))).json();
}

export async function postForBlob(path: string, body: unknown): Promise<Blob> {
  return (await checked(await postRaw(path, body))).blob();
}

function postRaw(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  return fetch(path, { method: "POST", body: JSON.stringify(body), signal });
}

export async function upload(file: File): Promise<{ trace: number }> {
  // A header holds plain characters only.
  const name = file.name.replace(/[^\x20-\x7e]/g, "_").slice(0, 200);
  const response = await fetch("/api/trace", { method: "POST", body: file, headers: { "x-trace-name": name } });
  return (await checked(response)).json();
}

/** Asks, and hands on each line of the answer as it comes. */
export async function run(question: Question, signal: AbortSignal, take: (message: Message) => void): Promise<void> {
  const response = await checked(await postRaw("/api/run", question, signal));
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line && !signal.aborted) take(JSON.parse(line));
  }
}
