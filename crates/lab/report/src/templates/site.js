"use strict";
// Shows the records that fit the filter. The filter is in the address, so a view can be linked.

const form = document.getElementById("filter");
const records = [...document.querySelectorAll(".record")];

// A value that no record has keeps its place: a link to what is gone must show nothing, not
// everything.
function restore() {
  for (const [name, value] of new URLSearchParams(location.search)) {
    const select = form.elements[name];
    if (!(select instanceof HTMLSelectElement)) continue;
    if (![...select.options].some((option) => option.value === value)) select.add(new Option(value));
    select.value = value;
  }
}

function apply() {
  const wanted = Object.fromEntries(new FormData(form));
  const fits = (name, values) => !wanted[name] || values.includes(wanted[name]);
  for (const record of records) {
    const { machine, engine, suite, standing } = record.dataset;
    record.hidden = !(
      fits("machine", [machine]) &&
      fits("engine", engine.split(" ")) &&
      fits("suite", [suite]) &&
      (wanted.show === "all" || standing === "latest")
    );
  }
  const shown = records.filter((record) => !record.hidden).length;
  const hint = shown || wanted.show === "all" ? "" : "; older and withdrawn ones are hidden";
  document.getElementById("count").textContent = `${shown} of ${records.length} records${hint}`;
}

function remember() {
  const stated = [...new FormData(form)].filter(([, value]) => value !== "");
  const query = new URLSearchParams(stated).toString();
  history.replaceState(null, "", (query ? `?${query}` : location.pathname) + location.hash);
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", () => {
  apply();
  remember();
});
restore();
apply();
