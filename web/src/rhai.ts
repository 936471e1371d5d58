// Rhai for the editor: colours, completion and hover from the script reference.
import { type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { HighlightStyle, StreamLanguage, type StreamParser } from "@codemirror/language";
import { hoverTooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Entry } from "./api";
import { h } from "./dom";

const KEYWORDS = new Set(
  "let const if else switch while loop for in do until break continue return throw try catch fn private import export as this is".split(" "),
);
const ATOMS = new Set(["true", "false"]);

interface State { comment: number; template: boolean }

const parser: StreamParser<State> = {
  name: "rhai",
  startState: () => ({ comment: 0, template: false }),
  token(stream, state) {
    if (state.comment > 0) {
      while (!stream.eol()) {
        if (stream.match("*/")) { state.comment--; if (!state.comment) return "comment"; }
        else if (stream.match("/*")) state.comment++;
        else stream.next();
      }
      return "comment";
    }
    if (state.template) return template(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match("//")) { stream.skipToEnd(); return "comment"; }
    if (stream.match("/*")) { state.comment = 1; return "comment"; }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^'(?:[^'\\]|\\.)'/)) return "string";
    if (stream.eat("`")) { state.template = true; return template(stream, state); }
    if (stream.match(/^(?:0x[\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][-+]?\d+)?)/)) return "number";
    if (stream.match(/^\.[A-Za-z_]\w*/)) return "propertyName";
    const word = stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null;
    if (word) {
      if (KEYWORDS.has(word[0])) return "keyword";
      if (ATOMS.has(word[0])) return "bool";
      return stream.match(/^\s*\(/, false) ? "variableName.function" : "variableName";
    }
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } }, closeBrackets: { brackets: ["(", "[", "{", '"', "`"] } },
};

function template(stream: { eol(): boolean; next(): string | void }, state: State): string {
  while (!stream.eol()) if (stream.next() === "`") { state.template = false; break; }
  return "string";
}

export const rhai = StreamLanguage.define(parser);

/** Colours that reach a contrast of 4.5 on the page's paper, in light and in dark: they are the page's own variables. */
export const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: [tags.number, tags.bool], color: "var(--code-number)" },
  { tag: tags.propertyName, color: "var(--code-field)" },
  { tag: tags.function(tags.variableName), color: "var(--accent-text)" },
]);

/** What may follow a dot, and what may stand alone. */
export function complete(entries: Entry[]) {
  const option = (entry: Entry): Completion => ({
    label: entry.name,
    detail: entry.signature.slice(entry.name.length),
    type: entry.kind === "field" ? "property" : entry.kind === "type" ? "class" : "function",
    info: () => about([entry]),
  });
  const unique = (list: Entry[]) => [...new Map(list.map((entry) => [entry.name, option(entry)])).values()];
  const members = unique(entries.filter((entry) => entry.owner && entry.name && entry.kind !== "type"));
  const functions = unique(entries.filter((entry) => entry.kind === "function" && entry.name));
  const words = [...KEYWORDS].map((label): Completion => ({ label, type: "keyword" }));
  return (context: CompletionContext): CompletionResult | null => {
    const member = context.matchBefore(/\.\w*/);
    if (member) return { from: member.from + 1, options: members, validFor: /^\w*$/ };
    const word = context.matchBefore(/\w+/);
    if (!word && !context.explicit) return null;
    return { from: word?.from ?? context.pos, options: [...functions, ...words], validFor: /^\w*$/ };
  };
}

/** What the reference says of the word under the pointer. */
export function hover(entries: Entry[]) {
  return hoverTooltip((view, pos) => {
    const word = view.state.wordAt(pos);
    if (!word) return null;
    const name = view.state.sliceDoc(word.from, word.to);
    const isMember = view.state.sliceDoc(Math.max(0, word.from - 1), word.from) === ".";
    const found = entries.filter((entry) => entry.name === name && (isMember ? entry.owner !== "" : entry.owner === "" || entry.kind === "type"));
    return found.length ? { pos: word.from, end: word.to, create: () => ({ dom: about(found.slice(0, 4)) }) } : null;
  });
}

function about(entries: Entry[]): HTMLElement {
  const lines = entries.map((entry) =>
    h("div", {}, h("code", {}, (entry.owner && entry.kind !== "type" ? `${entry.owner}.` : "") + entry.signature), h("p", {}, entry.doc)),
  );
  return h("div", { className: "about" }, ...lines);
}
