// The policy laboratory: what is typed or moved goes to the server after a pause, and what comes back is drawn.
import "./app.css";
import { type Choices, type Diagnostic, type Part, type Question, type Result, type Seeds, type Start, Refused, get, post, postForBlob, run, upload } from "./api";
import { showChoices, showParameters } from "./controls";
import { Curves } from "./curves";
import { afterPause, breath, byId, fill, h } from "./dom";
import { Editor } from "./editor";
import { Rounds } from "./rounds";
import { aboutSeeds, showTable } from "./table";
import { Timeline } from "./timeline";

/** Milliseconds without a key before a run starts. */
const PAUSE = 150;
/** Milliseconds between looks at the files on the disk. */
const LOOK = 1000;

class Laboratory {
  private policy: string;
  private parts: Part[];
  private against: string[];
  private readonly choices: Choices = {};
  private readonly set = new Map<string, string>();
  private readonly traces: string[] = [];
  private nSeeds = 10;
  private result: Result | null = null;
  private abort = new AbortController();
  private typedAt = 0;
  private readonly editor: Editor;
  private readonly curves = new Curves(byId("figures"));
  private readonly timeline = new Timeline(byId("timeline"), (job, policy) => void this.explain(job, policy));
  private readonly rounds = new Rounds(byId("rounds"), (job, policy) => void this.explain(job, policy));
  private readonly soon = afterPause(PAUSE, () => void this.run());

  constructor(private readonly start: Start) {
    this.policy = start.policy;
    this.parts = start.parts;
    this.against = start.against.slice();
    this.editor = new Editor(byId("editor"), start.entries, { changed: () => { this.showTabs(); this.changed(); }, save: () => void this.save() });
    this.editor.open(this.parts);
    this.showPolicy();
    this.showTabs();
    this.showAgainst();
    this.showAll();
    window.setInterval(() => void this.follow(), LOOK);
    window.addEventListener("beforeunload", (event) => { if (this.unsaved().length) event.preventDefault(); });
    void this.run();
  }

  private changed(): void {
    this.typedAt = performance.now();
    byId("table").classList.add("stale");
    this.soon();
  }

  private question(): Question {
    const against = this.against.filter((name) => name !== this.policy || this.isEdited());
    return { policy: this.policy, texts: this.editor.texts(), set: [...this.set], against, choices: this.choices, n_seeds: this.nSeeds };
  }

  private async run(): Promise<void> {
    this.abort.abort();
    const abort = new AbortController();
    this.abort = abort;
    const typedAt = this.typedAt || performance.now();
    const isOld = () => abort !== this.abort;
    this.say("running …");
    const remarks: string[] = [];
    try {
      await run(this.question(), abort.signal, (message) => {
        if (isOld()) return;
        switch (message.kind) {
          case "checked":
            this.showMistakes(message.diagnostics);
            if (message.parameters) showParameters(byId("parameters"), message.parameters, this.set, () => this.changed());
            break;
          case "failed": this.showMistakes(message.diagnostics); break;
          case "refused": this.notice(message.message); break;
          case "remark": remarks.push(message.message); break;
          case "result": this.showResult(message, typedAt); break;
          case "seeds": this.showSeeds(message); break;
          case "done": if (remarks.length) this.notice(remarks.join("\n")); break;
        }
      });
    } catch (error) {
      if (isOld() || abort.signal.aborted) return;
      this.say(error instanceof Refused ? error.message : "the laboratory does not answer: is rota play still running?");
    }
  }

  private showResult(result: Result, typedAt: number): void {
    this.result = result;
    this.notice("");
    const { cluster } = result;
    byId("facts").textContent = `${this.start.menus.trace ?? result.workload} on ${cluster.name}: ${cluster.nodes} nodes, ${cluster.gpus} GPUs · Rota ${this.start.version}`;
    showTable(byId("table"), result, null);
    byId("seeds").textContent = aboutSeeds(result, null);
    void this.draw(result, typedAt);
  }

  /** Draws the figures one by one, then what can wait. */
  private async draw(result: Result, typedAt: number): Promise<void> {
    for (const draw of this.curves.show(result.figures)) {
      await breath();
      if (result !== this.result) return;
      draw();
    }
    byId("table").classList.remove("stale");
    const took = Math.round(performance.now() - typedAt);
    performance.mark("rota-answer", { detail: took });
    this.say(`new figures after ${took} ms`);
    await breath();
    this.timeline.show(result);
    this.rounds.show(result);
    this.showWhy();
    await this.showSame();
  }

  /** Questions about the runs that are shown. */
  private showWhy(): void {
    const result = this.result;
    if (!result) return;
    const others = result.labels.slice(1);
    const buttons = others.map((label, at) => h("button", { type: "button", onclick: () => void this.difference(at + 1) }, `first difference to ${label}`));
    const input = h("input", { type: "text", placeholder: "a job's name", "aria-label": "job to explain", spellcheck: false });
    const ask = () => void this.explain(input.value.trim(), 0);
    input.addEventListener("change", ask);
    fill(byId("why"), h("div", { className: "row" }, "explain job", input, h("button", { type: "button", onclick: ask }, "explain"), ...buttons),
      h("p", { className: "quiet" }, "Or click a job on the timeline."), h("pre", { id: "said", role: "status", hidden: true }));
  }

  private async explain(job: string, policy: number): Promise<void> {
    if (!this.result || !job) return;
    const label = this.result.labels[policy];
    await this.tell(async (id) => {
      const { sentences } = await post<{ sentences: string[] }>("/api/explain", { id, policy, job });
      return [`${label}`, ...sentences].join("\n");
    });
  }

  private async difference(policy: number): Promise<void> {
    await this.tell(async (id) => (await post<{ text: string }>("/api/difference", { id, policy: 0, other: policy })).text);
  }

  private async tell(ask: (id: number) => Promise<string>): Promise<void> {
    const place = byId("said");
    place.hidden = false;
    place.textContent = "…";
    try { place.textContent = await ask(this.result?.id ?? 0); } catch (error) { place.textContent = (error as Error).message; }
    place.scrollIntoView({ block: "nearest" });
  }

  private showSeeds(seeds: Seeds): void {
    if (!this.result) return;
    showTable(byId("table"), this.result, seeds);
    byId("seeds").textContent = aboutSeeds(this.result, seeds);
  }

  private showMistakes(found: Diagnostic[]): void {
    this.editor.mark(found);
    fill(byId("diagnostics"), ...found.map((one) => {
      const file = one.part === null ? "" : this.parts[one.part]?.file ?? "";
      const place = one.line === null ? file : `${file}:${one.line}:${one.column ?? 1}`;
      const go = () => { if (one.part !== null) { this.editor.goTo(one.part, one.line ?? 1, one.column ?? 1); this.showTabs(); } };
      return h("li", {}, h("button", { type: "button", onclick: go }, `${place ? `${place}: ` : ""}${one.message}`,
        one.hint && h("span", { className: "hint" }, `hint: ${one.hint}`), one.stage && h("span", { className: "hint" }, `in stage ${one.stage}`)));
    }));
    if (found.length) this.say(`${found.length} mistake${found.length === 1 ? "" : "s"}: the figures are of the text before`);
  }

  private showPolicy(): void {
    const names = h("datalist", { id: "policies" }, ...this.start.scripts.map((script) => h("option", { value: script.name }, script.summary)));
    const input = h("input", { type: "text", value: this.policy, list: "policies", "aria-label": "policy to edit", spellcheck: false });
    const open = async () => {
      if (this.unsaved().length && !confirm("Texts that are not saved will be lost. Open the other policy?")) return;
      try {
        const { parts } = await post<{ parts: Part[] }>("/api/open", { policy: input.value });
        this.policy = input.value;
        this.parts = parts;
        this.set.clear();
        this.editor.open(parts);
        this.notice("");
        this.showTabs();
        this.changed();
      } catch (error) { this.notice(String((error as Error).message)); }
    };
    input.addEventListener("change", () => void open());
    fill(byId("policy-row"), h("span", {}, "policy"), input, names,
      h("button", { type: "button", onclick: () => void open() }, "open"),
      h("button", { type: "button", id: "save", onclick: () => void this.save() }, "save"));
  }

  private showTabs(): void {
    const texts = this.editor.texts();
    const tab = (part: Part, at: number) => {
      const isChanged = texts[at] !== part.text;
      const label = `${part.name}${part.is_file ? "" : " (copy)"}${isChanged ? " *" : ""}`;
      const isActive = at === this.editor.active;
      return h("button", {
        type: "button", role: "tab", "aria-selected": String(isActive), "aria-controls": "editor", tabIndex: isActive ? 0 : -1, title: part.file,
        onclick: () => { this.editor.show(at); this.showTabs(); },
        onkeydown: (event: KeyboardEvent) => {
          const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
          if (!step) return;
          this.editor.show((at + step + this.parts.length) % this.parts.length);
          this.showTabs();
          byId("tabs").querySelector<HTMLElement>("[aria-selected=true]")?.focus();
        },
      }, label);
    };
    fill(byId("tabs"), ...this.parts.map(tab));
    (byId("save") as HTMLButtonElement).textContent = this.parts[this.editor.active]?.is_file ? "save" : "save a copy";
  }

  private showAgainst(): void {
    const change = () => { this.showAgainst(); this.changed(); };
    const chip = (name: string) => h("span", { className: "chip" }, name,
      h("button", { type: "button", "aria-label": `do not compare with ${name}`, onclick: () => { this.against = this.against.filter((one) => one !== name); change(); } }, "×"));
    const input = h("input", { type: "text", list: "policies", placeholder: "add a policy", "aria-label": "policy to compare with", spellcheck: false });
    const add = () => { const name = input.value.trim(); if (name && !this.against.includes(name)) { this.against.push(name); change(); } };
    input.addEventListener("change", add);
    fill(byId("against"), ...this.against.map(chip), input);
  }

  private showAll(): void {
    showChoices(byId("choices"), this.start.menus, this.choices, this.traces, this.nSeeds, {
      changed: () => this.changed(),
      seeds: (n) => { this.nSeeds = n; this.changed(); },
      upload: (file) => void this.upload(file),
    });
  }

  private async upload(file: File): Promise<void> {
    try {
      const { trace } = await upload(file);
      this.traces[trace] = file.name;
      for (const key of ["workload", "jobs", "jobs_per_hour", "cluster"] as const) delete this.choices[key];
      this.choices.trace = trace;
      this.notice("");
      this.showAll();
      this.changed();
    } catch (error) { this.notice(`${file.name}: ${(error as Error).message}`); }
  }

  private isEdited(): boolean {
    return this.editor.texts().some((text, at) => text !== this.parts[at]?.text);
  }

  private unsaved(): Part[] {
    const texts = this.editor.texts();
    return this.parts.filter((part, at) => texts[at] !== part.text);
  }

  private async save(): Promise<void> {
    const at = this.editor.active;
    const part = this.parts[at];
    const text = this.editor.texts()[at];
    if (!part.is_file) { download(new Blob([text]), `${part.name.replace(/[^\w.-]/g, "-")}.rhai`); return; }
    try {
      const { version } = await post<{ version: string }>("/api/save", { file: part.file, text, version: part.version });
      this.parts[at] = { ...part, text, version };
      this.notice("");
      this.showTabs();
      this.say(`saved ${part.file}`);
    } catch (error) { this.notice((error as Error).message); }
  }

  /** Takes over what another editor wrote; where both changed a text, the person decides. */
  private async follow(): Promise<void> {
    if (document.hidden || !this.parts.some((part) => part.is_file)) return;
    const { files } = await get<{ files: { file: string; version: string; text: string }[] }>("/api/files").catch(() => ({ files: [] }));
    const texts = this.editor.texts();
    for (const { file, version, text } of files) {
      const at = this.parts.findIndex((part) => part.is_file && part.file === file);
      const part = this.parts[at];
      if (!part || part.version === version) continue;
      const take = () => { this.parts[at] = { ...part, text, version }; this.editor.replace(at, text); this.notice(""); this.showTabs(); this.changed(); };
      if (texts[at] === part.text) take();
      else {
        const keep = () => { this.parts[at] = { ...part, text, version }; this.notice(""); this.showTabs(); };
        this.notice(`${file} was changed by another program.`, h("button", { type: "button", onclick: take }, "take its text"), h("button", { type: "button", onclick: keep }, "keep mine"));
      }
    }
  }

  private async showSame(): Promise<void> {
    const id = this.result?.id;
    const { command, study } = await post<{ command: string; study: string }>("/api/same", this.question());
    if (id !== this.result?.id) return;
    const copy = (text: string) => h("button", { type: "button", onclick: () => void navigator.clipboard.writeText(text) }, "copy");
    const unsaved = this.unsaved();
    const note = unsaved.length ? h("p", { className: "quiet" }, `${unsaved.map((part) => part.name).join(", ")} as shipped or on the disk: what you changed is not saved.`) : null;
    const save = (path: string, name: string) => async () => {
      if (!id) return;
      try { download(await postForBlob(path, { id }), name); } catch (error) { this.notice((error as Error).message); }
    };
    const report = h("button", { type: "button", onclick: save("/api/report", "report.html") }, "save report.html");
    const folder = h("button", { type: "button", onclick: save("/api/folder", "rota-play.zip") }, "save the result folder");
    const script = h("button", { type: "button", onclick: () => download(new Blob([study]), "rota-play-study.rhai") }, "save");
    fill(byId("same"), note, h("div", { className: "row" }, "as a command", copy(command)), h("pre", { id: "command" }, command),
      h("details", {}, h("summary", {}, "as a study script over the seeds"), h("div", { className: "row" }, copy(study), script), h("pre", { id: "study" }, study)),
      h("div", { className: "row" }, "as a page that needs nothing else", report),
      h("div", { className: "row" }, "as what rota report, explain and diff read", folder));
  }

  private notice(message: string, ...actions: HTMLElement[]): void {
    const place = byId("notice");
    place.hidden = !message;
    fill(place, message && h("span", {}, `${message} `), ...actions);
  }

  private say(message: string): void {
    byId("status").textContent = message;
  }
}

function download(blob: Blob, name: string): void {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The token has done its work; it need not stay in the address.
history.replaceState(null, "", "/");
get<Start>("/api/start").then((start) => new Laboratory(start), (error: Error) => { byId("status").textContent = error.message; });
