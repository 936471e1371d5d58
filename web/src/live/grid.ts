// A table of very many rows of which only those in view are elements.
import { fill, h } from "../dom";

export interface Column<T> {
  name: string; text: (row: T) => string; isNumber?: boolean; className?: (row: T) => string;
  /** Where the cell is a link: to which address. */
  link?: (row: T) => string;
  /** Whether its heading can be chosen as the order. */
  isOrder?: boolean;
}

/** Rows above and below the view that are elements too: a quick turn of the wheel finds them there. */
const BEYOND = 8;

export class Grid<T> {
  readonly box: HTMLElement;
  private readonly head = h("tr", {});
  private readonly body = h("tbody", {});
  private readonly table: HTMLTableElement;
  private rows: T[] = [];
  private rowHeight = 0;
  private isAsked = false;
  private drawn = "";

  constructor(label: string, private readonly columns: Column<T>[], public order: { column: number; isDescending: boolean }, private readonly reorder: () => void) {
    this.table = h("table", { "aria-label": label }, h("thead", {}, this.head), this.body);
    this.box = h("div", { className: "scroll grid", tabIndex: 0, role: "region", "aria-label": `${label}, scrolls` }, this.table);
    this.box.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => { this.rowHeight = 0; this.drawn = ""; this.soon(); }).observe(this.box);
    this.heads();
  }

  /** Shows other rows; those in view are drawn in the next frame. */
  show(rows: T[]): void {
    this.rows = rows;
    this.drawn = "";
    this.soon();
  }

  private heads(): void {
    fill(this.head, ...this.columns.map((column, at) => {
      const isBy = this.order.column === at;
      const turn = () => {
        this.order = { column: at, isDescending: isBy && !this.order.isDescending };
        this.heads();
        this.head.querySelectorAll<HTMLElement>("th")[at].querySelector<HTMLElement>("button")?.focus();
        this.reorder();
      };
      const arrow = isBy ? (this.order.isDescending ? " ▼" : " ▲") : "";
      const inner = column.isOrder === false ? column.name : h("button", { type: "button", className: "order", onclick: turn }, column.name, h("span", { "aria-hidden": "true" }, arrow));
      return h("th", { scope: "col", className: column.isNumber ? "number" : "", "aria-sort": isBy ? (this.order.isDescending ? "descending" : "ascending") : "none" }, inner);
    }));
  }

  private soon(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => { this.isAsked = false; this.draw(); });
  }

  private draw(): void {
    const { rows, box } = this;
    if (!box.clientHeight) return;
    if (!this.rowHeight && rows.length) {
      fill(this.body, this.row(rows[0], 0));
      this.rowHeight = this.body.getBoundingClientRect().height || 28;
    }
    const height = this.rowHeight || 28;
    const first = Math.max(0, Math.min(Math.floor(box.scrollTop / height) - BEYOND, rows.length - 1));
    const past = Math.min(rows.length, first + Math.ceil(box.clientHeight / height) + 2 * BEYOND);
    const drawn = `${first} ${past}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    // What has the focus keeps it: its row is found again by its link.
    const active = this.body.contains(document.activeElement) ? document.activeElement?.getAttribute("href") : null;
    fill(this.body, this.space(first * height), ...rows.slice(first, past).map((row, at) => this.row(row, first + at)), this.space((rows.length - past) * height));
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    if (active) this.body.querySelector<HTMLElement>(`a[href="${CSS.escape(active)}"]`)?.focus({ preventScroll: true });
  }

  private space(height: number): HTMLElement | null {
    if (height <= 0) return null;
    const row = h("tr", { className: "space", "aria-hidden": "true" }, h("td", { colSpan: this.columns.length }));
    row.style.height = `${height}px`;
    return row;
  }

  private row(row: T, at: number): HTMLElement {
    return h("tr", { "aria-rowindex": String(at + 2) }, ...this.columns.map((column) => {
      const text = column.text(row);
      const className = [column.isNumber && "number", column.className?.(row)].filter(Boolean).join(" ");
      return h("td", { className }, column.link ? h("a", { href: column.link(row) }, text) : text);
    }));
  }
}
