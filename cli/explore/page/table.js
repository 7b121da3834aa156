// table: the configs as rows that can be sorted.

const TABLE = [
  { key: "rank", title: "#", of: (c) => c.i + 1, write: whole, about: "place by the model" },
  { key: "family", title: "family", of: (c) => D.families[c.f].name, text: true },
  { key: "y", title: "B_r", of: (c) => axisOf(c.f, 0) ? axisOf(c.f, 0).values[placeOf(c, 0)] : null, write: String },
  { key: "x", title: "B_c", of: (c) => axisOf(c.f, 1) ? axisOf(c.f, 1).values[placeOf(c, 1)] : null, write: String },
  { key: "model", title: "model", of: (c) => c.model_us, write: (v) => showTime(v), clock: "model" },
  { key: "measured", title: "measured", of: (c) => c.measured_us, write: (v) => showTime(v), only: () => hasTimes, clock: "measured" },
  { key: "tflops", title: "TFLOP/s", of: (c) => tflopsOf(timeOf(c, state.clock)), write: (v) => exact(v, 4) },
  { key: "bound", title: "busiest", of: (c) => c.bound, text: true },
  { key: "smem", title: "shared", of: (c) => c.smem, write: whole },
  { key: "regs", title: "regs", of: (c) => c.compiled_regs ?? c.regs, write: String },
  { key: "blocks", title: "blocks/SM", of: (c) => c.blocks_sm, write: String },
  { key: "occupancy", title: "occupancy", of: (c) => c.occupancy, write: (v) => percent(v) },
  { key: "bytes", title: "bytes", of: (c) => c.bytes, write: (v) => showBytes(v) },
  { key: "outcome", title: "record", of: (c) => c.outcome, text: true, only: () => D.records.length > 0 },
  { key: "rest", title: "other tunables", text: true,
    of: (c) => otherTunables(c.f).map((t) => t.name + "=" + valueText(t, tunable(c, t.name))).join(" ") },
];

function compare(column) {
  return (a, b) => {
    const x = column.of(a), y = column.of(b);
    if (column.clock && !state.sort.down) return byTime(column.clock)(a, b); // as the map and the head have them
    if (x === null || y === null) return x === y ? a.i - b.i : x === null ? 1 : -1; // what is not known comes last, whichever way
    const order = column.text ? x.localeCompare(y) : x - y;
    return (state.sort.down ? -order : order) || a.i - b.i;
  };
}

function drawTable() {
  const columns = TABLE.filter((column) => !column.only || column.only()), sorted = columns.find((column) => column.key === state.sort.key);
  const list = state.shown.slice().sort(compare(sorted)), some = list.slice(0, state.rows);
  const head = h("thead", {}, h("tr", {}, ...columns.map((column) => h("th", { scope: "col", class: column.text ? "" : "number", title: column.about,
    "aria-sort": column === sorted ? (state.sort.down ? "descending" : "ascending") : "none" },
    h("button", { type: "button", class: "plain", "data-key": column.key, onclick: () => sortBy(column.key) }, ...lowered(column.title),
      h("span", { class: "arrow", "aria-hidden": "true" }, column === sorted ? (state.sort.down ? " ↓" : " ↑") : ""))))));
  const body = h("tbody", {}, ...some.map((c) => h("tr", { "data-config": c.i, class: c.i === state.config ? "chosen" : null, onclick: () => chooseConfig(c) },
    ...columns.map((column) => {
      const v = column.of(c);
      return h("td", { class: column.text ? column.key : "number" }, v === null ? "" : column.text ? v : column.write(v));
    }))));
  byId("table").replaceChildren(h("caption", { class: "unseen" }, "The configs that fit, one in each row"), head, body);
  const more = byId("more");
  more.hidden = list.length <= state.rows;
  more.textContent = `Show ${whole(Math.min(list.length - state.rows, 10 * PAGE))} more of ${whole(list.length)}`;
  byId("table-source").textContent = `${plural(list.length, "config")} of ${D.families[state.family].name}` +
    (Object.values(state.filters).some((v) => v !== null) ? ", with the chosen values of the other tunables" : "") + `; ${whole(configs.length)} in the files.`;
}

function sortBy(key) {
  state.sort = { key, down: state.sort.key === key && !state.sort.down };
  drawTable();
  byId("table").querySelector(`button[data-key="${key}"]`).focus();
  say("sorted by " + TABLE.find((column) => column.key === key).title + (state.sort.down ? ", descending" : ", ascending"));
}

function startTable() {
  byId("more").addEventListener("click", () => { state.rows += 10 * PAGE; drawTable(); });
  byId("save-csv").addEventListener("click", () => save("csv", "text/csv", csvText()));
  byId("save-json").addEventListener("click", () => save("json", "application/json", byId("data").textContent));
}

// The page's own data as a file.
function save(ending, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type })), a = D.asked;
  const link = h("a", { href: url, download: `fagen-${a.dtype}-d${a.d}-${a.mask}-n${a.sk}-${D.arch.name}.${ending}` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
