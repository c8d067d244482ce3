// The three plots.

// Every sample of a case, one row per system, with its median and interval.
function drawStrip(holder, plot) {
  const values = plot.series.flatMap((s) => s.dots.map((d) => d.value));
  const [left, right, rowHeight] = [150, WIDTH - 24, 46];
  const bottom = 12 + plot.series.length * rowHeight;
  const chart = frame(holder, bottom + 26, `Samples of ${plot.metric} of ${plot.case}`);
  if (!values.length) {
    chart.svg.append(node("text", { class: "bad", x: left, y: 30 }, "No invocation ended well."));
    return;
  }
  const shown = [...values];
  const reach = plot.better === "higher" ? plot.limit <= Math.max(...values) * 4 : plot.limit > 0;
  const limited = plot.limit > 0 && reach;
  if (limited) shown.push(plot.limit);
  const log = wide(shown);
  const zero = Math.min(...shown) < Math.max(...shown) * 0.6;
  const scale = makeScale(shown, left, right, { log, zero });
  axisBelow(chart, scale, 8, bottom, plot.unit);
  if (limited) drawLimit(chart, scale.at(plot.limit), bottom, words(plot.limit, plot.unit));
  plot.series.forEach((series, row) => {
    drawRow(chart, plot, series, scale, 12 + row * rowHeight + rowHeight / 2, left);
  });
  listen(chart);
}

function drawLimit(chart, x, bottom, text) {
  chart.svg.append(node("line", { class: "limit", x1: x, x2: x, y1: 8, y2: bottom }));
  const inside = x > WIDTH / 2;
  const place = { class: "limit-name", x: x + (inside ? -6 : 6), y: 16, "text-anchor": inside ? "end" : "start" };
  chart.svg.append(node("text", place, `limit ${text}`));
}

function drawRow(chart, plot, series, scale, y, left) {
  const name = { class: "name", x: left - 14, y: y + 1, "text-anchor": "end" };
  chart.svg.append(node("text", name, series.system));
  const n = series.dots.length;
  const count = { class: n === 1 || series.troubles ? "bad" : "", x: left - 14, y: y + 16, "text-anchor": "end" };
  chart.svg.append(node("text", count, `n = ${n}` + (series.troubles ? `, ${series.troubles} failed` : "")));
  const paint = `fill: ${colour(series.system)}`;
  if (series.low !== null && series.high !== null) {
    const [a, b] = [scale.at(series.low), scale.at(series.high)];
    const band = { x: a, y: y - 13, width: Math.max(1, b - a), height: 26, style: `${paint}; opacity: .22` };
    chart.svg.append(node("rect", band));
  }
  if (series.median !== null) {
    const x = scale.at(series.median);
    chart.svg.append(node("rect", { x: x - 1, y: y - 15, width: 2, height: 30, style: paint }));
  }
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

// A metric over the axis of a sweep, one line per system.
function drawSweep(holder, plot) {
  const points = plot.series.flatMap((s) => s.points);
  const chart = frame(holder, 340, `${plot.metric} over ${plot.axis}`);
  if (!points.length) return;
  const [left, right, top, bottom] = [96, WIDTH - 24, 30, 290];
  const xs = points.map((p) => p.x);
  const ys = points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]);
  const logX = wide(xs);
  const logY = wide(ys);
  const x = makeScale(xs, left + 10, right - 10, { log: logX });
  const y = makeScale(ys, bottom, top, { log: logY, zero: true });
  axisBelow(chart, x, top, bottom, "");
  axisLeft(chart, y, left, right, plot.unit);
  const scales = [logX && "x", logY && "y"].filter(Boolean).join(" and ");
  const note = plot.axis + (scales ? ` (${scales} logarithmic)` : "");
  chart.svg.append(node("text", { x: right, y: bottom + 38, "text-anchor": "end" }, note));
  legend(chart, plot.series.map((s) => s.system), left);
  for (const line of plot.series) {
    drawLine(chart, line.points.map((p) => [x.at(p.x), y.at(p.y)]), line.system);
    for (const p of line.points) {
      if (p.low !== null && p.high !== null) {
        const bar = { x1: x.at(p.x), x2: x.at(p.x), y1: y.at(p.low), y2: y.at(p.high) };
        chart.svg.append(node("line", { ...bar, style: `stroke: ${colour(line.system)}; stroke-width: 2` }));
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
  const chart = frame(holder, 320, `Latency by percentile of ${plot.case}`);
  if (!lines.length) return;
  const [left, right, top, bottom] = [96, WIDTH - 24, 30, 284];
  const nines = (p) => -Math.log10(1 - Math.min(p, 99.9999) / 100);
  const all = lines.flatMap((s) => s.points);
  const values = all.map((p) => p[1]);
  const x = makeScale(all.map((p) => nines(p[0])), left + 10, right - 10);
  const y = makeScale(values, bottom, top, { log: wide(values), zero: true });
  x.ticks = [];
  axisLeft(chart, y, left, right, "s");
  for (const percentile of [...new Set(all.map((p) => p[0]))]) {
    const at = { x: x.at(nines(percentile)), y: bottom + 18, "text-anchor": "middle" };
    chart.svg.append(node("text", at, `p${percentile}`));
  }
  legend(chart, lines.map((s) => s.system), left);
  for (const line of lines) {
    drawLine(chart, line.points.map((p) => [x.at(nines(p[0])), y.at(p[1])]), line.system);
    for (const [percentile, value] of line.points) {
      const said = `${line.system} p${percentile}: ${words(value, "s")}`;
      mark(chart, x.at(nines(percentile)), y.at(value), line.system, said, false);
    }
  }
  listen(chart);
}

function drawLine(chart, places, system) {
  const points = places.map((p) => p.join(",")).join(" ");
  chart.svg.append(node("polyline", { points, style: `fill: none; stroke: ${colour(system)}; stroke-width: 1.5` }));
}
