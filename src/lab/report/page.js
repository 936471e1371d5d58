// The job table: filter, sort, and show a part at a time. Text only ever enters the page as text.
"use strict";
(() => {
  const PART = 100;
  const data = JSON.parse(document.getElementById("job-data").textContent);
  // A column in which no job has anything, such as deadlines where there are none, only takes room.
  const isUsed = data.headings.map((_, c) => data.runs.some((rows) => rows.some((row) => row[c] !== null && row[c] !== "")));
  const used = (row) => row.filter((_, c) => isUsed[c]);
  data.runs = data.runs.map((rows) => rows.map(used));
  data.headings = used(data.headings);
  const table = document.getElementById("jobs");
  const body = table.tBodies[0];
  const run = document.getElementById("job-run");
  const status = document.getElementById("job-status");
  const filter = document.getElementById("job-filter");
  const count = document.getElementById("job-count");
  const more = document.getElementById("job-more");
  const statusColumn = data.headings.indexOf("status");
  const reasonColumn = data.headings.indexOf("reason");
  const numeric = data.headings.map((_, c) => data.runs.some((rows) => rows.some((row) => typeof row[c] === "number")));
  const words = new WeakMap();
  let sorted = { column: -1, sign: 1 };
  let shown = PART;

  // As many decimals as the column needs, so that the digits stand below each other; thousands apart as everywhere.
  const decimals = data.headings.map((_, c) =>
    data.runs.some((rows) => rows.some((row) => typeof row[c] === "number" && !Number.isInteger(row[c]))) ? 2 : 0);
  const grouped = (value, digits = 0) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const number = (value, c) => grouped(value, decimals[c]);

  const text = (row) => {
    if (!words.has(row)) words.set(row, row.map((v) => (v === null ? "" : String(v))).join(" ").toLowerCase());
    return words.get(row);
  };

  // A missing value comes last whichever way the rest is sorted.
  const compare = (a, b) => {
    const [x, y] = [a[sorted.column], b[sorted.column]];
    const [noX, noY] = [x === null || x === "", y === null || y === ""];
    if (noX || noY) return noX - noY;
    return sorted.sign * (numeric[sorted.column] ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true }));
  };

  const matching = () => {
    const terms = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = data.runs[run ? run.selectedIndex : 0] || [];
    const found = rows.filter(
      (row) => (!status.value || row[statusColumn] === status.value) && terms.every((term) => text(row).includes(term)),
    );
    return sorted.column < 0 ? found : found.sort(compare);
  };

  const line = (row) => {
    const tr = document.createElement("tr");
    row.forEach((value, c) => {
      // The first column names the job, and heads its card on a phone.
      const td = document.createElement(c === 0 ? "th" : "td");
      if (c === 0) td.scope = "row";
      td.textContent = typeof value === "number" ? number(value, c) : value ?? "";
      td.dataset.label = data.headings[c];
      if (!numeric[c]) td.className = c === reasonColumn && value ? "text long" : "text";
      tr.append(td);
    });
    return tr;
  };

  const show = () => {
    const rows = matching();
    body.replaceChildren(...rows.slice(0, shown).map(line));
    count.textContent = `${grouped(Math.min(shown, rows.length))} of ${grouped(rows.length)} jobs`;
    more.hidden = rows.length <= shown;
  };

  const restart = () => {
    shown = PART;
    show();
  };

  data.headings.forEach((heading, c) => {
    const th = document.createElement("th");
    th.scope = "col";
    if (!numeric[c]) th.className = "text";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading;
    button.addEventListener("click", () => {
      sorted = { column: c, sign: sorted.column === c ? -sorted.sign : 1 };
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", sorted.sign > 0 ? "ascending" : "descending");
      restart();
    });
    th.append(button);
    table.tHead.rows[0].append(th);
  });

  for (const control of [run, status]) if (control) control.addEventListener("change", restart);
  filter.addEventListener("input", restart);
  more.addEventListener("click", () => {
    shown += 5 * PART;
    show();
  });
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  show();
})();
