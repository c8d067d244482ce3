// The frame that all plots share: an SVG with axes, marks that can be pointed at or walked
// through with the arrow keys, and one tip for the page.

// A phone gets a narrow drawing, because the text of a wide one would be too small to read there.
let NARROW = false;
let WIDTH = 960;
function fit() {
  NARROW = document.documentElement.clientWidth < 640;
  WIDTH = NARROW ? 380 : 960;
}

function node(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  // Text goes in as text: nothing of a record is ever parsed as markup.
  if (text !== undefined) made.textContent = text;
  return made;
}

// Colours that are told apart, also side by side; dyno has the first.
const COLOURS = 10;
// The place of each system in the order of the page, which decides its colour where it can.
const places = new Map([["dyno", 0]]);
function bare(system) {
  return system.replace(/ again$/, "");
}

// The colours of one plot: a system keeps its own unless another one of the plot has it already.
function paint(systems) {
  const colours = new Map();
  const taken = new Set();
  const names = [...new Set(systems.map(bare))];
  for (const name of names) if (!places.has(name)) places.set(name, places.size);
  names.sort((a, b) => places.get(a) - places.get(b));
  for (const name of names) {
    let number = places.get(name) % COLOURS;
    for (let tries = 0; tries < COLOURS && taken.has(number); tries += 1) number = (number + 1) % COLOURS;
    // More systems than colours: hues between them, which are all different.
    colours.set(name, taken.has(number) ? `hsl(${taken.size * 47 + 20} 40% var(--far))` : `var(--s${number})`);
    taken.add(taken.has(number) ? COLOURS + taken.size : number);
  }
  return (system) => colours.get(bare(system));
}

function frame(holder, height, label, systems) {
  const svg = node("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`,
    role: "group",
    tabindex: "0",
    "aria-label": `${label}. Arrow keys walk through the values.`,
  });
  holder.append(svg);
  return { svg, marks: [], colour: paint(systems) };
}

function axisBelow(chart, scale, top, bottom, unit) {
  let free = 0;
  for (const tick of scale.ticks) {
    const x = scale.at(tick);
    chart.svg.append(node("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }));
    const text = words(tick, unit);
    // A label that would run into the one before it, or out of the plot, is left out; its line
    // stays.
    const half = text.length * 3.5;
    if (x - half < free || x + half > WIDTH + 4) continue;
    free = x + half + 6;
    chart.svg.append(node("text", { class: "tick", x, y: bottom + 16, "text-anchor": "middle" }, text));
  }
}

function axisLeft(chart, scale, left, right, unit) {
  for (const tick of scale.ticks) {
    const y = scale.at(tick);
    chart.svg.append(node("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
    const text = words(tick, unit);
    chart.svg.append(node("text", { class: "tick", x: left - 8, y: y + 4, "text-anchor": "end" }, text));
  }
}

function mark(chart, x, y, system, said, hollow) {
  const made = node("circle", {
    class: "mark", cx: x, cy: y, r: 4,
    style: hollow
      ? `fill: var(--ground); stroke: ${chart.colour(system)}; stroke-width: 1.5`
      : `fill: ${chart.colour(system)}`,
  });
  chart.svg.append(made);
  chart.marks.push({ made, x, y, said });
}

// Names the systems in lines above the plot; returns where the plot may begin. A test reads the
// names and colours off the dots.
function legend(chart, systems, left) {
  let [x, y] = [left, 10];
  for (const system of systems) {
    const width = 40 + system.length * 8;
    if (x > left && x + width > WIDTH) [x, y] = [left, y + 20];
    const dot = { class: "key", cx: x + 5, cy: y, r: 5, style: `fill: ${chart.colour(system)}` };
    chart.svg.append(node("circle", dot));
    chart.svg.append(node("text", { class: "name", x: x + 15, y: y + 4 }, system));
    x += width;
  }
  return y + 20;
}

// Pointing and walking; call when all marks are there.
function listen(chart) {
  const tip = document.getElementById("tip");
  let current = -1;
  const show = (index) => {
    chart.marks[current]?.made.classList.remove("on");
    current = index;
    const one = chart.marks[index];
    tip.hidden = !one;
    if (!one) return;
    one.made.classList.add("on");
    tip.textContent = one.said;
    const box = one.made.getBoundingClientRect();
    const left = Math.min(box.right + 8, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
    tip.style.top = `${box.top + window.scrollY - tip.offsetHeight - 6}px`;
  };
  chart.svg.addEventListener("pointermove", (event) => {
    const box = chart.svg.getBoundingClientRect();
    const factor = WIDTH / box.width;
    const [x, y] = [(event.clientX - box.left) * factor, (event.clientY - box.top) * factor];
    let best = -1;
    let least = 20 * 20;
    chart.marks.forEach((one, index) => {
      const distance = (one.x - x) ** 2 + (one.y - y) ** 2;
      if (distance < least) [best, least] = [index, distance];
    });
    if (best !== current) show(best);
  });
  chart.svg.addEventListener("pointerleave", () => show(-1));
  chart.svg.addEventListener("blur", () => show(-1));
  chart.svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") show(-1);
    if (!step || !chart.marks.length) return;
    event.preventDefault();
    const from = current < 0 && step < 0 ? 0 : current;
    show((from + step + chart.marks.length) % chart.marks.length);
  });
}
