// Draws every plot that the page asks for.

const data = JSON.parse(document.getElementById("data").textContent);
const kinds = {
  strip: (holder, index) => drawStrip(holder, data.strips[index]),
  sweep: (holder, index) => drawSweep(holder, data.sweeps[index]),
  latency: (holder, index) => drawLatency(holder, data.latencies[index]),
};
let drawn = 0;
for (const holder of document.querySelectorAll(".plot")) {
  kinds[holder.dataset.plot](holder, Number(holder.dataset.index));
  drawn += 1;
}
// A test reads this: it says that the script ran to its end.
document.documentElement.dataset.plotsDrawn = String(drawn);
