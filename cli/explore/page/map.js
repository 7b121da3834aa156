// map: the heat map over the two axes of a family, as a grid that keys walk through.

const axisOf = (f, k) => (D.families[f].axes.length > k ? D.families[f].tunables[D.families[f].axes[k]] : null);
const axisName = (f, k) => { const t = axisOf(f, k); return !t ? "" : t.name === "br" ? "B_r" : t.name === "bc" ? "B_c" : t.name; };
const otherTunables = (f) => D.families[f].tunables.filter((t, k) => !D.families[f].axes.includes(k));
const tilesOf = (f) => D.tiles.filter((t) => t.family === f);

// The place of a config on an axis of its family.
function placeOf(c, k) {
  const axis = axisOf(c.f, k);
  return axis ? axis.values.indexOf(c.v[D.families[c.f].axes[k]]) : 0;
}

function tileName(t) {
  const x = axisOf(t.family, 1), y = axisOf(t.family, 0);
  return axisName(t.family, 0) + " = " + y.values[t.y] + (x ? ", " + axisName(t.family, 1) + " = " + x.values[t.x] : "");
}

// The configs of the family that have the chosen values of the other tunables.
function sifted() {
  const held = Object.entries(state.filters).filter(([, v]) => v !== null);
  return configs.filter((c) => c.f === state.family && held.every(([name, v]) => tunable(c, name) === v));
}

// By tile: its configs, the fastest first.
function grouped() {
  const groups = new Map();
  for (const c of state.shown) {
    const key = placeOf(c, 0) + "," + placeOf(c, 1);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(c);
  }
  for (const list of groups.values()) list.sort(byTime(state.clock));
  return groups;
}

const configsAt = (t) => state.groups.get(t.y + "," + t.x) ?? [];

function valueAt(layer, t) {
  if (layer.tally) return t.points && t.fits ? t.fits / t.points : null;
  const best = configsAt(t)[0];
  return best ? layer.of(best) : null;
}

// What a cell without a value says, and how it looks.
function lackOf(layer, t) {
  const best = configsAt(t)[0];
  if (!t.fits && !best) return { kind: "pruned", text: t.reasons.length ? t.reasons[0].constraint : "pruned" };
  if (!best) return { kind: "filtered", text: "–" };
  return layer.simulated ? { kind: "unknown", text: "·" } : { kind: "unknown", text: layer.timed ? "·" : "?" };
}

function sentence(layer, t) {
  const list = configsAt(t), v = valueAt(layer, t), lack = v === null ? lackOf(layer, t) : null;
  const name = tileName(t);
  if (lack && lack.kind === "pruned") return name + ": pruned, " + (t.reasons.length ? t.reasons[0].constraint + ", " + t.reasons[0].why : "");
  if (lack && lack.kind === "filtered") return name + ": no config with the chosen values of the other tunables";
  if (lack) return name + ": " + layer.title + (layer.simulated ? ", not simulated" : ", not measured");
  return name + ": " + layer.title + " " + layer.tell(v) + ", best of " + plural(list.length, "config");
}

function tileTip(t) {
  const list = configsAt(t), best = list[0];
  if (!best) {
    const lines = t.reasons.slice(0, 5).map((r) => [r.constraint, r.why || plural(r.points, "point")]);
    return tipLines(tileName(t), lines, t.fits ? plural(t.fits, "config") + " fit with other values of the other tunables." : "No config of this tile fits.");
  }
  const others = otherTunables(best.f).map((u) => u.name + " " + tunable(best, u.name)).join(", ");
  const note = others + (list.length > 1 ? " · best of " + list.length + ", the slowest " + showTime(timeOf(list[list.length - 1], state.clock) ??
    list[list.length - 1].model_us) : "");
  return tipLines(tileName(t) + " " + marksOf(best).join(""), configRows(best), note);
}

function cellOf(layer, scale, t) {
  const v = valueAt(layer, t), best = configsAt(t)[0], lack = v === null ? lackOf(layer, t) : null;
  const cell = h("div", { role: "gridcell", class: "cell", "data-y": t.y, "data-x": t.x, tabindex: -1, "aria-label": sentence(layer, t) });
  if (lack) {
    cell.classList.add(lack.kind);
    cell.append(h("span", { class: "why" }, lack.text.replace(/^(.{5})(.{4,})$/, "$1\u00ad$2")));
  } else {
    const rgb = rampAt(scale.at(v));
    cell.style.backgroundColor = css(rgb);
    cell.style.color = inkOn(rgb);
    cell.append(h("span", { class: "value" }, layer.write(v)));
  }
  if (best) cell.append(h("span", { class: "marks", "aria-hidden": "true" }, tileMarks(configsAt(t)).join("")));
  if (state.tile && state.tile.y === t.y && state.tile.x === t.x) cell.setAttribute("aria-selected", "true");
  return cell;
}

function drawMap() {
  const f = state.family, layer = layerOf(state.layer), tiles = tilesOf(f), rows = axisOf(f, 0).values, columns = axisOf(f, 1)?.values ?? [""];
  const scale = scaleOf(layer, tiles.map((t) => valueAt(layer, t)), layer.timed ? tiles.filter((t) => configsAt(t).length && !isWeak(configsAt(t)[0], state.clock)).map((t) => valueAt(layer, t)) : []), grid = byId("grid");
  grid.style.setProperty("--columns", columns.length);
  grid.setAttribute("aria-label", `${layer.title} over ${axisOf(f, 0).name} (rows) and ${axisOf(f, 1)?.name ?? "nothing"} (columns)`);
  grid.setAttribute("aria-rowcount", rows.length + 1);
  grid.setAttribute("aria-colcount", columns.length + 1);
  const head = h("div", { role: "row" }, h("div", { role: "columnheader", class: "corner" }, h("span", {}, ...lowered(axisName(f, 0) + " ↓")),
    h("span", {}, ...lowered(axisOf(f, 1) ? axisName(f, 1) + " →" : ""))), ...columns.map((v) => h("div", { role: "columnheader", class: "head" }, v.toString())));
  const body = rows.map((v, y) => h("div", { role: "row" }, h("div", { role: "rowheader", class: "head" }, v.toString()),
    ...columns.map((_, x) => cellOf(layer, scale, tiles.find((t) => t.y === y && t.x === x)))));
  grid.replaceChildren(head, ...body);
  const kinds = new Set([...grid.querySelectorAll(".cell")].flatMap((cell) => ["pruned", "filtered", "unknown"].filter((kind) => cell.classList.contains(kind))));
  const entry = (state.tile && cellAt(state.tile.y, state.tile.x)) || grid.querySelector(".cell");
  if (entry) entry.tabIndex = 0;
  drawLegend(layer, scale, kinds);
}

function drawLegend(layer, scale, kinds) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  bar.style.backgroundImage = `linear-gradient(to right, ${RAMP.map(css).join(", ")})`;
  const [dark, light] = layer.bright === "low" ? [scale.high, scale.low] : [scale.low, scale.high];
  const unit = layer.key === "time" || layer.warm ? state.unit.name : layer.unit;
  const kind = (name, text) => (kinds.has(name) ? h("span", { class: "kind" }, h("span", { class: "swatch " + name }), text) : null);
  put("legend",
    scale.known ? h("span", { class: "ramp" }, `${layer.ends[0]} ${layer.tell(dark)}`, bar, `${layer.tell(light)} ${layer.ends[1]}`) : h("span", {}, "no values"),
    unit ? h("span", {}, "cells: " + unit) : null,
    kind("pruned", "pruned by this constraint"), kind("filtered", "none with these tunables"),
    kind("unknown", layer.simulated ? "not simulated" : "not measured"),
    ...MARKS.filter(([mark]) => [...state.groups.values()].some((list) => tileMarks(list).includes(mark))).map(([mark, what]) => h("span", { class: "mark" }, mark + " " + what)));
}

const cellAt = (y, x) => byId("grid").querySelector(`.cell[data-y="${y}"][data-x="${x}"]`);
const tileAt = (y, x) => D.tiles.find((t) => t.family === state.family && t.y === y && t.x === x);
const tileOfCell = (cell) => tileAt(Number(cell.dataset.y), Number(cell.dataset.x));

// A cell gets the focus: its tile is the chosen one, and the tooltip follows.
function chooseCell(cell, speak) {
  for (const other of byId("grid").querySelectorAll(".cell")) {
    other.tabIndex = other === cell ? 0 : -1;
    other.removeAttribute("aria-selected");
  }
  cell.setAttribute("aria-selected", "true");
  state.tile = tileOfCell(cell);
  state.config = configsAt(state.tile)[0]?.i ?? null;
  showTip(() => cell.getBoundingClientRect(), tileTip(state.tile), true);
  if (speak) say(cell.getAttribute("aria-label"));
  drawDetail();
  markChosen();
}

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function mapKey(event) {
  const cell = event.target.closest(".cell");
  if (!cell || event.altKey || event.metaKey) return;
  const rows = axisOf(state.family, 0).values.length, columns = axisOf(state.family, 1)?.values.length ?? 1;
  let y = Number(cell.dataset.y), x = Number(cell.dataset.x);
  if (STEPS[event.key]) {
    y = Math.min(Math.max(y + STEPS[event.key][0], 0), rows - 1);
    x = Math.min(Math.max(x + STEPS[event.key][1], 0), columns - 1);
  } else if (event.key === "Home") {
    x = 0;
    if (event.ctrlKey) y = 0;
  } else if (event.key === "End") {
    x = columns - 1;
    if (event.ctrlKey) y = rows - 1;
  } else if (/^[1-9]$/.test(event.key) && layers().length >= Number(event.key)) {
    setLayer(layers()[Number(event.key) - 1].key);
    cellAt(y, x).focus();
    say(cellAt(y, x).getAttribute("aria-label"));
    event.preventDefault();
    return;
  } else if (event.key === "Enter" || event.key === " ") {
    chooseCell(cell, true);
    event.preventDefault();
    return;
  } else {
    return;
  }
  event.preventDefault();
  cellAt(y, x).focus();
}

function startMap() {
  const grid = byId("grid");
  grid.addEventListener("keydown", mapKey);
  grid.addEventListener("focusin", (event) => { const cell = event.target.closest(".cell"); if (cell) chooseCell(cell, false); });
  grid.addEventListener("focusout", hideTip);
  grid.addEventListener("pointerover", (event) => {
    const cell = event.target.closest(".cell");
    if (cell && pointed(event)) showTip(() => cell.getBoundingClientRect(), tileTip(tileOfCell(cell)), false);
  });
  grid.addEventListener("pointerout", (event) => { if (pointed(event) && !event.relatedTarget?.closest?.(".cell")) hideTip(); });
}
