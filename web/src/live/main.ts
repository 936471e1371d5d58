// The live cluster: who looks, the stream of what changes, and the view that the address names.
import "../app.css";
import "./live.css";
import { byId, fill, h } from "../dom";
import { ClusterView } from "./cluster";
import { ForecastView } from "./forecast";
import { count, when } from "./format";
import { JobView } from "./job";
import { JobsView } from "./jobs";
import { EventsView, TenantsView } from "./lists";
import { type Change, Cluster, note } from "./model";
import { NodeView } from "./node";
import { PolicyView } from "./policy";
import { type Me, Refused, post, whoAmI } from "./server";
import type { Shared, View } from "./view";

const PAGES: [string, string][] = [["", "cluster"], ["jobs", "jobs"], ["tenants", "tenants"], ["events", "events"], ["policy", "policy"], ["forecast", "forecast"]];

class Live implements Shared {
  readonly cluster: Cluster;
  private view: View | null = null;
  private stream: EventSource | null = null;

  constructor(readonly me: Me) {
    this.cluster = new Cluster((change) => this.changed(change));
    this.header();
    window.addEventListener("hashchange", () => this.go());
    // Beside a stream the page has what it needs for a view; it is drawn when the snapshot is there.
    this.connect();
  }

  say(message: string): void {
    byId("status").textContent = message;
  }

  private connect(): void {
    const stream = new EventSource("/api/v1/stream?topics=status,jobs,nodes,tenants,policy,events");
    this.stream = stream;
    for (const kind of ["snapshot", "more", "delta"]) stream.addEventListener(kind, (event) => { this.isThere(true); this.cluster.take(kind, (event as MessageEvent<string>).data); });
    stream.addEventListener("bye", (event) => {
      let why = "the head ends";
      try { why = JSON.parse((event as MessageEvent<string>).data).why ?? why; } catch { /* the head says why, or not */ }
      this.isThere(false, why);
      if (why.includes("roles")) { location.reload(); return; }
      if (why.includes("signed out") || why.includes("session")) { stream.close(); signIn(why); }
    });
    stream.onerror = () => {
      this.isThere(false, "the head does not answer; trying again");
      // After a refusal a browser does not try again by itself.
      if (stream.readyState === EventSource.CLOSED && this.stream === stream) window.setTimeout(() => void whoAmI().then(() => this.connect(), (error: Error) => { if (error instanceof Refused && error.status === 401) signIn(error.message); else this.connect(); }), 3000);
    };
  }

  private isThere(is: boolean, why = ""): void {
    const place = byId("trouble");
    document.body.classList.toggle("stale-page", !is);
    const trouble = is ? this.cluster.status?.trouble ?? "" : `Not up to date: ${why}.`;
    place.hidden = !trouble;
    if (place.textContent !== trouble) place.textContent = trouble;
  }

  private changed(change: Change): void {
    const begun = performance.now();
    this.facts();
    if (!this.view) this.go(); else this.view.update(change);
    document.body.dataset.seen = String(Number(document.body.dataset.seen ?? 0) + 1);
    note("update", begun);
  }

  private header(): void {
    const { me } = this;
    const out = async () => { try { await post("/logout", {}); } finally { this.stream?.close(); signIn("You are signed out."); } };
    fill(byId("who"), `${me.user} (${me.role}) `, h("button", { type: "button", onclick: () => void out() }, "sign out"));
  }

  private facts(): void {
    const { status } = this.cluster;
    if (!status) return;
    const facts = `${count(status.n_gpus_busy)} of ${count(status.n_gpus_up)} GPUs held · ${count(status.n_nodes_up)} of ${count(status.n_nodes)} nodes up · ${count(status.n_running)} jobs run, ${count(status.n_waiting)} wait · ${status.policy}, round ${count(status.n_rounds)}`;
    const place = byId("facts");
    if (place.textContent !== facts) place.textContent = facts;
    place.title = `${when(this.cluster.now(), status)}${status.clock.time_scale === 1 ? "" : `, ${status.clock.time_scale} seconds in each`}; Rota ${status.version}`;
    this.isThere(true);
  }

  private go(): void {
    const [, page = "", name = ""] = location.hash.split("/");
    this.view?.close?.();
    this.view = this.make(page, decoded(name));
    document.title = `${this.view.title} · rota`;
    fill(byId("nav"), ...PAGES.map(([at, title]) => h("a", { href: `#/${at}`, "aria-current": at === page || (at === "" && page === "nodes") ? "page" : "false" }, title)));
    fill(byId("view"), this.view.box);
    document.body.dataset.view = page || "cluster";
    scrollTo(0, 0);
  }

  private make(page: string, name: string): View {
    switch (page) {
      case "jobs": return name ? new JobView(this, Number(name) || 0) : new JobsView(this);
      case "nodes": return name ? new NodeView(this, name) : new ClusterView(this);
      case "tenants": return new TenantsView(this);
      case "events": return new EventsView(this);
      case "policy": return new PolicyView(this);
      case "forecast": return new ForecastView(this);
      default: return new ClusterView(this);
    }
  }
}

/** A word of the address as it was before it was escaped; one that nobody escaped so stays as it is. */
function decoded(word: string): string {
  try { return decodeURIComponent(word); } catch { return word; }
}

/** Without a session there is nothing to see. */
function signIn(why: string): void {
  fill(byId("nav"));
  fill(byId("who"));
  byId("facts").textContent = "";
  fill(byId("view"), h("section", { className: "sign-in", "aria-label": "sign in" }, h("h2", {}, "Sign in"), why ? h("p", {}, why) : null,
    h("p", {}, "Run ", h("code", {}, "rota web login"), " and open the link that it prints.")));
}

whoAmI().then((me) => { new Live(me); }, (error: Error) => {
  if (error instanceof Refused && error.status === 401) signIn("");
  else { signIn(""); byId("trouble").hidden = false; byId("trouble").textContent = error.message || "the head does not answer"; }
});
