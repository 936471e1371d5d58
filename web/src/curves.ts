// Figures: lines with uPlot, bars as a list. They are the report's figures: title, caption, axes and points come from the server.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Axis, Figure, Line } from "./api";
import { colour, fill, h, whenColoursChange } from "./dom";

const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3]];
const HEIGHT = 210;

interface Drawn { box: HTMLElement; plot?: uPlot; signature: string; figure: Figure }

export class Curves {
  private drawn = new Map<string, Drawn>();

  constructor(private readonly place: HTMLElement) {
    whenColoursChange(() => this.redraw());
    let width = 0;
    new ResizeObserver(() => {
      if (Math.abs(place.clientWidth - width) < 2) return;
      width = place.clientWidth;
      for (const one of this.drawn.values()) one.plot?.setSize({ width: inner(one.box), height: HEIGHT });
    }).observe(place);
  }

  /** A step for each figure: drawn one after the other, none of them holds up the page. */
  show(figures: Figure[]): (() => void)[] {
    const names = new Set(figures.map((figure) => figure.name));
    for (const [name, one] of this.drawn) if (!names.has(name)) { one.plot?.destroy(); one.box.remove(); this.drawn.delete(name); }
    return figures.map((figure) => () => this.one(figure));
  }

  private redraw(): void {
    const figures = [...this.drawn.values()].map((one) => one.figure);
    for (const one of this.drawn.values()) { one.plot?.destroy(); one.box.remove(); }
    this.drawn.clear();
    this.show(figures).forEach((draw) => draw());
  }

  private one(figure: Figure): void {
    // A plot is kept where only its points change: that is most key presses.
    const signature = JSON.stringify([figure.x.label, figure.x.log, figure.y.label, figure.lines?.map((line) => [line.label, line.colour, line.dash])]);
    let drawn = this.drawn.get(figure.name);
    if (drawn && drawn.signature === signature && drawn.plot && figure.lines) {
      drawn.figure = figure;
      drawn.plot.setData(joined(figure.lines), true);
      drawn.box.dataset.points = String(points(figure.lines));
      return;
    }
    const box = drawn?.box ?? h("figure", {});
    drawn?.plot?.destroy();
    if (!drawn) this.place.append(box);
    drawn = { box, signature, figure };
    this.drawn.set(figure.name, drawn);
    box.dataset.name = figure.name;
    const title = h("h3", {}, figure.title);
    const caption = h("figcaption", {}, figure.caption);
    if (figure.bars) { fill(box, title, ...bars(figure), caption); return; }
    const lines = figure.lines ?? [];
    const canvas = h("div", { role: "img", "aria-label": spoken(figure, lines) });
    fill(box, title, legend(lines), canvas, caption);
    box.dataset.points = String(points(lines));
    const of = () => this.drawn.get(figure.name)?.figure ?? figure;
    drawn.plot = new uPlot(options(figure, lines, inner(box), of), joined(lines), canvas);
    drawn.plot.root.setAttribute("aria-hidden", "true");
  }
}

function inner(box: HTMLElement): number {
  return Math.max(160, box.clientWidth - 18);
}

function points(lines: Line[]): number {
  return lines.reduce((sum, line) => sum + Math.round(line.y.reduce((a, b) => a + b, 0) * 1000), 0);
}

function spoken(figure: Figure, lines: Line[]): string {
  return `${figure.title}: ${figure.y.label} over ${figure.x.label}, for ${lines.map((line) => line.label).join(", ")}`;
}

function legend(lines: Line[]): HTMLElement {
  return h("ul", { className: "legend" }, ...lines.map((line) => {
    const swatch = h("span", { className: "swatch" });
    swatch.style.borderTopColor = `var(--colour-${line.colour})`;
    swatch.style.borderTopStyle = line.dash ? "dashed" : "solid";
    return h("li", {}, swatch, line.label);
  }));
}

function bars(figure: Figure): HTMLElement[] {
  const svg = (value: number, shade: number) => {
    const box = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    rect.setAttribute("width", `${Math.min(100, (100 * value) / figure.x.to)}%`);
    rect.setAttribute("height", "100%");
    rect.style.fill = `var(--colour-${shade})`;
    box.setAttribute("aria-hidden", "true");
    box.append(rect);
    return box;
  };
  return (figure.bars ?? []).map((bar) =>
    h("div", { className: "bar" }, h("span", { className: "label" }, bar.label), svg(bar.value, bar.colour), h("span", {}, bar.text)));
}

/** All lines over the same places, as uPlot wants them; each keeps its own points. */
function joined(lines: Line[]): uPlot.AlignedData {
  return uPlot.join(lines.map((line) => distinct(line)), lines.map(() => [2, 2])) as uPlot.AlignedData;
}

/** Stairs have two points at one place: the second is moved by next to nothing. */
function distinct(line: Line): uPlot.AlignedData {
  const x = line.x.slice();
  for (let at = 1; at < x.length; at++) if (x[at] <= x[at - 1]) x[at] = x[at - 1] + Math.max(1e-9, Math.abs(x[at - 1]) * 1e-9);
  return [x, line.y];
}

function options(figure: Figure, lines: Line[], width: number, of: () => Figure): uPlot.Options {
  const ink = colour("ink");
  const quiet = colour("quiet");
  const grid = { stroke: colour("line"), width: 1 };
  const axis = (which: "x" | "y"): uPlot.Axis => ({
    label: figure[which].label, labelSize: 20, labelFont: "12px system-ui", font: "11px system-ui", stroke: quiet, grid, ticks: grid,
    size: which === "x" ? 28 : 46, labelGap: 0, filter: (_u, splits) => splits,
    splits: (u) => ticks(of()[which], which === "x" ? u.bbox.width / devicePixelRatio / 62 : 7).map((tick) => tick[0]),
    values: (_u, splits) => splits.map((value) => of()[which].ticks.find((tick) => tick[0] === value)?.[1] ?? ""),
  });
  const scale = (which: "x" | "y"): uPlot.Scale => ({
    time: false, distr: figure[which].log ? 3 : 1, range: () => [of()[which].from, of()[which].to],
  });
  return {
    width, height: HEIGHT, scales: { x: scale("x"), y: scale("y") }, axes: [axis("x"), axis("y")], legend: { show: false },
    cursor: { points: { show: false }, drag: { x: false, y: false } }, padding: [8, 12, 0, 0],
    series: [{}, ...lines.map((line): uPlot.Series => ({
      label: line.label, stroke: colour(`colour-${line.colour}`) || ink, width: 2, dash: DASHES[line.dash % DASHES.length],
      points: { show: false }, spanGaps: true,
    }))],
  };
}

/** As many ticks as there is room for. */
function ticks(axis: Axis, room: number): [number, string][] {
  const every = Math.max(1, Math.ceil(axis.ticks.length / Math.max(2, room)));
  return axis.ticks.filter((_tick, at) => at % every === 0);
}
