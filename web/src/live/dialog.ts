// Questions before something is done: what exactly, with what, and what the head answered if it refused.
import { h } from "../dom";

export interface Field { name: string; label: string; kind?: "text" | "number" | "area" | "switch"; value?: string; about?: string; isNeeded?: boolean; choices?: [string, string][]; min?: number }
export type Answers = Record<string, string>;

/** Asks; `go` does it, and what it throws is shown in the dialog. Resolves when the dialog is closed: whether it was done. */
export function ask(title: string, about: string, verb: string, fields: Field[], go: (answers: Answers) => Promise<void>): Promise<boolean> {
  return new Promise((done) => {
    const inputs = new Map<string, HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>();
    const field = (of: Field) => {
      const input = of.choices ? h("select", {}, ...of.choices.map(([value, text]) => h("option", { value }, text)))
        : of.kind === "area" ? h("textarea", { rows: 3, spellcheck: false })
        : h("input", { type: of.kind === "number" ? "number" : of.kind === "switch" ? "checkbox" : "text", spellcheck: false, required: !!of.isNeeded, autocomplete: "off" });
      if (of.kind === "number") { (input as HTMLInputElement).step = "any"; if (of.min !== undefined) (input as HTMLInputElement).min = String(of.min); }
      if (of.kind === "switch") (input as HTMLInputElement).checked = of.value === "true"; else input.value = of.value ?? (of.choices?.[0]?.[0] ?? "");
      input.name = of.name;
      inputs.set(of.name, input);
      return h("label", { className: of.kind === "switch" ? "switch" : "control" }, h("span", {}, of.label), input, of.about && h("small", { className: "quiet" }, of.about));
    };
    const wrong = h("p", { className: "wrong", role: "alert", hidden: true });
    const submit = h("button", { type: "submit", className: "main" }, verb);
    let isDone = false;
    const form = h("form", {}, h("h2", {}, title), about && h("p", {}, about), ...fields.map(field), wrong,
      h("div", { className: "row end" }, h("button", { type: "button", onclick: () => dialog.close() }, "back"), submit));
    const dialog = h("dialog", { "aria-label": title }, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit.disabled = true;
      wrong.hidden = true;
      const answers: Answers = {};
      for (const [name, input] of inputs) answers[name] = input instanceof HTMLInputElement && input.type === "checkbox" ? String(input.checked) : input.value.trim();
      go(answers).then(() => { isDone = true; dialog.close(); }, (error: Error) => { wrong.textContent = error.message; wrong.hidden = false; submit.disabled = false; });
    });
    dialog.addEventListener("close", () => { dialog.remove(); done(isDone); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
