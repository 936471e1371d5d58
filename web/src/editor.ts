// The editor: one document for each part of the policy, with its mistakes at their lines. It lives in a shadow root, where its
// styles are adopted sheets: the page's content policy allows no inline style.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic as Mark, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Annotation, EditorState, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import type { Diagnostic, Entry, Part } from "./api";
import { h } from "./dom";
import { colours, complete, hover, rhai } from "./rhai";

/** Marks a change that the page made, not a person. */
const ours = Annotation.define<boolean>();

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "0.84rem", backgroundColor: "var(--panel)", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--accent-text)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace', lineHeight: "1.45" },
  ".cm-gutters": { backgroundColor: "var(--stripe)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--stripe) 70%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px", maxWidth: "min(36rem, 90vw)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent-fill)", color: "#ffffff" },
  ".cm-completionDetail": { color: "var(--quiet)", fontStyle: "normal" },
  ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": { color: "#ffffff" },
  ".about": { padding: "0.4rem 0.7rem", fontSize: "0.82rem" },
  ".about p": { margin: "0.2rem 0 0.5rem", color: "var(--quiet)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
});

export interface EditorCalls { changed(): void; save(): void }

export class Editor {
  private readonly view: EditorView;
  private states: EditorState[] = [];
  private found: Diagnostic[] = [];
  private readonly extensions: Extension;
  active = 0;

  constructor(parent: HTMLElement, entries: Entry[], calls: EditorCalls) {
    const root = parent.attachShadow({ mode: "open" });
    const place = h("div", {});
    place.style.height = "100%";
    root.append(place);
    this.extensions = [
      lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), history(), drawSelection(), indentOnInput(), bracketMatching(),
      closeBrackets(), indentUnit.of("    "), lintGutter(), rhai, syntaxHighlighting(colours), theme, hover(entries),
      autocompletion({ override: [complete(entries)] }),
      EditorView.contentAttributes.of({ "aria-label": "text of the policy" }),
      keymap.of([
        { key: "Mod-s", preventDefault: true, run: () => { calls.save(); return true; } },
        { key: "Tab", run: acceptCompletion },
        ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap, indentWithTab,
      ]),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        this.states[this.active] = update.state;
        if (!update.transactions.some((transaction) => transaction.annotation(ours))) calls.changed();
      }),
    ];
    this.view = new EditorView({ parent: place, root, state: EditorState.create({ extensions: this.extensions }) });
  }

  open(parts: Part[]): void {
    this.states = parts.map((part) => EditorState.create({ doc: part.text, extensions: this.extensions }));
    this.found = [];
    this.show(0);
  }

  show(index: number): void {
    if (this.states[this.active]) this.states[this.active] = this.active === index ? this.states[index] : this.view.state;
    this.active = index;
    this.view.setState(this.states[index]);
    this.mark(this.found);
  }

  texts(): string[] {
    return this.states.map((state, index) => (index === this.active ? this.view.state : state).doc.toString());
  }

  /** Puts another text in the place of a part's, as an edit that can be undone. */
  replace(index: number, text: string): void {
    if (index === this.active) {
      this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, annotations: ours.of(true) });
    } else {
      this.states[index] = EditorState.create({ doc: text, extensions: this.extensions });
    }
  }

  /** Shows mistakes at their lines. */
  mark(found: Diagnostic[]): void {
    this.found = found;
    const doc = this.view.state.doc;
    const marks = found.filter((one) => one.part === this.active).map((one): Mark => {
      const line = doc.line(Math.min(Math.max(one.line ?? 1, 1), doc.lines));
      const from = Math.min(line.from + Math.max((one.column ?? 1) - 1, 0), line.to);
      const word = this.view.state.wordAt(from);
      const to = word && word.to <= line.to ? word.to : Math.min(from + 1, line.to);
      const message = [one.message, one.hint && `hint: ${one.hint}`].filter(Boolean).join("\n");
      return { from, to: Math.max(to, from), severity: "error", message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, marks));
  }

  goTo(part: number, line: number, column: number): void {
    if (part !== this.active) this.show(part);
    const at = this.view.state.doc.line(Math.min(line, this.view.state.doc.lines));
    this.view.dispatch({ selection: { anchor: Math.min(at.from + column - 1, at.to) }, scrollIntoView: true });
    this.view.focus();
  }
}
