// Draws every plot that the page has, and opens what a link points at.

const data = JSON.parse(document.getElementById("data").textContent);
const kinds = {
  strip: (holder, index) => drawStrip(holder, data.strips[index]),
  sweep: (holder, index) => drawSweep(holder, data.sweeps[index]),
  latency: (holder, index) => drawLatency(holder, data.latencies[index]),
  time: (holder, index) => drawSweep(holder, data.times[index]),
  flame: (holder, index) => drawFlame(holder, data.flames[index]),
  roofline: (holder, index) => drawRoofline(holder, data.rooflines[index]),
  stages: (holder, index) => drawStages(holder, data.stages[index]),
};

function drawAll() {
  fit();
  const holders = document.querySelectorAll(".plot");
  for (const holder of holders) {
    holder.replaceChildren();
    kinds[holder.dataset.plot](holder, Number(holder.dataset.index));
  }
  // A test reads this: it says that the script ran to its end.
  document.documentElement.dataset.plotsDrawn = String(holders.length);
}

// A target inside a closed part of the page is opened, and what closed parts move is scrolled
// again.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  target.scrollIntoView();
}

// What a cell says as a number in its base unit, or nothing where it is not one.
function amount(text) {
  const found = text.replaceAll("\u00a0", " ").match(/^±?(-?\d[\d.]*)\s*(.*)/);
  if (!found) return null;
  const [, value, unit] = found;
  const time = unit.match(/^([nµm])s\b/);
  const size = unit.match(/^([kMGTP])(?=$|[ B/])/);
  const factor = time ? { n: 1e-9, µ: 1e-6, m: 1e-3 }[time[1]] : 1000 ** (size ? "kMGTP".indexOf(size[1]) + 1 : 0);
  return Number(value) * factor;
}

// Sorts a table by a column; what is not a number comes behind the numbers, whichever way.
function sortBy(head) {
  const table = head.closest("table");
  const column = [...head.parentElement.children].indexOf(head);
  const way = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
  for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map((row) => {
    const text = row.cells[column].textContent.trim();
    return { row, text, value: amount(text) };
  });
  rows.sort((a, b) => {
    if (a.value === null && b.value === null) return -way * b.text.localeCompare(a.text);
    if (a.value === null || b.value === null) return a.value === null ? 1 : -1;
    return way * (a.value - b.value);
  });
  table.tBodies[0].append(...rows.map((one) => one.row));
}

// A table of two rows needs no sorting, and its heads no stop of the tabulator.
for (const table of document.querySelectorAll(".scroll table")) {
  if (table.tBodies[0].rows.length < 3) continue;
  for (const head of table.tHead.rows[0].cells) {
    if (!head.textContent) continue;
    head.classList.add("sorts");
    head.tabIndex = 0;
    head.title = "Sort by this column";
    head.addEventListener("click", () => sortBy(head));
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sortBy(head);
    });
  }
}

drawAll();
openTarget();
window.addEventListener("hashchange", openTarget);
window.matchMedia("(max-width: 639px)").addEventListener("change", drawAll);
// Paper cannot be opened, so all is printed but the raw table.
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not(#raw)")) part.open = true;
});
