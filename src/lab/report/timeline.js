// The GPU timeline: a row for each GPU, a bar for each stretch of a job. Only what is in sight is drawn, and of stretches
// thinner than a pixel only one for each pixel, so that thousands of jobs stay smooth.
"use strict";
(() => {
  const box = document.getElementById("timeline");
  if (!box) return;
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const canvas = box.querySelector("canvas");
  const tip = document.getElementById("timeline-tip");
  const choice = document.getElementById("timeline-run");
  const find = document.getElementById("timeline-find");
  const context = canvas.getContext("2d");
  // A phone has no room for wide names left of the bars.
  const LEFT = innerWidth < 640 ? 64 : 96;
  const TOP = 26;
  let run = data.runs[0];
  let view = null;
  let wanted = "";
  let pending = false;

  const grouped = (value, digits = 0) => value.toLocaleString("en-US", { maximumFractionDigits: digits });
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
  // What a job is coloured by: its model, its tenant or itself. Kinds with the most jobs come first, and neighbours get hues
  // far apart: multiples of the golden angle.
  const colourBy = document.getElementById("timeline-colour");
  const legend = document.getElementById("timeline-legend");
  const MOST_KINDS = 12;
  let kindOf = [];
  const kindName = { model: (job) => job[1], tenant: (job) => job[3], job: (job) => job[0] };
  const hue = (kind) => (210 + kind * 137.508) % 360;
  const tone = () => (isDark() ? [55, 52] : [62, 58]);
  const hsl = (kind, lit) => `hsl(${hue(kind)} ${tone()[0]}% ${tone()[1]}% / ${lit ? 1 : 0.15})`;
  // Black or white, whichever stands out more from the bar: at least 4.5 to 1, by WCAG's formula.
  const inkOn = (kind) => {
    const [s, l] = tone().map((percent) => percent / 100);
    const linear = (n) => {
      const k = (n + hue(kind) / 30) % 12;
      const value = l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    };
    const light = 0.2126 * linear(0) + 0.7152 * linear(8) + 0.0722 * linear(4) + 0.05;
    return 1.05 / light > light / 0.05 ? "#fff" : "#000";
  };
  const colour = (job, lit) => hsl(kindOf[job], lit);
  const classify = () => {
    const name = kindName[colourBy.value];
    const count = new Map();
    for (const job of run.jobs) count.set(name(job), (count.get(name(job)) || 0) + 1);
    const order = [...count.keys()].sort((a, b) => count.get(b) - count.get(a) || String(a).localeCompare(String(b)));
    const place = new Map(order.map((kind, at) => [kind, at]));
    kindOf = run.jobs.map((job) => place.get(name(job)));
    legend.hidden = colourBy.value === "job";
    legend.replaceChildren(...order.slice(0, legend.hidden ? 0 : MOST_KINDS).map((kind, at) => {
      const item = document.createElement("li");
      const sample = document.createElement("span");
      sample.style.background = hsl(at, true);
      item.append(sample, `${kind} (${grouped(count.get(kind))})`);
      return item;
    }));
    if (!legend.hidden && order.length > MOST_KINDS) {
      const more = document.createElement("li");
      more.textContent = `and ${grouped(order.length - MOST_KINDS)} more`;
      legend.append(more);
    }
  };

  const rows = () => run.rows.length;
  const whole = () => ({ from: run.from, to: run.to, top: 0, bottom: rows() });
  const width = () => canvas.clientWidth - LEFT;
  const height = () => canvas.clientHeight - TOP;
  const x = (time) => LEFT + ((time - view.from) / (view.to - view.from)) * width();
  const y = (row) => TOP + ((row - view.top) / (view.bottom - view.top)) * height();

  const unit = (span) => {
    for (const [sign, s] of [["d", 86400], ["h", 3600], ["min", 60]]) if (span >= 4 * s) return [sign, s];
    return ["s", 1];
  };

  const axis = () => {
    const [sign, s] = unit(view.to - view.from);
    const rough = (view.to - view.from) / s / Math.max(4, width() / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((f) => f >= rough) * s;
    context.fillStyle = style("--quiet");
    context.strokeStyle = style("--line");
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      context.beginPath();
      context.moveTo(x(t), TOP);
      context.lineTo(x(t), TOP + height());
      context.stroke();
      const text = `${grouped(t / s, 3)} ${sign}`;
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(x(t), LEFT + half), canvas.clientWidth - half - 2), TOP / 2);
    }
  };

  const labels = () => {
    const size = height() / (view.bottom - view.top);
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = style("--quiet");
    let last = -99;
    for (let row = Math.floor(view.top); row < Math.min(rows(), view.bottom); row++) {
      const isNode = row === 0 || run.rows[row][0] !== run.rows[row - 1][0];
      if (isNode) {
        context.strokeStyle = style("--line");
        context.beginPath();
        context.moveTo(0, y(row));
        context.lineTo(canvas.clientWidth, y(row));
        context.stroke();
      }
      const middle = y(row) + size / 2;
      if (size >= 12 || (isNode && middle - last >= 13 && y(row) >= TOP)) {
        const [node, gpu] = run.rows[row];
        context.fillText(size >= 12 ? `${node} · ${gpu}` : node, LEFT - 6, Math.max(middle, TOP + 7));
        last = middle;
      }
    }
  };

  const bars = () => {
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, width(), height());
    context.clip();
    const size = height() / (view.bottom - view.top);
    const filled = new Int32Array(rows()).fill(-1);
    let drawn = 0;
    for (const [job, row, from, to] of run.bars) {
      if (to < view.from || from > view.to || row + 1 < view.top || row > view.bottom) continue;
      const left = x(from);
      const right = x(to);
      const isLit = !wanted || run.jobs[job][0] === wanted;
      if (right - left < 1 && isLit && !wanted) {
        const pixel = left | 0;
        if (filled[row] === pixel) continue;
        filled[row] = pixel;
      }
      context.fillStyle = colour(job, isLit);
      context.fillRect(left, y(row) + Math.min(1, size * 0.08), Math.max(right - left - (right - left > 3 ? 1 : 0), 0.75), size - Math.min(2, size * 0.16));
      drawn += 1;
      if (right - left > 36 && size > 11) {
        context.fillStyle = isLit ? inkOn(kindOf[job]) : style("--quiet");
        context.textAlign = "left";
        context.textBaseline = "middle";
        context.save();
        context.beginPath();
        context.rect(left, y(row), right - left - 2, size);
        context.clip();
        context.fillText(run.jobs[job][0], Math.max(left, LEFT) + 4, y(row) + size / 2);
        context.restore();
      }
    }
    context.restore();
    box.dataset.drawn = String(drawn);
  };

  const draw = () => {
    pending = false;
    const ratio = devicePixelRatio || 1;
    const [w, h] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, w, h);
    context.font = "12px system-ui, sans-serif";
    axis();
    bars();
    labels();
    box.dataset.view = [view.from, view.to].map((t) => t.toFixed(1)).join("..");
  };
  const redraw = () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(draw);
  };

  const clamp = () => {
    const all = whole();
    const span = Math.min(Math.max(view.to - view.from, (all.to - all.from) * 1e-6), all.to - all.from);
    view.from = Math.min(Math.max(view.from, all.from), all.to - span);
    view.to = view.from + span;
    const tall = Math.min(Math.max(view.bottom - view.top, 1), rows());
    view.top = Math.min(Math.max(view.top, 0), rows() - tall);
    view.bottom = view.top + tall;
  };
  const zoom = (factor, px, py) => {
    const at = view.from + ((px - LEFT) / width()) * (view.to - view.from);
    view.from = at - (at - view.from) * factor;
    view.to = at + (view.to - at) * factor;
    if (py !== null) {
      const row = view.top + ((py - TOP) / height()) * (view.bottom - view.top);
      view.top = row - (row - view.top) * factor;
      view.bottom = row + (view.bottom - row) * factor;
    }
    clamp();
    redraw();
  };
  const pan = (dx, dy) => {
    const t = (dx / width()) * (view.to - view.from);
    const r = (dy / height()) * (view.bottom - view.top);
    view = { from: view.from - t, to: view.to - t, top: view.top - r, bottom: view.bottom - r };
    clamp();
    redraw();
  };

  const under = (px, py) => {
    const time = view.from + ((px - LEFT) / width()) * (view.to - view.from);
    const row = Math.floor(view.top + ((py - TOP) / height()) * (view.bottom - view.top));
    return run.bars.find((bar) => bar[1] === row && bar[2] <= time && time < bar[3]);
  };
  const point = (event) => {
    const rect = canvas.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };
  const say = (bar) => {
    if (!bar) {
      tip.textContent = "";
      return;
    }
    const [name, model, gpus, tenant] = run.jobs[bar[0]];
    const [node, gpu] = run.rows[bar[1]];
    const [sign, s] = unit(run.to - run.from);
    const time = (t) => `${grouped(t / s, 2)} ${sign}`;
    tip.textContent = `job ${name} (${model} of ${tenant}, asks ${gpus}) on ${node} GPU ${gpu} from ${time(bar[2])} to ${time(bar[3])}`;
  };

  // The page must still scroll under a finger or wheel that only passes by: Ctrl or a second finger zooms.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const [px, py] = point(event);
    zoom(Math.exp(Math.sign(event.deltaY || event.deltaX) * 0.2), px, event.shiftKey ? py : null);
  }, { passive: false });
  const fingers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, point(event));
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = point(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      say(under(...now));
      return;
    }
    fingers.set(event.pointerId, now);
    if (fingers.size === 1) {
      pan(now[0] - before[0], now[1] - before[1]);
    } else {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const far = (a) => Math.hypot(a[0] - other[0], a[1] - other[1]) || 1;
      zoom(far(before) / far(now), (now[0] + other[0]) / 2, null);
    }
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("dblclick", () => {
    view = whole();
    redraw();
  });
  canvas.addEventListener("keydown", (event) => {
    const middle = [LEFT + width() / 2, TOP + height() / 2];
    const keys = {
      "+": () => zoom(0.7, middle[0], null),
      "-": () => zoom(1 / 0.7, middle[0], null),
      ArrowLeft: () => pan(80, 0),
      ArrowRight: () => pan(-80, 0),
      ArrowUp: () => pan(0, 60),
      ArrowDown: () => pan(0, -60),
      0: () => { view = whole(); redraw(); },
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  for (const button of box.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => {
      const factor = Number(button.dataset.zoom);
      if (factor) zoom(factor, LEFT + width() / 2, null);
      else {
        view = whole();
        redraw();
      }
    });
  }
  find.addEventListener("input", () => {
    wanted = find.value.trim();
    const bar = wanted && run.bars.find((b) => run.jobs[b[0]][0] === wanted);
    if (wanted && !bar) wanted = "";
    say(bar || undefined);
    redraw();
  });
  if (choice) choice.addEventListener("change", () => {
    run = data.runs[choice.selectedIndex];
    view = whole();
    classify();
    redraw();
  });
  const recolour = () => {
    classify();
    redraw();
  };
  colourBy.addEventListener("change", recolour);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new ResizeObserver(redraw).observe(canvas);
  addEventListener("beforeprint", draw);
  view = whole();
  const several = (at) => new Set(run.jobs.map((job) => job[at])).size > 1;
  if (!several(1)) colourBy.value = several(3) ? "tenant" : "job";
  classify();
  draw();
})();
