// A hundred thousand rows in an order, of which a few change at a time: sorted piece by piece, so that the page goes on answering, and
// after that kept in order by moving only what changed.
import { breath } from "../dom";

export type Key = number | string;

/** Rows that are sorted at once: a few milliseconds. */
const PIECE = 4000;

export class Ordered<T> {
  /** The rows that are shown, in their order. */
  rows: T[] = [];
  private turn = 0;
  private isSorting = false;
  private waiting = new Set<T>();
  /** By which key each row has its place: a row that changed in other ways stays where it is. */
  private placed = new Map<T, Key>();

  constructor(private readonly tie: (row: T) => number) {}

  private key: (row: T) => Key = () => 0;
  private sign = 1;
  private wanted: (row: T) => boolean = () => true;

  /** Sorts all of them anew. False where another order was asked for meanwhile. */
  async sort(all: Iterable<T>, key: (row: T) => Key, isDescending: boolean, wanted: (row: T) => boolean): Promise<boolean> {
    const turn = ++this.turn;
    [this.key, this.sign, this.wanted, this.isSorting] = [key, isDescending ? -1 : 1, wanted, true];
    this.waiting.clear();
    let pieces: T[][] = [];
    let piece: T[] = [];
    let n = 0;
    const placed = new Map<T, Key>();
    const close = () => { if (piece.length) pieces.push(piece.sort((a, b) => this.compare(a, b))); piece = []; };
    for (const row of all) {
      if (wanted(row)) { piece.push(row); placed.set(row, key(row)); }
      if (++n % PIECE === 0) { close(); await breath(); if (turn !== this.turn) return false; }
    }
    close();
    while (pieces.length > 1) {
      const next: T[][] = [];
      for (let at = 0; at < pieces.length; at += 2) {
        const merged = at + 1 < pieces.length ? await this.merge(pieces[at], pieces[at + 1], turn) : pieces[at];
        if (!merged) return false;
        next.push(merged);
      }
      pieces = next;
    }
    this.rows = pieces[0] ?? [];
    this.placed = placed;
    this.isSorting = false;
    const late = [...this.waiting];
    this.waiting.clear();
    this.change(late);
    return true;
  }

  /** Puts rows that are new, or whose keys have changed, where they belong. */
  change(changed: Iterable<T>): void {
    if (this.isSorting) { for (const row of changed) this.waiting.add(row); return; }
    const some = new Set<T>();
    const moved: T[] = [];
    for (const row of changed) {
      const before = this.placed.get(row);
      if (!this.wanted(row)) { if (before !== undefined) { some.add(row); this.placed.delete(row); } continue; }
      const now = this.key(row);
      if (now === before || some.has(row)) continue;
      some.add(row);
      moved.push(row);
      this.placed.set(row, now);
    }
    if (!some.size) return;
    const kept = this.rows.filter((row) => !some.has(row));
    moved.sort((a, b) => this.compare(a, b));
    if (!moved.length) { this.rows = kept; return; }
    const all: T[] = [];
    let from = 0;
    for (const row of moved) {
      const to = this.place(kept, row, from);
      for (; from < to; from++) all.push(kept[from]);
      all.push(row);
    }
    for (; from < kept.length; from++) all.push(kept[from]);
    this.rows = all;
  }

  private place(rows: T[], row: T, from: number): number {
    let to = rows.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.compare(rows[middle], row) < 0) from = middle + 1; else to = middle;
    }
    return from;
  }

  private async merge(a: T[], b: T[], turn: number): Promise<T[] | null> {
    const all: T[] = [];
    let [i, j] = [0, 0];
    while (i < a.length || j < b.length) {
      if (j >= b.length || (i < a.length && this.compare(a[i], b[j]) <= 0)) all.push(a[i++]); else all.push(b[j++]);
      if (all.length % (4 * PIECE) === 0) { await breath(); if (turn !== this.turn) return null; }
    }
    return all;
  }

  private compare(a: T, b: T): number {
    const [x, y] = [this.key(a), this.key(b)];
    if (x < y) return -this.sign;
    if (x > y) return this.sign;
    return this.tie(a) - this.tie(b);
  }
}
