// Sliders, menus and switches: for what the policy declares, and for what it runs on.
import type { Choices, Menus, Parameter } from "./api";
import { fill, h } from "./dom";

interface Slider {
  label: string; about?: string; from: number; to: number; step: number; value: number; isChanged: boolean;
  show?: (value: number) => string; change: (value: number) => void;
}

function control(label: string, about: string | undefined, input: HTMLElement, shown?: HTMLElement, isChanged = false): HTMLElement {
  return h("label", { className: isChanged ? "control changed" : "control", title: about ?? "" },
    h("span", { className: "head" }, h("span", {}, label), shown), input);
}

export function slider(of: Slider): HTMLElement {
  const show = of.show ?? ((value: number) => String(Number(value.toPrecision(6))));
  const shown = h("output", {}, show(of.value));
  const input = h("input", { type: "range", min: String(of.from), max: String(of.to), step: String(of.step), value: String(of.value), "aria-label": of.label, "aria-description": of.about ?? "" });
  input.value = String(of.value);
  input.addEventListener("input", () => { shown.textContent = show(Number(input.value)); of.change(Number(input.value)); });
  return control(of.label, of.about, input, shown, of.isChanged);
}

export function menu(label: string, words: [string, string][], value: string, change: (value: string) => void, about?: string): HTMLElement {
  const select = h("select", { "aria-label": label, onchange: () => change(select.value) }, ...words.map(([word, text]) => h("option", { value: word }, text)));
  select.value = value;
  return control(label, about, select);
}

export function toggle(label: string, value: boolean, change: (value: boolean) => void, about?: string): HTMLElement {
  const input = h("input", { type: "checkbox", checked: value, onchange: () => change(input.checked) });
  return h("label", { title: about ?? "" }, input, ` ${label}`);
}

/** What the policy declares. */
export function showParameters(place: HTMLElement, parameters: Parameter[], set: Map<string, string>, change: () => void): void {
  if (place.contains(document.activeElement) && place.dataset.shape === shape(parameters)) return;
  place.dataset.shape = shape(parameters);
  if (!parameters.length) { fill(place, h("p", { className: "quiet" }, "It declares none. ", h("code", {}, 'param("name", 3, 1..=10, "what it does");'), " would be a slider here.")); return; }
  fill(place, ...parameters.map((one) => {
    const put = (value: string) => { if (value === one.default) set.delete(one.key); else set.set(one.key, value); change(); };
    const label = `${one.name} of ${one.part}`;
    if (one.kind === "switch") return toggle(label, one.value === "true", (on) => put(String(on)), one.about);
    if (one.kind === "word") return menu(label, one.words.map((word) => [word, word]), one.value, put, one.about);
    if (one.kind === "text" || one.low === null || one.high === null) {
      const input = h("input", { type: "text", value: one.value, onchange: () => put(input.value) });
      return control(label, one.about, input);
    }
    return numberSlider(label, one, put);
  }));
}

function shape(parameters: Parameter[]): string {
  return JSON.stringify(parameters.map((one) => [one.key, one.kind, one.low, one.high, one.words, one.default]));
}

/** A slider; over many powers of ten it moves by ratios. */
function numberSlider(label: string, one: Parameter, put: (value: string) => void): HTMLElement {
  const [low, high] = [one.low ?? 0, one.high ?? 1];
  const isWhole = one.kind === "whole";
  const text = (value: number) => (isWhole ? String(Math.round(value)) : Number.isInteger(value) ? value.toFixed(1) : String(Number(value.toPrecision(4))));
  const isWide = low > 0 ? high / low > 1000 : high - low > 1e5;
  const base = low > 0 ? low : (high - low) / 1e6;
  const to = (value: number) => (isWide ? Math.log(Math.max(value - (low > 0 ? 0 : low), base) / base) : value);
  const from = (place: number) => (isWide ? Math.min(high, (low > 0 ? 0 : low) + base * Math.exp(place)) : place);
  const [start, end] = isWide ? [0, to(high)] : [low, high];
  return slider({
    label, about: one.about, from: start, to: end, step: isWide ? (end - start) / 400 : isWhole ? 1 : (high - low) / 200,
    value: to(Number(one.value)), isChanged: one.value !== one.default, show: (place) => text(from(place)), change: (place) => put(text(from(place))),
  });
}

export interface ChoiceCalls { changed(): void; upload(file: File): void; seeds(n: number): void }

/** What it runs on. `traces` are the names of uploaded ones. */
export function showChoices(place: HTMLElement, menus: Menus, choices: Choices, traces: string[], nSeeds: number, calls: ChoiceCalls): void {
  const now: Choices = { ...menus.defaults, ...choices };
  const put = <K extends keyof Choices>(key: K, value: Choices[K]) => {
    if (value === menus.defaults[key] || value === undefined) delete choices[key];
    else choices[key] = value;
    calls.changed();
  };
  const isChanged = (key: keyof Choices) => key in choices;
  const hasTrace = (choices.trace ?? null) !== null || (menus.trace !== null && !choices.workload);
  const workloads: [string, string][] = menus.workloads.map((name) => [`w:${name}`, name]);
  if (menus.trace) workloads.unshift(["", menus.trace]);
  traces.forEach((name, number) => workloads.push([`t:${number}`, `${name} (uploaded)`]));
  const present = choices.trace != null ? `t:${choices.trace}` : now.workload ? `w:${now.workload}` : "";
  const choose = (word: string) => {
    delete choices.trace; delete choices.workload; delete choices.jobs; delete choices.jobs_per_hour; delete choices.cluster;
    if (word.startsWith("t:")) choices.trace = Number(word.slice(2));
    else if (word.startsWith("w:") && word.slice(2) !== menus.defaults.workload) choices.workload = word.slice(2);
    calls.changed();
    showChoices(place, menus, choices, traces, nSeeds, calls);
  };
  const file = h("input", { type: "file", accept: ".csv,.txt,.json,.gz,.log", "aria-label": "trace to upload", onchange: () => { const one = file.files?.[0]; if (one) calls.upload(one); } });
  const load = now.jobs_per_hour ?? 10;
  fill(place,
    menu("workload", workloads, present, choose),
    menu("cluster", menus.clusters.map((name) => [name, name]), now.cluster ?? "", (name) => put("cluster", name)),
    control("or a trace of yours", "a file in any format that rota trace formats lists", file),
    slider({ label: "jobs", from: 100, to: 10000, step: 100, value: now.jobs ?? 2000, isChanged: isChanged("jobs"), change: (value) => put("jobs", value) }),
    !hasTrace && slider({ label: "load (jobs/h)", from: 1, to: Math.max(40, load * 4), step: 0.5, value: load, isChanged: isChanged("jobs_per_hour"), change: (value) => put("jobs_per_hour", value) }),
    slider({ label: "seed", from: 1, to: 100, step: 1, value: now.seed ?? 1, isChanged: isChanged("seed"), change: (value) => put("seed", value) }),
    slider({ label: "seeds for intervals", from: 1, to: 40, step: 1, value: nSeeds, isChanged: false, change: calls.seeds }),
    slider({ label: "restart cost", about: "what each restart of a job costs; to the left, as the profiles say", from: -1, to: 600, step: 1, value: now.restart_cost_s ?? -1, isChanged: isChanged("restart_cost_s"), show: (value) => (value < 0 ? "as profiled" : `${value} s`), change: (value) => put("restart_cost_s", value < 0 ? undefined : value) }),
    slider({ label: "estimate noise", about: "spread of the durations that policies see", from: 0, to: 2, step: 0.05, value: now.estimate_noise ?? 0, isChanged: isChanged("estimate_noise"), change: (value) => put("estimate_noise", value) }),
    slider({ label: "failures", about: "mean time between failures of a node", from: 0, to: 100, step: 1, value: now.mtbf_h ? 101 - now.mtbf_h / 20 : 0, isChanged: isChanged("mtbf_h"), show: (value) => (value <= 0 ? "none" : `every ${(101 - value) * 20} h`), change: (value) => put("mtbf_h", value <= 0 ? undefined : (101 - value) * 20) }),
    slider({ label: "round", from: 30, to: 3600, step: 30, value: now.round_s ?? 300, isChanged: isChanged("round_s"), show: (value) => `${Math.round(value / 6) / 10} min`, change: (value) => put("round_s", value) }),
    !hasTrace && toggle("jobs of 1, 2, 4 and 8 GPUs", now.multi_gpu ?? false, (on) => put("multi_gpu", on)),
  );
}
