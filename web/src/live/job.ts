// One job: what it is, how far it has come, its attempts, why it waits, what it prints, and what can be done with it.
import { fill, h } from "../dom";
import { Band } from "./band";
import { away, between, gibibytes, plural, short, span, when } from "./format";
import { type Change, OVER } from "./model";
import { type Action, type Attempt, type JobHistory, type JobPage, type Output, get } from "./server";
import { type Shared, type View, act, button, facts, links, stateMark, table } from "./view";

/** Milliseconds between looks at what a job prints, and at what else has become of it. */
const LOOK = 1000;
/** Characters of output that are shown: the newest. */
const MOST_OUTPUT = 200_000;

export class JobView implements View {
  readonly title: string;
  readonly box = h("section", { "aria-label": "job" });
  private job: JobPage | null = null;
  private history: JobHistory | null = null;
  private offset: number | null = null;
  private isOutputOver = false;
  private timer = 0;
  private isClosed = false;
  private stamp = "";
  private readonly head = h("div", {});
  private readonly progress = h("div", {});
  private readonly attempts = h("div", {});
  private readonly why = h("pre", { id: "job-why" });
  private readonly output = h("pre", { id: "job-output", tabIndex: 0, role: "log", "aria-label": "output of the job" });
  private readonly followed = h("input", { type: "checkbox", checked: true });
  private readonly band = new Band("progress", "iterations done", "iterations");

  constructor(private readonly shared: Shared, private readonly id: number) {
    this.title = `job ${id}`;
    fill(this.box, h("p", {}, h("a", { href: "#/jobs" }, "← all jobs")), this.head, this.progress, h("h2", {}, "Attempts"), this.attempts, this.band.box, h("h2", {}, "Why"), this.why,
      h("h2", {}, "Output"), h("label", { className: "switch" }, this.followed, " follow the end"), this.output);
    void this.load();
    void this.listen();
  }

  update(change: Change): void {
    const isMine = change.isAll || [...change.jobs].some((job) => job.id === this.id) || change.gone.some((job) => job.id === this.id);
    if (isMine) void this.load(); else this.draw();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.band.close();
  }

  private async load(): Promise<void> {
    try {
      const [job, history, why] = await Promise.all([
        get<JobPage>(`/jobs/${this.id}`), get<JobHistory>(`/jobs/${this.id}/history`), get<{ text: string }>(`/jobs/${this.id}/explain`).catch((error: Error) => ({ text: error.message })),
      ]);
      if (this.isClosed) return;
      [this.job, this.history] = [job, history];
      this.why.textContent = why.text;
      this.draw();
    } catch (error) { fill(this.head, h("h2", {}, `Job ${this.id}`), h("p", { className: "wrong" }, (error as Error).message)); }
  }

  private draw(): void {
    const { job, history, shared } = this;
    if (!job || !history) return;
    const { cluster } = shared;
    const now = cluster.now();
    const live = cluster.jobs.get(this.id);
    const done = live ? cluster.doneBy(live, now) : job.done;
    const meter = job.work > 0 ? h("progress", { max: job.work, value: Math.min(done, job.work), "aria-label": "progress" }) : null;
    fill(this.progress, meter && h("p", { className: "row" }, meter, `${((100 * Math.min(done, job.work)) / job.work).toFixed(1)} % of ${short(job.work)} iterations`),
      job.rate ? h("p", { className: "quiet" }, `${short(job.rate)} iteration${short(job.rate) === "1" ? "" : "s"} a second; its profile says ${short(job.best_rate ?? job.rate)} with all it asks for${job.pace !== 1 ? `, and it has shown itself to run at ${Math.round(100 * job.pace)} % of its profile` : ""}`) : null);
    // The rest changes only when the head says so: drawn again, it would lose the focus.
    const stamp = JSON.stringify([job, history]);
    if (stamp === this.stamp) return;
    this.stamp = stamp;
    const start = job.start ? `${away(job.start.median_s, now)}; ${between(job.start, now)} from now` : "";
    const isOver = OVER.has(job.state);
    const { request } = job;
    fill(this.head, h("h2", {}, `Job ${job.id}: `, h("span", { className: "name" }, job.name), " ", stateMark(job.state)), job.reason ? h("p", {}, job.reason) : null, this.actions(isOver),
      facts([
        ["user", job.user], ["tenant", job.tenant], ["model", job.model || "no profile"], ["GPUs", `${job.gpus_held} of ${job.gpus}${request && request.levels.length > 1 ? ` (elastic: ${request.levels.join(", ")})` : ""}`],
        ["nodes", job.nodes.length ? links(job.nodes) : ""], ["priority", String(job.priority)], ["submitted", `${when(job.submitted_s, cluster.status)}, ${away(job.submitted_s, now)}`],
        ["started", job.started_s != null ? when(job.started_s, cluster.status) : ""], ["expected start", start],
        ["ended", job.ended_s != null ? when(job.ended_s, cluster.status) : ""], ["expected end", !isOver && job.end_s != null ? `${when(job.end_s, cluster.status)}, ${away(job.end_s, now)}` : ""],
        ["deadline", job.deadline_s != null ? `${when(job.deadline_s, cluster.status)}, ${away(job.deadline_s, now)}` : ""], ["time limit", job.time_limit_s != null ? span(job.time_limit_s) : ""],
        ["GPU time", span(job.gpu_s)], ["failures", job.n_failures ? String(job.n_failures) : ""], ["preemptions", String(job.n_preemptions)], ["exit code", job.exit_code != null ? String(job.exit_code) : ""],
        ["held by", job.held_by ?? ""], ["checkpointed", job.checkpointed ? `${short(job.checkpointed)} iterations` : ""],
        ["runs as", request ? request.launcher + (request.image ? `, image ${request.image}` : "") : ""], ["command", request?.command.length ? h("code", {}, request.command.join(" ")) : ""],
        ["after", (request?.after ?? []).map((one) => `job ${one.job} (${one.needs})`).join(", ")],
      ]),
      job.placement.length ? table("what it holds", ["node", "GPUs", "CPUs", "memory", "rank"], job.placement.map((one) => [
        links([one.node]), one.gpus.join(", "), short(one.cpus), gibibytes(one.mem_bytes), job.ranks.filter((rank) => rank.node === one.node).map((rank) => rank.state).join(", "),
      ]), [2, 3]) : null);
    const attempt = (one: Attempt) => [
      String(one.launch), String(one.gpus), links(one.nodes), one.started_s != null ? when(one.started_s, cluster.status) : "", one.ended_s != null && one.started_s != null ? span(one.ended_s - one.started_s) : "",
      one.end ?? "goes on", `${short(one.done_from)} to ${one.done_to === null ? "…" : short(one.done_to)}`, one.reason || (one.exit_code != null ? `exit code ${one.exit_code}` : ""),
    ];
    fill(this.attempts, history.attempts.length ? table("attempts", ["attempt", "GPUs", "nodes", "started", "took", "end", "iterations", "reason"], history.attempts.map(attempt), [0, 1])
      : h("p", { className: "quiet" }, "It has not been started yet."), history.is_complete ? null : h("p", { className: "quiet" }, "Older lines have left the journal."),
      h("details", {}, h("summary", {}, plural(history.events.length, "event")), table("events of the job", ["when", "what"], history.events.map((one) => [when(one.at_s, cluster.status), one.text]))));
    const begun = history.points[0]?.[0] ?? 0;
    this.band.show(history.points.map(([t, value]) => [(t - begun) / 60, value]), "minutes since the first report");
  }

  private actions(isOver: boolean): HTMLElement {
    const { shared, id, job } = this;
    const change = (action: Action, label: string, about: string) => button(shared, action, label, () => void act(shared, `${label} job ${id}`, about, label, [], "/jobs/change", () => ({ jobs: { ids: [id] }, change: action }), () => `job ${id}: ${action}`).then(() => this.load()));
    const priority = button(shared, "priority", "priority", () => void act(shared, `Priority of job ${id}`, "Larger is more important; above 0 only operators may set it.", "set", [{ name: "priority", label: "priority", kind: "number", value: String(job?.priority ?? 0), isNeeded: true }],
      "/jobs/change", (of) => ({ jobs: { ids: [id] }, change: "priority", priority: Number(of.priority) }), () => `job ${id} has another priority`).then(() => this.load()));
    if (isOver) return h("p", { className: "quiet" }, "It has ended.");
    const isHeld = job?.state === "held" || !!job?.held_by;
    return h("div", { className: "row", id: "job-actions" }, change("cancel", "cancel", "It ends, and is not started again."),
      isHeld ? change("release", "release", "It may run again.") : change("hold", "hold", "It does not run until it is released; if it runs, it is stopped after a checkpoint."),
      change("requeue", "requeue", "If it runs, it is stopped after a checkpoint, and waits again."), priority);
  }

  /** Reads on from where it was, as long as the job prints. */
  private async listen(): Promise<void> {
    if (this.isClosed || this.isOutputOver) return;
    try {
      const from = this.offset === null ? "tail=true" : `offset=${this.offset}`;
      const more = await get<Output>(`/jobs/${this.id}/output?${from}`);
      if (this.isClosed) return;
      if (more.text) {
        const all = (this.output.textContent ?? "") + more.text;
        this.output.textContent = all.slice(-MOST_OUTPUT);
        if (this.followed.checked) this.output.scrollTop = this.output.scrollHeight;
      }
      const hasMore = more.next > (this.offset ?? -1) && more.text.length > 0;
      this.offset = more.next;
      this.isOutputOver = more.is_end;
      this.output.dataset.end = String(more.is_end);
      if (more.is_end) { if (!this.output.textContent) this.output.textContent = "(it printed nothing)"; return; }
      this.timer = window.setTimeout(() => void this.listen(), hasMore && more.text.length > 60_000 ? 0 : LOOK);
    } catch (error) {
      if (!this.output.textContent) this.output.dataset.trouble = (error as Error).message;
      this.timer = window.setTimeout(() => void this.listen(), 3 * LOOK);
    }
  }
}

