// A curve with a band around it: what was measured, or what is forecast with its spread.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colour, fill, h, whenColoursChange } from "../dom";

const HEIGHT = 180;

export class Band {
  readonly box: HTMLElement;
  private readonly canvas: HTMLElement;
  private plot: uPlot | null = null;
  private points: number[][] = [];
  private over = "";
  private readonly sizes: ResizeObserver;
  private isOpen = true;

  constructor(title: string, private readonly label: string, private readonly unit: string) {
    this.canvas = h("div", { role: "img" });
    this.box = h("figure", { hidden: true, "data-name": title }, h("h3", {}, title), this.canvas);
    let width = 0;
    this.sizes = new ResizeObserver(() => { if (Math.abs(this.box.clientWidth - width) > 2) { width = this.box.clientWidth; this.draw(); } });
    this.sizes.observe(this.box);
    whenColoursChange(() => { if (this.isOpen) this.draw(); });
  }

  /** Points of x and y, or of x, middle, low and high. */
  show(points: number[][], over: string): void {
    [this.points, this.over] = [points, over];
    this.box.hidden = points.length < 2;
    this.draw();
  }

  close(): void {
    this.isOpen = false;
    this.sizes.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  private draw(): void {
    const { points } = this;
    if (points.length < 2 || !this.box.clientWidth) return;
    const last = points[points.length - 1];
    const band = points[0].length > 2 ? `, ${Math.round(last[2])} to ${Math.round(last[3])}` : "";
    this.canvas.setAttribute("aria-label", `${this.label}: from ${Math.round(points[0][1])} to ${Math.round(last[1])}${band} ${this.unit} over ${Math.round(last[0] - points[0][0])} ${this.over}`);
    const line = colour("colour-0");
    const axis = (label: string, size: number): uPlot.Axis => ({ label, labelSize: 20, labelFont: "12px system-ui", font: "11px system-ui", stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, size });
    const hasBand = points[0].length > 2;
    const edge: uPlot.Series = { stroke: line, width: 0.5, points: { show: false } };
    this.plot?.destroy();
    fill(this.canvas);
    this.plot = new uPlot({
      width: Math.max(160, this.box.clientWidth - 18), height: HEIGHT, legend: { show: false }, cursor: { points: { show: false }, drag: { x: false, y: false } }, padding: [8, 12, 0, 0],
      scales: { x: { time: false }, y: { range: (_u, _low, high) => [0, Math.max(1, high * 1.05)] } }, axes: [axis(this.over, 28), axis(this.label, 56)],
      series: [{}, { stroke: line, width: 2, points: { show: false } }, ...(hasBand ? [edge, edge] : [])],
      bands: hasBand ? [{ series: [3, 2], fill: /^#[0-9a-f]{6}$/i.test(line) ? `${line}38` : "transparent" }] : [],
    }, points[0].map((_value, at) => points.map((point) => point[at])) as uPlot.AlignedData, this.canvas);
    this.plot.root.setAttribute("aria-hidden", "true");
  }
}
