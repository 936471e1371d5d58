// The present state simulated ahead: when waiting jobs are expected to start, under the present policy or another.
import { fill, h } from "../dom";
import { Band } from "./band";
import { away, between, plural, span } from "./format";
import type { Change } from "./model";
import { type Forecast, type Spread, get, post } from "./server";
import { type Shared, type View, button, jobLink, table } from "./view";

const MOST_ROWS = 500;

export class ForecastView implements View {
  readonly title = "forecast";
  readonly box = h("section", { "aria-label": "forecast" });
  private readonly said = h("div", { id: "forecast", role: "status" });
  private readonly rows = h("div", {});
  private readonly busy = new Band("GPUs held", "GPUs", "GPUs");
  private readonly waiting = new Band("jobs that wait", "jobs", "jobs");
  private readonly policy = h("input", { type: "text", placeholder: "the policy in use", "aria-label": "policy to forecast with", spellcheck: false, list: "forecast-policies" });

  constructor(private readonly shared: Shared) {
    const names = h("datalist", { id: "forecast-policies" });
    void get<{ scripts: { name: string; summary: string }[] }>("/policy/shipped").then(({ scripts }) => fill(names, ...scripts.map((one) => h("option", { value: one.name }, one.summary))), () => undefined);
    fill(this.box, h("h2", {}, "Forecast"), h("p", { className: "quiet" }, "The present state is simulated ahead several times, each time with other lengths of the jobs, spread around what is expected of them."),
      h("div", { className: "row" }, this.policy, names, button(shared, "forecast", "forecast", () => void this.ask(), "main")), this.said,
      h("div", { className: "figures" }, this.busy.box, this.waiting.box), this.rows);
    void this.ask();
  }

  update(_change: Change): void { /* a forecast is of the moment at which it was made */ }

  close(): void { this.busy.close(); this.waiting.close(); }

  private async ask(): Promise<void> {
    fill(this.said, h("p", { className: "quiet" }, "…"));
    try {
      const policy = this.policy.value.trim();
      const present = await get<Forecast>("/forecast");
      const other = policy ? await post<Forecast>("/forecast", { policy }) : null;
      this.draw(other ?? present, other ? present : null);
    } catch (error) { fill(this.said, h("p", { className: "wrong" }, (error as Error).message)); }
  }

  private draw(of: Forecast, beside: Forecast | null): void {
    const now = this.shared.cluster.now();
    const ahead = (t: number) => (t <= now ? "now" : away(t, now));
    const range = (one: Spread | null) => (one ? `${ahead(one.median_s)} (${between(one, now)})` : `not within ${span(of.horizon_s)}`);
    const others = new Map(beside?.jobs.map((job) => [job.job, job]) ?? []);
    const better = (job: Forecast["jobs"][number]) => {
      const own = others.get(job.job);
      if (!own?.start || !job.start) return "";
      const by = job.start.median_s - own.start.median_s;
      return Math.abs(by) < 1 ? "the same" : by < 0 ? `${span(-by)} earlier` : `${span(by)} later`;
    };
    fill(this.said, h("p", {}, `${of.policy}, made ${away(of.made_at_s, now)} from ${plural(of.seeds, "run")} in ${of.took_ms} ms. The real start is meant to lie in the range in ${Math.round(100 * of.coverage)} % of the cases.`));
    const [unit_s, units] = of.horizon_s < 600 ? [1, "seconds"] : of.horizon_s < 36_000 ? [60, "minutes"] : [3600, "hours"];
    this.busy.show(of.gpus_busy.map(([t, ...rest]) => [(t - of.made_at_s) / unit_s, ...rest]), `${units} from now`);
    this.waiting.show(of.n_waiting.map(([t, ...rest]) => [(t - of.made_at_s) / unit_s, ...rest]), `${units} from now`);
    const { jobs } = this.shared.cluster;
    const row = (job: Forecast["jobs"][number]) => [jobLink(job.job), jobs.get(job.job)?.name ?? "", range(job.start), job.end ? range(job.end) : "", ...(beside ? [better(job)] : []), `${job.n_started} of ${of.seeds}`];
    fill(this.rows, of.jobs.length ? table("expected starts", ["job", "name", "starts (range)", "ends (range)", ...(beside ? [`against ${beside.policy}`] : []), "started in"], of.jobs.slice(0, MOST_ROWS).map(row)) : h("p", {}, "No job waits."),
      of.jobs.length > MOST_ROWS ? h("p", { className: "quiet" }, `${plural(of.jobs.length - MOST_ROWS, "more job")} are not listed.`) : null);
  }
}
