// Nodes and their GPUs as a map on a canvas: a box for each node, a cell for each GPU. Only nodes that changed are drawn again.
import { colour, fill, h, whenColoursChange } from "../dom";
import type { Node } from "./model";

const N_COLOURS = 11;
const GAP = 4;

export interface Shade {
  /** What a cell says: an index into the palette, a share from 0 to 1, or nothing. */
  of(node: Node, gpu: number): { palette: number } | { share: number } | null;
  about(node: Node, gpu: number): string;
  legend(): HTMLElement[];
}

export class NodeMap {
  private nodes: Node[] = [];
  private place = new Map<string, number>();
  private shade: Shade | null = null;
  private columns = 1;
  private box = { width: 20, height: 12, cell: 4, across: 4, down: 2 };
  private dirty = new Set<number>();
  private isAsked = false;
  private isWhole = true;
  private at = 0;
  private palette: string[] = [];
  private ink = { held: "", free: "", line: "", bad: "", focus: "", warm: "" };
  private readonly canvas = h("canvas", { tabIndex: 0, role: "application", "aria-label": "map of nodes and GPUs: arrow keys choose a node, Enter opens it" });
  private readonly tip = h("p", { role: "status", className: "quiet" }, "");

  constructor(place: HTMLElement, private readonly open: (node: Node) => void) {
    fill(place, h("div", { className: "map" }, this.canvas), this.tip);
    new ResizeObserver(() => this.whole()).observe(this.canvas);
    whenColoursChange(() => this.whole());
    this.listen();
  }

  show(nodes: Node[], shade: Shade): void {
    const isSame = nodes.length === this.nodes.length && nodes.every((node, at) => node.name === this.nodes[at].name && node.gpus.length === this.nodes[at].gpus.length);
    [this.nodes, this.shade] = [nodes, shade];
    this.place = new Map(nodes.map((node, at) => [node.name, at]));
    if (!isSame) this.at = Math.min(this.at, Math.max(0, nodes.length - 1));
    this.whole();
  }

  /** Nodes that have changed. */
  change(names: Iterable<string>): void {
    for (const name of names) { const at = this.place.get(name); if (at !== undefined) this.dirty.add(at); }
    this.soon();
  }

  private whole(): void { this.isWhole = true; this.soon(); }

  private soon(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => { this.isAsked = false; this.draw(); });
  }

  private layout(): void {
    const { canvas, nodes } = this;
    const width = canvas.clientWidth;
    const most = Math.max(1, ...nodes.map((node) => node.gpus.length));
    const across = most <= 2 ? most : most <= 8 ? Math.ceil(most / 2) : Math.ceil(Math.sqrt(most));
    const down = Math.ceil(most / across);
    // Cells as large as they can be for the map to stay within a screen's height.
    const room = Math.max(260, Math.min(innerHeight * 0.55, 560));
    let cell = 26;
    for (; cell > 4; cell--) {
      const columns = Math.max(1, Math.floor((width + GAP) / (across * cell + 2 + GAP)));
      if (Math.ceil(nodes.length / columns) * (down * cell + 2 + GAP) <= room) break;
    }
    this.box = { cell, across, down, width: across * cell + 2, height: down * cell + 2 };
    this.columns = Math.max(1, Math.floor((width + GAP) / (this.box.width + GAP)));
    const height = Math.max(40, Math.ceil(nodes.length / this.columns) * (this.box.height + GAP));
    canvas.style.height = `${height}px`;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    this.palette = Array.from({ length: N_COLOURS }, (_none, at) => colour(`colour-${at}`));
    this.ink = { held: colour("quiet"), free: colour("stripe"), line: colour("line"), bad: colour("bad"), focus: colour("accent-text"), warm: colour("accent-fill") };
  }

  private draw(): void {
    const { canvas } = this;
    const context = canvas.getContext("2d");
    if (!context || !canvas.clientWidth) return;
    if (this.isWhole) this.layout();
    const scale = devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    if (this.isWhole) {
      context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
      this.nodes.forEach((_node, at) => this.node(context, at));
    } else this.dirty.forEach((at) => this.node(context, at));
    canvas.dataset.drawn = String(this.isWhole ? this.nodes.length : this.dirty.size);
    this.isWhole = false;
    this.dirty.clear();
  }

  private corner(at: number): [number, number] {
    return [(at % this.columns) * (this.box.width + GAP), Math.floor(at / this.columns) * (this.box.height + GAP)];
  }

  private node(context: CanvasRenderingContext2D, at: number): void {
    const node = this.nodes[at];
    const [x, y] = this.corner(at);
    const { width, height, cell, across } = this.box;
    const isFocused = at === this.at && document.activeElement === this.canvas;
    context.clearRect(x - 2, y - 2, width + 4, height + 4);
    const isUp = node.state === "up";
    for (let gpu = 0; gpu < node.gpus.length; gpu++) {
      const shade = this.shade?.of(node, gpu) ?? null;
      context.fillStyle = !shade ? this.ink.free : "palette" in shade ? this.palette[shade.palette % N_COLOURS] : this.ink.warm;
      if (shade && "share" in shade) { context.fillStyle = this.ink.free; }
      const [left, top] = [x + 1 + (gpu % across) * cell, y + 1 + Math.floor(gpu / across) * cell];
      const inner = cell > 6 ? cell - 1 : cell;
      context.fillRect(left, top, inner, inner);
      if (shade && "share" in shade) {
        const filled = Math.max(0, Math.min(1, shade.share)) * inner;
        context.fillStyle = this.ink.warm;
        context.fillRect(left, top + inner - filled, inner, filled);
      }
      if (node.gpus[gpu].trouble) { context.strokeStyle = this.ink.bad; context.lineWidth = 1.5; context.strokeRect(left + 0.75, top + 0.75, inner - 1.5, inner - 1.5); }
    }
    context.strokeStyle = isFocused ? this.ink.focus : isUp ? this.ink.line : this.ink.bad;
    context.lineWidth = isFocused ? 2 : 1;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    // What is out of service is crossed out, so that it can be told without colours.
    if (!isUp) { context.beginPath(); context.moveTo(x + 1, y + height - 1); context.lineTo(x + width - 1, y + 1); context.stroke(); }
  }

  private tell(at: number, gpu: number | null): void {
    const node = this.nodes[at];
    if (!node) { this.tip.textContent = ""; return; }
    const held = node.gpus.filter((one) => one.job !== null).length;
    const cell = gpu !== null && this.shade && gpu < node.gpus.length ? `; GPU ${gpu}: ${this.shade.about(node, gpu)}` : "";
    this.tip.textContent = `${node.name}: ${node.state}${node.reason ? ` (${node.reason})` : ""}, ${node.gpu_type}, ${held} of ${node.gpus.length} GPUs held${cell}`;
  }

  private hit(event: MouseEvent): [number, number] | null {
    const { width, height, cell, across } = this.box;
    const [column, row] = [Math.floor(event.offsetX / (width + GAP)), Math.floor(event.offsetY / (height + GAP))];
    const at = row * this.columns + column;
    if (column >= this.columns || at >= this.nodes.length) return null;
    const [x, y] = this.corner(at);
    return [at, Math.floor((event.offsetY - y - 1) / cell) * across + Math.max(0, Math.min(across - 1, Math.floor((event.offsetX - x - 1) / cell)))];
  }

  private choose(at: number): void {
    const before = this.at;
    this.at = Math.max(0, Math.min(at, this.nodes.length - 1));
    this.dirty.add(before).add(this.at);
    this.soon();
    this.tell(this.at, null);
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => { const found = this.hit(event); if (found) this.tell(...found); else this.tip.textContent = ""; });
    canvas.addEventListener("click", (event) => { const found = this.hit(event); if (found) this.open(this.nodes[found[0]]); });
    canvas.addEventListener("focus", () => this.choose(this.at));
    canvas.addEventListener("blur", () => { this.dirty.add(this.at); this.soon(); });
    canvas.addEventListener("keydown", (event) => {
      const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns };
      if (event.key === "Enter" && this.nodes[this.at]) this.open(this.nodes[this.at]);
      else if (event.key in steps) { event.preventDefault(); this.choose(this.at + steps[event.key]); }
    });
  }
}
