// The flame graph of a system: a bar for each function, as wide as its share of the samples, below
// the one that called it. A click, or Enter, gives one the whole width; a click on one above it goes back.

const ROW = 18;

function drawFlame(holder, flame) {
  const graph = document.createElement("div");
  graph.className = "flame";
  const said = document.createElement("p");
  said.className = "note";
  said.setAttribute("role", "status");
  holder.append(graph, said);
  const total = flame.root.samples;
  const share = (samples) => `${digits((100 * samples) / total)}%`;
  link(flame.root);
  const tell = (frame) => {
    const itself = frame.samples - frame.called.reduce((sum, one) => sum + one.samples, 0);
    said.textContent = `${frame.name}: ${share(frame.samples)} of ${total} samples, ${share(itself)} in itself or in what is too thin to be drawn`;
  };
  const zoom = (top, focus) => {
    graph.replaceChildren();
    const callers = [];
    for (let one = top; one.caller; one = one.caller) callers.unshift(one.caller);
    const bars = new Map();
    const add = (frame, row, from, width) => {
      const bar = document.createElement("button");
      bar.textContent = frame.name;
      bar.title = `${frame.name}\n${share(frame.samples)}`;
      bar.className = frame.name.endsWith("_[k]") ? "kernel" : /\bdyno/.test(frame.name) ? "ours" : "";
      bar.style.cssText = `left: ${from}%; width: ${width}%; top: ${row * ROW}px`;
      // Tab leaves the graph; arrow keys walk in it.
      bar.tabIndex = frame === top ? 0 : -1;
      bar.addEventListener("focus", () => tell(frame));
      bar.addEventListener("click", () => zoom(frame, true));
      bar.addEventListener("keydown", (event) => {
        const next = neighbour(frame, event.key);
        if (!next || !bars.has(next)) return;
        event.preventDefault();
        bars.get(next).focus();
      });
      bars.set(frame, bar);
      graph.append(bar);
    };
    callers.forEach((caller, row) => add(caller, row, 0, 100));
    const depth = fill(top, callers.length, 0, 100, add);
    graph.style.height = `${depth * ROW}px`;
    tell(top);
    if (focus) bars.get(top).focus();
  };
  zoom(flame.root, false);
}

// Gives each frame its caller, and its place among those that the caller called.
function link(frame) {
  frame.called.forEach((one, place) => {
    one.caller = frame;
    one.place = place;
    link(one);
  });
}

function neighbour(frame, key) {
  const beside = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (beside) return frame.caller?.called[frame.place + beside];
  return { ArrowDown: frame.called[0], ArrowUp: frame.caller }[key];
}

// Adds a frame and all below it; returns the number of rows down to the last one.
function fill(frame, row, from, width, add) {
  add(frame, row, from, width);
  let depth = row + 1;
  for (const one of frame.called) {
    const part = (width * one.samples) / frame.samples;
    depth = Math.max(depth, fill(one, row + 1, from, part, add));
    from += part;
  }
  return depth;
}
