// Draws every plot that the page has, and opens what a link points at.

const data = JSON.parse(document.getElementById("data").textContent);
const kinds = {
  strip: (holder, index) => drawStrip(holder, data.strips[index]),
  sweep: (holder, index) => drawSweep(holder, data.sweeps[index]),
  latency: (holder, index) => drawLatency(holder, data.latencies[index]),
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

drawAll();
openTarget();
window.addEventListener("hashchange", openTarget);
window.matchMedia("(max-width: 639px)").addEventListener("change", drawAll);
// Paper cannot be opened, so all is printed but the raw table.
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not(#raw)")) part.open = true;
});
