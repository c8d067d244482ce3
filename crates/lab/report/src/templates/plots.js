// The plots.

function systemsOf(plot) {
  return plot.series.map((s) => s.system);
}

// A bar from zero to the median for each system of a case, with its interval and every sample, the
// limit as a line, and the noise band around dyno's median shaded.
function drawStrip(holder, plot) {
  const [left, right, rowHeight] = NARROW ? [8, WIDTH - 12, 62] : [190, WIDTH - 24, 46];
  const top = 24;
  const bottom = top + plot.series.length * rowHeight;
  const chart = frame(holder, bottom + 26, `Samples of ${plot.metric} of ${plot.case}`, systemsOf(plot));
  const values = plot.series.flatMap((s) => [...s.dots.map((d) => d.value), s.high ?? 0]);
  const greatest = Math.max(0, ...values);
  if (!greatest) {
    chart.svg.append(node("text", { class: "bad", x: left, y: 30 }, "No invocation ended well."));
    return;
  }
  // A limit that is far away would press the bars against the axis; it stands at the edge and says
  // how far.
  const far = plot.limit > greatest * 4;
  const scale = makeScale([0, greatest, far ? 0 : plot.limit ?? 0], left, right, { zero: true });
  axisBelow(chart, scale, top, bottom, plot.unit);
  drawBand(chart, plot, scale, top, bottom);
  if (plot.limit > 0) {
    const beyond = far ? `, ${digits(plot.limit / greatest)} times the greatest value →` : "";
    drawLimit(chart, far ? right : scale.at(plot.limit), top, bottom, words(plot.limit, plot.unit) + beyond);
  }
  plot.series.forEach((series, row) => {
    drawRow(chart, plot, series, scale, top + row * rowHeight + (NARROW ? 40 : rowHeight / 2), left);
  });
  listen(chart);
}

function drawBand(chart, plot, scale, top, bottom) {
  const ours = plot.series.find((s) => s.system === "dyno" && s.median !== null);
  // Without a control arm no band is known, and none is drawn.
  if (!ours || plot.band === null) return;
  const [a, b] = [scale.at(ours.median / (1 + plot.band)), scale.at(ours.median * (1 + plot.band))];
  const place = { class: "band", x: a, y: top, width: Math.max(2, b - a), height: bottom - top };
  chart.svg.append(node("rect", place));
}

function drawLimit(chart, x, top, bottom, text) {
  chart.svg.append(node("line", { class: "limit", x1: x, x2: x, y1: top - 6, y2: bottom }));
  const inside = x > WIDTH / 2;
  const place = { class: "limit-name", x: x + (inside ? -6 : 6), y: 14, "text-anchor": inside ? "end" : "start" };
  chart.svg.append(node("text", place, `limit ${text}`));
}

function drawRow(chart, plot, series, scale, y, left) {
  const n = series.dots.length;
  const median = series.median === null ? "" : `${words(series.median, plot.unit)}, `;
  const count = `${median}n = ${n}` + (series.troubles ? `, ${series.troubles} failed` : "");
  const kind = n === 1 || series.troubles ? "bad" : "";
  // A phone has no room beside the bar, so the name stands above it.
  const [name, said] = NARROW
    ? [{ x: left, y: y - 18 }, { x: left + 12 + series.system.length * 8, y: y - 18 }]
    : [{ x: left - 14, y: y - 1, "text-anchor": "end" }, { x: left - 14, y: y + 14, "text-anchor": "end" }];
  chart.svg.append(node("text", { class: "name", ...name }, series.system));
  chart.svg.append(node("text", { class: kind, ...said }, count));
  if (series.median !== null) drawBar(chart, series, scale, y);
  series.dots.forEach((dot, index) => {
    // Neighbours in time stand on different heights, so that equal values stay apart.
    const offset = ((index * 5) % 9) * 2 - 8;
    const windows = dot.windows.length ? `\n${dot.windows.length} windows inside` : "";
    const said =
      `${series.system}: ${words(dot.value, plot.unit)}\nblock ${dot.block}, ` +
      `${seconds(dot.at_s)} into the run${windows}`;
    mark(chart, scale.at(dot.value), y + offset, series.system, said, series.control);
  });
}

function drawBar(chart, series, scale, y) {
  const ours = chart.colour(series.system);
  const paint = series.control ? `fill: none; stroke: ${ours}` : `fill: ${ours}`;
  const [zero, end] = [scale.at(0), scale.at(series.median)];
  const bar = { class: "bar", x: zero, y: y - 12, width: Math.max(1, end - zero), height: 24, style: `${paint}; opacity: .3` };
  chart.svg.append(node("rect", bar));
  if (series.low === null || series.high === null) return;
  const [a, b] = [scale.at(series.low), scale.at(series.high)];
  chart.svg.append(node("line", { class: "interval", x1: a, x2: b, y1: y, y2: y }));
  for (const x of [a, b]) chart.svg.append(node("line", { class: "interval", x1: x, x2: x, y1: y - 7, y2: y + 7 }));
}

// A metric over the axis of a sweep, one line per system.
function drawSweep(holder, plot) {
  const points = plot.series.flatMap((s) => s.points);
  const chart = frame(holder, 380, `${plot.metric} over ${plot.axis}`, systemsOf(plot));
  if (!points.length) return;
  const [left, right, bottom] = [96, WIDTH - (NARROW ? 8 : 24), 330];
  const top = legend(chart, plot.series.map((s) => s.system), left);
  const xs = points.map((p) => p.x);
  const ys = points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]);
  const logX = !plot.time && wide(xs);
  const logY = wide(ys);
  const x = makeScale(xs, left + 10, right - 10, { log: logX });
  const y = makeScale(ys, bottom, top, { log: logY, zero: true });
  axisBelow(chart, x, top, bottom, "");
  axisLeft(chart, y, left, right, plot.unit);
  const scales = [logX && "x", logY && "y"].filter(Boolean).join(" and ");
  axisNote(chart, right, bottom + 38, plot.axis + (scales ? ` (${scales} logarithmic)` : ""));
  for (const line of plot.series) {
    drawLine(chart, line.points.map((p) => [x.at(p.x), y.at(p.y)]), line.system);
    for (const p of line.points) {
      if (p.low !== null && p.high !== null) {
        const bar = { x1: x.at(p.x), x2: x.at(p.x), y1: y.at(p.low), y2: y.at(p.high) };
        chart.svg.append(node("line", { ...bar, style: `stroke: ${chart.colour(line.system)}; stroke-width: 2` }));
      }
      const said =
        `${line.system} at ${plot.axis} ${words(p.x, "")}: ${words(p.y, plot.unit)}\n` +
        `n = ${p.n}, case ${p.case}`;
      mark(chart, x.at(p.x), y.at(p.y), line.system, said, false);
    }
  }
  listen(chart);
}

// Latency by percentile; the axis stretches the tail, one step per nine.
function drawLatency(holder, plot) {
  const lines = plot.series.filter((s) => s.points.length);
  const chart = frame(holder, 360, `Latency by percentile of ${plot.case}`, systemsOf(plot));
  if (!lines.length) return;
  const [left, right, bottom] = [NARROW ? 64 : 96, WIDTH - (NARROW ? 12 : 24), 324];
  const top = legend(chart, lines.map((s) => s.system), left);
  const nines = (p) => -Math.log10(1 - Math.min(p, 99.9999) / 100);
  const all = lines.flatMap((s) => s.points);
  const values = all.map((p) => p[1]);
  const x = makeScale(all.map((p) => nines(p[0])), left + 10, right - 10);
  const log = wide(values);
  const y = makeScale(values, bottom, top, { log, zero: true });
  if (log) axisNote(chart, right, bottom + 34, "latency (logarithmic)");
  x.ticks = [];
  axisLeft(chart, y, left, right, "s");
  const shown = [...new Set(all.map((p) => p[0]))];
  const nine = (p) => [50, 90, 99, 99.9, 99.99, 99.999].includes(p);
  // A whole curve has ten percentiles to a nine; their names would cover each other.
  for (const percentile of shown.length > 8 ? shown.filter(nine) : shown) {
    const at = { x: x.at(nines(percentile)), y: bottom + 18, "text-anchor": "middle" };
    chart.svg.append(node("text", at, `p${percentile}`));
  }
  for (const line of lines) {
    drawLine(chart, line.points.map((p) => [x.at(nines(p[0])), y.at(p[1])]), line.system);
    for (const [percentile, value] of line.points) {
      const said = `${line.system} p${percentile}: ${words(value, "s")}`;
      mark(chart, x.at(nines(percentile)), y.at(value), line.system, said, false);
    }
  }
  listen(chart);
}

// Rates below two roofs: all processors at work, and the limit. Both axes begin at nothing or are
// logarithmic, so that the roofs are straight lines.
function drawRoofline(holder, plot) {
  const chart = frame(holder, 380, "Rates below the roofs of the machine", plot.points.map((p) => p.system));
  const [left, right, bottom] = [96, WIDTH - (NARROW ? 8 : 24), 330];
  const top = legend(chart, plot.points.map((p) => p.system), left);
  const costs = plot.points.map((p) => p.per_cpu_s);
  const rates = plot.points.map((p) => p.rate);
  const highest = Math.max(...costs) * plot.processors;
  const roofs = plot.limit === null ? [highest] : [plot.limit, Math.min(highest, 2 * plot.limit)];
  const log = wide([...costs]) || wide([...rates, ...roofs]);
  const from = log ? Math.min(...costs) / 2 : 0;
  const to = Math.max(...costs, (plot.limit ?? 0) / plot.processors) * 1.3;
  const lowest = log ? Math.min(...rates, from * plot.processors) / 2 : 0;
  const x = makeScale([from, to], left + 10, right - 10, { log });
  const y = makeScale([lowest, Math.max(...rates, ...roofs) * 1.1], bottom, top, { log });
  axisBelow(chart, x, top, bottom, "");
  axisLeft(chart, y, left, right, plot.unit);
  const work = plot.unit.replace(/^1\/s$/, "operations").replace(/\/s$/, "");
  axisNote(chart, right, bottom + 38, `${work} in one processor second${log ? " (x and y logarithmic)" : ""}`);
  const ceiling = Math.max(...rates, ...roofs) * 1.1;
  const end = Math.min(to, ceiling / plot.processors);
  const slope = { x1: x.at(from), y1: y.at(from * plot.processors), x2: x.at(end), y2: y.at(end * plot.processors) };
  chart.svg.append(node("line", { class: "interval", ...slope }));
  const busy = plot.processors === 1 ? "the processor busy" : `all ${plot.processors} processors busy`;
  const middle = log ? from ** 0.3 * end ** 0.7 : end * 0.7;
  const beside = { x: x.at(middle) - 8, y: y.at(middle * plot.processors) - 8, "text-anchor": "end" };
  chart.svg.append(node("text", { class: "axis", ...beside }, busy));
  if (plot.limit !== null) {
    const height = y.at(plot.limit);
    chart.svg.append(node("line", { class: "limit", x1: left, x2: right, y1: height, y2: height }));
    const name = { class: "limit-name", x: left + 16, y: height - 7 };
    chart.svg.append(node("text", name, `limit ${words(plot.limit, plot.unit)}`));
  }
  for (const p of plot.points) {
    const reached = plot.limit === null ? "" : `, ${digits((100 * p.rate) / plot.limit)}% of the limit`;
    const said =
      `${p.system}: ${words(p.rate, plot.unit)}${reached}\n` +
      `${digits(p.busy)} of ${plot.processors} processors busy, ${words(p.per_cpu_s, work)} in a processor second`;
    mark(chart, x.at(p.per_cpu_s), y.at(p.rate), p.system, said, false);
  }
  listen(chart);
}

// The stages of each system as parts of one bar.
function drawStages(holder, plot) {
  const names = [...new Set(plot.series.flatMap((s) => s.stages.map((stage) => stage[0])))];
  const [left, right, rowHeight] = NARROW ? [8, WIDTH - 12, 62] : [190, WIDTH - 24, 46];
  const chart = frame(holder, 60 + plot.series.length * rowHeight, `Stages of ${plot.case}`, names);
  const top = legend(chart, names, left);
  const bottom = top + plot.series.length * rowHeight;
  const sums = plot.series.map((s) => s.stages.reduce((sum, stage) => sum + stage[1], 0));
  const scale = makeScale([0, ...sums], left, right, { zero: true });
  axisBelow(chart, scale, top, bottom, "s");
  plot.series.forEach((series, row) => {
    const y = top + row * rowHeight + (NARROW ? 40 : rowHeight / 2);
    const name = NARROW ? { x: left, y: y - 18 } : { x: left - 14, y: y + 4, "text-anchor": "end" };
    chart.svg.append(node("text", { class: "name", ...name }, series.system));
    let from = 0;
    for (const [stage, seconds] of series.stages) {
      const [a, b] = [scale.at(from), scale.at(from + seconds)];
      const part = { x: a, y: y - 12, width: Math.max(1, b - a), height: 24, style: `fill: ${chart.colour(stage)}; opacity: .6` };
      chart.svg.append(node("rect", part));
      const share = digits((100 * seconds) / sums[row]);
      mark(chart, (a + b) / 2, y, stage, `${series.system}, ${stage}: ${words(seconds, "s")}\n${share}% of the work`, true);
      from += seconds;
    }
  });
  listen(chart);
}

// What an axis shows, below its right end.
function axisNote(chart, x, y, text) {
  chart.svg.append(node("text", { class: "axis", x, y, "text-anchor": "end" }, text));
}

function drawLine(chart, places, system) {
  const points = places.map((p) => p.join(",")).join(" ");
  chart.svg.append(node("polyline", { points, style: `fill: none; stroke: ${chart.colour(system)}; stroke-width: 1.5` }));
}
