"use strict";
// Axes: from values to pixels, with ticks at round numbers, and the words for a number.

// Wider than this factor, a linear axis hides the small values.
const LOG_FROM = 20;

function wide(values) {
  const positive = values.every((v) => v > 0);
  return positive && Math.max(...values) / Math.min(...values) > LOG_FROM;
}

// A scale over `values` onto the pixels from..to; `zero` makes a linear one start at 0.
function makeScale(values, from, to, { log = false, zero = false } = {}) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (zero && low > 0 && !log) low = 0;
  if (low === high) {
    const room = Math.abs(low) * 0.05 || 1;
    low -= room;
    high += room;
  }
  if (log) {
    const [a, b] = [Math.log10(low), Math.log10(high)];
    const room = (b - a) * 0.04;
    const at = (v) => from + ((Math.log10(v) - a + room) / (b - a + 2 * room)) * (to - from);
    return { at, ticks: logTicks(low, high) };
  }
  const room = (high - low) * 0.04;
  const start = zero && low === 0 ? 0 : low - room;
  const at = (v) => from + ((v - start) / (high + room - start)) * (to - from);
  return { at, ticks: linearTicks(start, high + room, values.every(Number.isInteger)) };
}

// `whole` axes count things, such as nodes: half a thing has no tick.
function linearTicks(low, high, whole) {
  const rough = whole ? Math.max(1, (high - low) / 6) : (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 2.5, 5, 10].map((k) => k * power);
  const step = steps.find((s) => s >= rough && !(whole && !Number.isInteger(s)));
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) ticks.push(k * step);
  return ticks;
}

function logTicks(low, high) {
  const [ticks, tens] = [[], []];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += 1) {
    for (const k of [1, 2, 5]) {
      const v = k * 10 ** e;
      if (v < low * 0.999 || v > high * 1.001) continue;
      ticks.push(v);
      if (k === 1) tens.push(v);
    }
  }
  if (ticks.length > 9) return tens;
  return ticks.length > 1 ? ticks : [low, high];
}

// Three significant digits with a prefix, as the tables print them.
function words(value, unit) {
  const factors = { s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9 };
  if (unit in factors) return seconds(value * factors[unit]);
  let scaled = value;
  let step = 0;
  while (Math.abs(scaled) >= 999.5 && step < 5) {
    scaled /= 1000;
    step += 1;
  }
  const prefix = ["", "k", "M", "G", "T", "P"][step];
  if (unit === "x") return digits(value) + "×";
  if (unit === "1/s") return `${digits(scaled)}${prefix && " " + prefix}/s`;
  const gap = /^B(\/s)?$/.test(unit) || !prefix ? "" : " ";
  return `${digits(scaled)} ${prefix}${gap}${unit}`.trim();
}

function seconds(value) {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 0.9995e-6) return digits(value * 1e9) + " ns";
  if (size < 0.9995e-3) return digits(value * 1e6) + " µs";
  if (size < 0.9995) return digits(value * 1e3) + " ms";
  return digits(value) + " s";
}

function digits(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1000) return String(value);
  return String(Number(value.toPrecision(3)));
}
