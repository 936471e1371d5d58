// What the views share: the cluster, who looks at it, and what they may do.
import { h } from "../dom";
import { type Field, ask } from "./dialog";
import type { Change, Cluster } from "./model";
import { type Action, type Me, post } from "./server";

export interface Shared {
  cluster: Cluster;
  me: Me;
  say(message: string): void;
}

export interface View {
  readonly box: HTMLElement;
  /** What it is called in the title of the page. */
  readonly title: string;
  /** Called when something has changed while it is shown. */
  update(change: Change): void;
  /** Called when another view takes its place. */
  close?(): void;
}

/** A button for something that a role may not do is there, cannot be pressed and says why. */
export function button(shared: Shared, action: Action, label: string, press: () => void, className = ""): HTMLButtonElement {
  const mayNot = !shared.me.may.includes(action);
  return h("button", { type: "button", className, disabled: mayNot, title: mayNot ? `${shared.me.user} (${shared.me.role}) may not: ${action}` : "", onclick: press, "data-action": action }, label);
}

/** Asks, then posts; says what came of it. */
export async function act(shared: Shared, title: string, about: string, verb: string, fields: Field[], path: string, body: (answers: Record<string, string>) => unknown, said: (answer: never) => string): Promise<boolean> {
  return ask(title, about, verb, fields, async (answers) => { const answer = await post<unknown>(path, body(answers)); shared.say(said(answer as never)); });
}

export function facts(pairs: [string, string | HTMLElement | null | false][]): HTMLElement {
  const shown = pairs.filter(([, value]) => value !== null && value !== false && value !== "");
  return h("dl", { className: "facts" }, ...shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value as string | HTMLElement))));
}

export function stateMark(state: string): HTMLElement {
  return h("span", { className: `state ${state}` }, state);
}

/** A table of few rows. */
export function table(label: string, heads: string[], rows: (string | HTMLElement | null)[][], numbers: number[] = []): HTMLElement {
  const className = (at: number) => (numbers.includes(at) ? "number" : "");
  const row = (cells: (string | HTMLElement | null)[]) => h("tr", {}, ...cells.map((cell, at) => h("td", { className: className(at) }, cell)));
  return h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": label },
    h("table", { "aria-label": label, className: "plain" }, h("thead", {}, h("tr", {}, ...heads.map((head, at) => h("th", { scope: "col", className: className(at) }, head)))), h("tbody", {}, ...rows.map(row))));
}

export function jobLink(id: number, text?: string): HTMLElement {
  return h("a", { href: `#/jobs/${id}` }, text ?? String(id));
}

export function nodeLink(name: string): HTMLElement {
  return h("a", { href: `#/nodes/${encodeURIComponent(name)}` }, name);
}

export function links(names: string[]): HTMLElement {
  const most = 16;
  return h("span", {}, ...names.slice(0, most).flatMap((name, at) => [at ? ", " : "", nodeLink(name)]), names.length > most ? ` and ${names.length - most} more` : "");
}
