// Who ran where: a row for each GPU, a bar for each stretch in which a job held it, on a canvas. Bars narrower than a pixel are
// drawn once for each pixel, so that a hundred thousand of them do not hold up the page.
import { type Result, getBytes } from "./api";
import { colour, fill, h, whenColoursChange } from "./dom";

interface Head { policy: string; begin_s: number; length_s: number; rows: string[]; jobs: [string, string, number][]; bars: number; left_out: number }

const N_COLOURS = 10;

export class Timeline {
  private head: Head | null = null;
  private bars = new Uint32Array();
  private ends = new Uint32Array();
  private from = 0;
  private to = 1;
  private result: Result | null = null;
  private policy = 0;
  private isVisible = false;
  private isDrawn = false;
  private readonly canvas = h("canvas", { tabIndex: 0, role: "img", "aria-label": "which job held which GPU when" });
  private readonly tip = h("p", { role: "status", className: "quiet" }, "");
  private readonly select = h("select", { "aria-label": "policy of the timeline" });

  constructor(place: HTMLElement, private readonly pick: (job: string, policy: number) => void) {
    const zoom = (label: string, text: string, factor: number) => h("button", { type: "button", "aria-label": label, onclick: () => this.zoom(factor, 0.5) }, text);
    fill(place, h("div", { className: "row" }, this.select, zoom("zoom in", "+", 0.6), zoom("zoom out", "−", 1 / 0.6), zoom("show all", "all", 1e9)), this.canvas, this.tip,
      h("p", { className: "quiet" }, "A row for each GPU, a bar for each stretch in which a job held it. Drag to move; Ctrl and the wheel zoom; the keys + − 0 and the arrows work too."));
    this.select.addEventListener("change", () => { this.policy = Number(this.select.value); void this.load(); });
    this.listen();
    whenColoursChange(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    new IntersectionObserver((entries) => {
      this.isVisible = entries.some((entry) => entry.isIntersecting);
      if (this.isVisible && !this.isDrawn) void this.load();
    }, { rootMargin: "200px" }).observe(place);
  }

  /** Another result; its bars are fetched when the timeline is in view. */
  show(result: Result): void {
    this.result = result;
    this.policy = Math.min(this.policy, result.labels.length - 1);
    fill(this.select, ...result.labels.map((label, at) => h("option", { value: String(at) }, label)));
    this.select.value = String(this.policy);
    this.isDrawn = false;
    if (this.isVisible) void this.load();
  }

  private async load(): Promise<void> {
    const result = this.result;
    if (!result) return;
    let bytes: ArrayBuffer;
    try { bytes = await getBytes(`/api/timeline/${result.id}/${this.policy}`); } catch { return; }
    if (result !== this.result || !bytes.byteLength) return;
    const all = new Uint8Array(bytes);
    const end = all.indexOf(10);
    const head: Head = JSON.parse(new TextDecoder().decode(all.subarray(0, end)));
    const isSame = this.head?.length_s === head.length_s && this.head?.policy === head.policy;
    this.head = head;
    this.bars = new Uint32Array(bytes, end + 1);
    if (!isSame) { this.from = 0; this.to = Math.max(1, head.length_s); }
    this.isDrawn = true;
    requestAnimationFrame(() => this.draw());
  }

  private zoom(factor: number, at: number): void {
    const all = this.head?.length_s ?? 1;
    const span = Math.min(all, Math.max(10, (this.to - this.from) * factor));
    const centre = this.from + (this.to - this.from) * at;
    this.move(centre - span * at, span);
  }

  private move(from: number, span: number): void {
    const all = this.head?.length_s ?? 1;
    this.from = Math.max(0, Math.min(from, all - span));
    this.to = this.from + span;
    requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    const { canvas, head } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const context = canvas.getContext("2d");
    if (!head || !context || !width) return;
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    context.scale(scale, scale);
    const shades = Array.from({ length: N_COLOURS }, (_none, at) => colour(`colour-${at}`));
    const models = new Map<string, number>();
    const shade = head.jobs.map(([, model]) => { if (!models.has(model)) models.set(model, models.size % N_COLOURS); return models.get(model) ?? 0; });
    const row = height / Math.max(1, head.rows.length);
    const pixels = width / (this.to - this.from);
    if (this.ends.length < head.rows.length) this.ends = new Uint32Array(head.rows.length);
    this.ends.fill(0);
    let last = -1;
    let n = 0;
    for (let at = 0; at < this.bars.length; at += 4) {
      const [begin, end] = [this.bars[at + 2] / 10, this.bars[at + 3] / 10];
      if (end < this.from || begin > this.to) continue;
      const x = Math.max(0, (begin - this.from) * pixels);
      const right = (end - this.from) * pixels;
      const line = this.bars[at + 1];
      if (right < this.ends[line]) continue;
      this.ends[line] = Math.ceil(right);
      const of = shade[this.bars[at]];
      if (of !== last) { context.fillStyle = shades[of]; last = of; }
      context.fillRect(x, line * row, Math.max(0.7, right - x), Math.max(0.7, row - (row > 4 ? 1 : 0)));
      n++;
    }
    canvas.dataset.drawn = String(n);
    if (head.left_out) this.tip.textContent = `${head.left_out.toLocaleString("en")} later bars are left out`;
  }

  private at(event: MouseEvent): number | null {
    const { head, canvas } = this;
    if (!head) return null;
    const time = (this.from + ((this.to - this.from) * event.offsetX) / canvas.clientWidth) * 10;
    const row = Math.floor((event.offsetY / canvas.clientHeight) * head.rows.length);
    for (let at = 0; at < this.bars.length; at += 4) if (this.bars[at + 1] === row && this.bars[at + 2] <= time && time < this.bars[at + 3]) return at;
    return null;
  }

  private listen(): void {
    const { canvas } = this;
    let drag: { x: number; from: number } | null = null;
    let hasMoved = false;
    canvas.addEventListener("pointerdown", (event) => { drag = { x: event.offsetX, from: this.from }; hasMoved = false; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        hasMoved ||= Math.abs(event.offsetX - drag.x) > 3;
        this.move(drag.from - ((event.offsetX - drag.x) / canvas.clientWidth) * (this.to - this.from), this.to - this.from);
        return;
      }
      const found = this.at(event);
      const { head } = this;
      if (found === null || !head) { this.tip.textContent = ""; return; }
      const [job, row, begin, end] = this.bars.subarray(found, found + 4);
      const [name, model, gpus] = head.jobs[job];
      const hours = (tenths: number) => ((head.begin_s + tenths / 10) / 3600).toFixed(2);
      this.tip.textContent = `job ${name} (${model}, ${gpus} GPU${gpus === 1 ? "" : "s"}) on ${head.rows[row]}, ${hours(begin)} h to ${hours(end)} h`;
    });
    canvas.addEventListener("pointerup", (event) => {
      const found = hasMoved ? null : this.at(event);
      drag = null;
      if (found !== null && this.head) this.pick(this.head.jobs[this.bars[found]][0], this.policy);
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, event.offsetX / canvas.clientWidth);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const span = this.to - this.from;
      const moves: Record<string, () => void> = {
        "+": () => this.zoom(0.6, 0.5), "-": () => this.zoom(1 / 0.6, 0.5), "0": () => this.zoom(1e9, 0.5),
        ArrowLeft: () => this.move(this.from - span / 5, span), ArrowRight: () => this.move(this.from + span / 5, span),
      };
      if (moves[event.key]) { event.preventDefault(); moves[event.key](); }
    });
  }
}
