// Elements. Text is always text: nothing here parses markup, so that no name of a job or policy can become any.

type Child = Node | string | null | undefined | false;
type Properties = Record<string, unknown>;

/** An element with properties, attributes (names with a dash) and listeners (`on…`). */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else if (name.includes("-") || name === "role" || name === "for" || name === "list") element.setAttribute(name, String(value));
    else (element as unknown as Properties)[name] = value;
  }
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
}

/** Puts children in the place of those that are there. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => !!child));
}

/** A variable of the style sheet as it is now, light or dark. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888";
}

/** Calls once when calls have stopped coming for so long. */
export function afterPause(ms: number, call: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(call, ms);
  };
}

export function whenColoursChange(call: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", call);
}

/** Lets the browser answer to keys and pointers before the next step. */
export function breath(): Promise<void> {
  return new Promise((done) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { port1.close(); done(); }; port2.postMessage(0); });
}
