// The policy: its source in an editor, its parameters, what an edited one would do now, and setting it.
import { Editor } from "../editor";
import { afterPause, fill, h } from "../dom";
import type { Diagnostic, Part } from "../api";
import { plural } from "./format";
import type { Change } from "./model";
import { type Policy, type PolicyParameter, type WhatIf, get, post, query } from "./server";
import { type Shared, type View, act, button, jobLink, links, table } from "./view";

export class PolicyView implements View {
  readonly title = "policy";
  readonly box = h("section", { "aria-label": "policy" });
  private policy: Policy | null = null;
  private name = "";
  /** The parameters that are shown: they are drawn again only when they change. */
  private shape = "";
  private readonly set = new Map<string, string>();
  private readonly head = h("div", {});
  private readonly tabs = h("div", { className: "tabs", role: "tablist", "aria-label": "parts of the policy" });
  private readonly place = h("div", { className: "editor", id: "policy-editor", role: "tabpanel", "aria-label": "text of the part" });
  private readonly parameters = h("div", { className: "controls" });
  private readonly answer = h("div", { id: "what-if", role: "status" });
  private readonly wrong = h("pre", { className: "wrong", role: "alert", hidden: true, id: "policy-wrong" });
  private readonly other = h("input", { type: "text", list: "shipped", placeholder: "another policy, such as srtf+tune", "aria-label": "policy to edit", spellcheck: false });
  private readonly editor: Editor;
  private readonly soon = afterPause(300, () => this.showParameters());

  constructor(private readonly shared: Shared) {
    this.editor = new Editor(this.place, [], { changed: () => { this.showTabs(); this.soon(); }, save: () => undefined });
    const names = h("datalist", { id: "shipped" });
    void get<{ scripts: { name: string; summary: string }[] }>("/policy/shipped").then(({ scripts }) => fill(names, ...scripts.map((one) => h("option", { value: one.name }, one.summary))), () => undefined);
    const open = () => void this.load(this.other.value.trim());
    this.other.addEventListener("change", open);
    fill(this.box, h("h2", {}, "Policy"), this.head, h("div", { className: "row" }, this.other, names, h("button", { type: "button", onclick: open }, "open"), h("button", { type: "button", onclick: () => void this.load("") }, "the one in use")),
      this.tabs, this.place, this.wrong, h("h2", {}, "Parameters"), this.parameters,
      h("div", { className: "row" }, button(shared, "what-if", "what if?", () => void this.ask(), "main"), button(shared, "policy-set", "set it", () => void this.put()), button(shared, "policy-set", "reload its files", () => void this.reload())), this.answer);
    void this.load("");
  }

  update(change: Change): void {
    if (!change.hasPolicy) return;
    this.showHead();
    const isOther = this.shared.cluster.policy && this.policy && this.name === "" && decided(this.shared.cluster.policy) !== decided(this.policy);
    if (isOther && !this.isEdited()) void this.load("");
    else if (isOther) this.shared.say("another policy decides now; what you edited is still here");
  }

  private async load(name: string): Promise<void> {
    try {
      const policy = await get<Policy>(name ? `/policy/of${query({ policy: name })}` : "/policy");
      [this.policy, this.name] = [policy, name];
      this.set.clear();
      for (const [key, value] of policy.set) this.set.set(key, value);
      this.editor.open(policy.parts.map((part): Part => ({ ...part, is_file: !part.is_shipped, version: "" })));
      this.wrong.hidden = true;
      this.shape = "";
      fill(this.answer);
      this.showHead();
      this.showTabs();
      this.showParameters();
    } catch (error) { this.say((error as Error).message); }
  }

  private showHead(): void {
    const { policy: inUse, status } = this.shared.cluster;
    const trouble = status?.trouble || inUse?.refused || "";
    fill(this.head, h("p", { id: "policy-in-use" }, "In use: ", h("strong", {}, inUse?.name ?? this.policy?.name ?? ""), this.name ? ". Below is another one." : "."), trouble ? h("p", { className: "wrong" }, trouble) : null);
  }

  private isEdited(): boolean {
    return this.editor.texts().some((text, at) => text !== this.policy?.parts[at]?.text);
  }

  private showTabs(): void {
    const parts = this.policy?.parts ?? [];
    const texts = this.editor.texts();
    fill(this.tabs, ...parts.map((part, at) => h("button", {
      type: "button", role: "tab", "aria-selected": String(at === this.editor.active), "aria-controls": "policy-editor", tabIndex: at === this.editor.active ? 0 : -1, title: part.file,
      onclick: () => { this.editor.show(at); this.showTabs(); },
      onkeydown: (event: KeyboardEvent) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (!step) return;
        this.editor.show((at + step + parts.length) % parts.length);
        this.showTabs();
        this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
      },
    }, `${part.name}${texts[at] !== part.text ? " *" : ""}`)));
  }

  private showParameters(): void {
    const parameters = this.policy?.parameters ?? declared(this.policy?.parts ?? [], this.editor.texts());
    const shape = JSON.stringify(parameters);
    if (shape === this.shape) return;
    this.shape = shape;
    const one = (of: PolicyParameter) => {
      const key = `${of.part}.${of.name}`;
      const value = this.set.get(key) ?? this.set.get(of.name) ?? of.value;
      const put = (text: string) => { this.set.delete(of.name); if (text === of.default) this.set.delete(key); else this.set.set(key, text); };
      const id = `parameter-${key}`;
      const input = of.kind === "bool" ? h("input", { type: "checkbox", id, checked: value === "true", onchange: () => put(String((input as HTMLInputElement).checked)) })
        : of.choices?.length ? h("select", { id, onchange: () => put(input.value) }, ...of.choices.map((word) => h("option", { value: word }, word)))
        : h("input", { id, type: of.kind === "text" ? "text" : "number", step: of.kind === "integer" ? "1" : "any", min: of.min != null ? String(of.min) : "", max: of.max != null ? String(of.max) : "", onchange: () => put(input.value) });
      if (of.kind !== "bool") input.value = value;
      const range = of.min != null && of.max != null ? `${of.min} to ${of.max}; ` : "";
      return h("label", { className: "control", "for": id }, h("span", {}, `${of.name} of ${of.part}`), input, h("small", { className: "quiet" }, `${of.doc} (${range}default ${of.default})`));
    };
    fill(this.parameters, ...(parameters.length ? parameters.map(one) : [h("p", { className: "quiet" }, "It declares none.")]));
  }

  /** The policy as it is sent: parts that were changed come with their texts, under the names of files. */
  private body(): { policy: string; set: [string, string][]; texts: [string, string][] } {
    const policy = this.policy;
    const texts = this.editor.texts();
    const parts = (policy?.parts ?? []).map((part, at) => {
      const isText = texts[at] !== part.text || !part.is_shipped;
      const file = `${part.name.replace(/^.*\//, "").replace(/\.rhai$/, "")}.rhai`;
      return isText ? { word: file, text: [file, texts[at]] as [string, string] } : { word: part.name, text: null };
    });
    return { policy: parts.map((part) => part.word).join("+"), set: [...this.set], texts: parts.map((part) => part.text).filter((text): text is [string, string] => text !== null) };
  }

  /** What was refused is marked at its line, if the message says where. */
  private say(message: string): void {
    this.wrong.textContent = message;
    this.wrong.hidden = !message;
    const place = message.match(/([\w./-]+\.rhai):(\d+)(?::(\d+))?/);
    const parts = this.policy?.parts ?? [];
    const stem = place?.[1].replace(/^.*\//, "").replace(/\.rhai$/, "");
    const part = parts.findIndex((one) => one.name.replace(/^.*\//, "").replace(/\.rhai$/, "") === stem);
    const found: Diagnostic[] = place && part >= 0 ? [{ part, line: Number(place[2]), column: Number(place[3] ?? 1), message: message.split("\n")[0], hint: null, stage: null }] : [];
    if (part >= 0 && part !== this.editor.active) { this.editor.show(part); this.showTabs(); }
    this.editor.mark(found);
  }

  private async ask(): Promise<void> {
    this.say("");
    fill(this.answer, h("p", { className: "quiet" }, "…"));
    try {
      const said = await post<WhatIf>("/policy/what-if", this.body());
      const rows = said.changes.slice(0, 200).map((one) => [jobLink(one.job), one.what, `${one.gpus_from} → ${one.gpus_to}`, links(one.nodes)]);
      fill(this.answer, h("h2", {}, "What it would do now"), said.changes.length ? table("changes", ["job", "what", "GPUs", "nodes"], rows, [2]) : h("p", {}, "Nothing would change."),
        said.n_kept === undefined ? null : h("p", { className: "quiet" }, `${plural(said.n_kept, "job")} would go on as ${said.n_kept === 1 ? "it is" : "they are"}.`), h("details", {}, h("summary", {}, "in words"), h("pre", {}, said.text)));
    } catch (error) { fill(this.answer); this.say((error as Error).message); }
  }

  private async put(): Promise<void> {
    this.say("");
    const body = this.body();
    const isDone = await act(this.shared, "Set the policy", `${body.policy} decides from the next round on.${body.texts.length ? " Its edited texts are sent along." : ""} "What if?" shows what it would do now.`, "set it", [],
      "/policy/set", () => body, (answer: { text: string }) => answer.text);
    if (isDone) { this.other.value = ""; await this.load(""); }
  }

  private async reload(): Promise<void> {
    try { const { text } = await post<{ text: string }>("/policy/reload", {}); this.shared.say(text); await this.load(""); } catch (error) { this.say((error as Error).message); }
  }
}

/** What decides, in a word. */
function decided(policy: { name: string; set: [string, string][] }): string {
  return JSON.stringify([policy.name, policy.set]);
}

/** What scripts declare: `param("name", default, range or words, "one sentence")`. */
function declared(parts: { name: string }[], texts: string[]): PolicyParameter[] {
  const call = /^\s*param\(\s*"([^"]+)"\s*,\s*("[^"]*"|[\w.+-]+)\s*,\s*(?:(\[[^\]]*\]|[\w.+-]+?\s*\.\.=?\s*[\w.+-]+)\s*,\s*)?"((?:[^"\\]|\\.)*)"/gm;
  return parts.flatMap((part, at) => [...(texts[at] ?? "").matchAll(call)].map(([, name, given, domain = "", doc]): PolicyParameter => {
    const value = given.replaceAll('"', "");
    const choices = domain.startsWith("[") ? [...domain.matchAll(/"([^"]*)"/g)].map((word) => word[1]) : null;
    const [min, max] = domain.includes("..") ? domain.split(/\.\.=?/).map(Number) : [null, null];
    const kind = value === "true" || value === "false" ? "bool" : given.startsWith('"') ? "text" : value.includes(".") ? "number" : "integer";
    return { part: part.name, name, kind, default: value, value, doc, choices, min: Number.isNaN(min) ? null : min, max: Number.isNaN(max) ? null : max };
  }));
}
