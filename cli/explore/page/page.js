// page: what is chosen, the controls that choose it, and the words around the figures.

const state = { family: 0, layer: "time", clock: hasTimes ? "measured" : "model", filters: {}, tile: null, config: null, shown: [], groups: new Map(), unit: null, bytes: "l2", systems: "time",
  sort: { key: hasTimes ? "measured" : "model", down: false }, rows: PAGE };

const leader = () => state.best;

function radios(name, legend, choices, chosen, pick) {
  return h("fieldset", { class: "choice " + name }, h("legend", {}, legend), ...choices.map(([value, title, about]) => {
    const input = h("input", { type: "radio", name, value, onchange: () => pick(value) });
    input.checked = value === chosen;
    return h("label", { title: about }, input, h("span", {}, title));
  }));
}

function setLayer(key) {
  state.layer = key;
  const input = document.querySelector(`input[name="layer"][value="${key}"]`);
  if (input) input.checked = true;
  drawMap();
}

// What follows from the family, the clock and the tunables that are held.
function regroup() {
  state.best = configs.reduce((a, b) => (byTime(state.clock)(a, b) <= 0 ? a : b));
  state.shown = sifted();
  state.unit = timeUnit(state.shown);
  state.groups = grouped();
}

// A config, from wherever: its family, its tile.
function chooseConfig(c) {
  if (c.f !== state.family) setFamily(c.f);
  if (Object.entries(state.filters).some(([name, v]) => v !== null && tunable(c, name) !== v)) {
    state.filters = {};
    drawFilters();
  }
  regroup();
  state.tile = tileAt(placeOf(c, 0), placeOf(c, 1));
  state.config = c.i;
  drawAll();
}

function setFamily(f) {
  state.family = f;
  state.filters = {};
  state.tile = null;
  state.config = null;
  const input = document.querySelector(`input[name="family"][value="${f}"]`);
  if (input) input.checked = true;
  drawFilters();
}

function chooseBest() {
  const best = state.shown.slice().sort(byTime(state.clock))[0];
  state.tile = best ? tileAt(placeOf(best, 0), placeOf(best, 1)) : null;
  state.config = best ? best.i : null;
}

// What a tunable is and what its values mean, from its text: "what: 0 = this, 1 = that" as { what, words: { 0: "this", 1: "that" } }.
// A value with a name stands there by it.
function meaningOf(t) {
  const key = "(?:" + ["\\d+", ...t.names.filter((name) => name)].join("|") + ")", words = {};
  const parts = (" " + t.doc).split(new RegExp("[\\s,;:]+(?=" + key + " = )"));
  for (const part of parts.slice(1)) words[part.split(" = ", 1)[0]] = part.slice(part.indexOf(" = ") + 3);
  return { what: parts[0].replace(/[\s,;:]+$/, "").trim(), words };
}

// What is held fixed, where the selects are folded away.
function tellHeld() {
  const held = Object.entries(state.filters).filter(([, v]) => v !== null).map(([name, v]) => name + "=" + valueText(D.families[state.family].tunables.find((t) => t.name === name), v));
  byId("held").textContent = held.length ? ": " + held.join(", ") : "";
}

function drawFilters() {
  const holder = byId("filters");
  holder.replaceChildren(...otherTunables(state.family).map((t) => {
    const used = new Set(configs.filter((c) => c.f === state.family).map((c) => tunable(c, t.name))), { what, words } = meaningOf(t);
    const select = h("select", { "data-tunable": t.name, onchange: () => {
      state.filters[t.name] = select.value === "" ? null : Number(select.value);
      state.rows = PAGE;
      tellHeld();
      regroup();
      state.config = state.tile ? configsAt(state.tile)[0]?.i ?? null : null;
      drawAll();
    } }, h("option", { value: "" }, "any"), ...t.values.filter((v) => used.has(v)).map((v) => {
      const name = valueText(t, v);
      return h("option", { value: v }, words[name] ? `${name}: ${words[name]}` : name);
    }));
    return h("label", { title: t.doc }, h("span", {}, h("b", {}, t.name), " ", what), select);
  }));
  tellHeld();
}

function drawControls() {
  put("controls",
    D.families.length > 1 ? radios("family", "Kernel family", D.families.map((f, k) => [k, f.name]), state.family, (v) => {
      setFamily(Number(v));
      regroup();
      chooseBest();
      drawAll();
    }) : null,
    radios("layer", "Layer", layers().map((layer, i) => [layer.key, layer.title, i < 9 ? "key " + (i + 1) : null]), state.layer, setLayer),
    hasTimes ? radios("clock", "Times", [["measured", "measured"], ["model", "by the model"]], state.clock, (v) => {
      state.clock = v;
      state.sort = { key: v, down: false };
      regroup();
      drawHead();
      drawSources();
      drawAll();
    }) : null,
    h("details", { id: "folded", class: "folded" }, h("summary", {}, "Other tunables", h("span", { id: "held" })), h("div", { id: "filters", class: "filters" })));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  drawFilters();
}

function simulatedShape() {
  const at = (name) => D.simulated.shape.match(new RegExp(`(?:^|,)${name}=(\\d+)`))?.[1] ?? "?";
  return `${at("sq") === "1" ? "1 query" : at("sq") + " queries"} and ${at("sk")} keys, ` +
    (at("hq") === at("hkv") ? plural(Number(at("hq")), "head") : `${at("hq")} query heads on ${at("hkv")} KV head`);
}

const badge = (kind, text) => h("span", { class: "badge " + kind }, text);

function drawSources() {
  const s = D.sources, model = () => badge("by-model", "model"), chip = `${s.chip}, ${plural(s.measured, "config")}, ${s.from.slice(0, 10)}` +
    (s.to.slice(0, 10) !== s.from.slice(0, 10) ? " to " + s.to.slice(0, 10) : "");
  const compiled = s.modelled ? ` Registers of ${plural(s.modelled, "config")} are the compiler's, from records.` : "";
  put("tiles-source", ...(hasTimes
    ? [badge("by-clock", "measured"), ` Times of ${chip}${s.reference ? "; they ship with fagen, and were not taken on this machine" : ""}. `, model(),
      " All the rest, and the times when so chosen."]
    : [model(), ` No times of this shape are on record for ${D.arch.name}: every time here is the model's, of ${D.arch.chip}.` + compiled]),
    ...(D.counters.length ? [" ", badge("by-sim", "simulator"), ` Bytes and bank conflicts of ${plural(D.counters.length, "config")}, at ${simulatedShape()}.`] : []),
    ...(D.simulated.why ? [" ", badge("by-sim", "simulator"), " " + D.simulated.why + "."] : []));
  put("roofline-source", state.clock === "measured" ? badge("by-clock", "measured") : model(), ` Times of ${state.clock === "measured" ? s.chip : "the model"}; `, model(),
    ` bytes and peaks of ${D.arch.chip}.`);
  put("convergence-source", hasTimes ? badge("by-clock", "measured") : model(), hasTimes ? " " + chip + "." : " No records of measured times.");
  put("speedup-source", model(), D.lengths.some((l) => l.measured_us) ? " and " : "", D.lengths.some((l) => l.measured_us) ? badge("by-clock", "measured") : "",
    ` ${D.lengths.some((l) => l.measured_us) ? s.chip : D.arch.chip}.`);
  put("systems-source", model(), ` The best config of each family on ${D.arch.chip}.`);
  put("memory-source", badge("by-count", "exact"), " Counted from the shapes.");
}

function drawHead() {
  const a = D.asked, best = leader(), us = timeOf(best, state.clock) ?? best.model_us, clock = timeOf(best, state.clock) === null ? "model" : state.clock;
  const heads = a.hq === a.hkv ? plural(a.hq, "head") : `${a.hq} query and ${a.hkv} KV heads`;
  byId("title").textContent = `Attention${a.op === "forward" ? "" : ", " + a.op}, ${a.dtype}, d = ${a.d}${a.dv !== a.d ? ", dᵥ = " + a.dv : ""}, ${a.mask === "none" ? "no mask" : a.mask === "window" ? `a window of ${whole(a.window)} keys` : a.mask}` +
    (a.page ? `, pages of ${a.page}` : "") + (a.features && !a.page ? ", " + a.features.replace(/\+/g, ", ") : "");
  byId("subtitle").textContent = `${a.sq === a.sk ? "N = " + whole(a.sk) : (a.sq === 1 ? "1 query" : whole(a.sq) + " queries") + ", " + plural(a.sk, "key")} · ${heads} · batch ${a.b} · ` +
    `${D.arch.chip} (${D.arch.name}), ${whole(D.budget)} bytes of shared memory per block`;
  const facts = [
    [showTime(us), `the fastest ${clock === "measured" ? "measured" : "by the model"}`],
    D.streamed ? [whole(gbsOf(us, clock)) + " GB/s", `of ${D.tensors}, ${percent(gbsOf(us, clock) / D.arch.hbm_gbs)} of what HBM gives; FLOPs bound nothing here`]
      : [digits(tflopsOf(us), 4) + " TFLOP/s", percent(tflopsOf(us) / Math.max(...D.arch.peaks.map((p) => p.tflops))) + " of the matrix units' peak"],
    [tileName({ family: best.f, y: placeOf(best, 0), x: placeOf(best, 1) }), D.families[best.f].name],
    NAIVE ? [digits(D.naive.model_us / us, 3) + "×", "as fast as naive attention at its roofline, which holds " + showBytes(D.naive.held) + " more"] : null,
    D.mask && D.mask.counts ? maskFact(D.mask) : null,
    [whole(D.fitting), `configs fit, of ${whole(D.total)} looked at`],
  ];
  put("facts", ...facts.filter((fact) => fact).map(([value, what]) => h("div", {}, h("dd", {}, ...lowered(value)), h("dt", {}, what))));
}

// Tiles that the score program's mask spares, of the config that leads as the page opens.
function maskFact(mask) {
  const { rows_of_tile, keys_of_tile, empty, partial, full } = mask.counts, all = empty + partial + full;
  return [(mask.sure ? "" : "at least ") + percent(empty / all), `of ${whole(all)} tiles of ${rows_of_tile} × ${keys_of_tile} hidden by the masks of launch and program; ` +
    `${mask.sure ? "" : "at most "}${percent(partial / all)} asked pair by pair` + (mask.decided_by.length > 0 ? `, as ${mask.decided_by.join(", ")} decide` + (mask.decided_by.length > 1 ? "" : "s") : "")];
}

function drawReading() {
  const p = (...text) => h("p", {}, ...text);
  const where = D.families.map((f) => [f.name, ...f.tunables.map((t) => [t.name, t.doc])]);
  put("reading",
    p(h("b", {}, "Tiles."), " A kernel takes B", h("sub", {}, "r"), " rows of Q and walks the keys in blocks of B", h("sub", {}, "c"), ". A cell is the fastest config of its tile; the other tunables can be held fixed above. " +
      "A hatched cell has none: the word in it is the constraint that prunes it, and its numbers are in the tooltip and beside the map. Bright is better where one end is better."),
    p(h("b", {}, "Keys."), " Tab enters the map, arrows move in it, Home and End go to the ends of a row, digits choose the layer, Enter chooses the tile, Escape closes the tooltip. " +
      "The charts take Tab and arrows likewise."),
    p(h("b", {}, "What to trust."), " A time is either measured, on the chip that is named, or the model's, and every figure says which. The model ranks; it is not a clock. The simulator counts " +
      "bytes and bank conflicts of the very code that would run, at the small shape that is named; TMA loads whole boxes of keys, so it may count more bytes than the model does."),
    p(h("b", {}, "Again."), " ", h("code", {}, `fagen explore --problem '${D.problem}' --arch ${D.arch.name}`), " after ", h("code", {}, "fagen tune"),
      " shows what was measured; ", h("code", {}, "--simulate N"), " counts more tiles; ", h("code", {}, "fagen space --why CONFIG"), " judges one config."),
    h("details", {}, h("summary", {}, "The tunables"), ...where.map(([name, ...rows]) => h("div", {}, h("h3", {}, name),
      h("dl", { class: "rows" }, ...rows.flatMap(([t, doc]) => [h("dt", {}, t), h("dd", {}, doc)]))))),
    h("details", {}, h("summary", {}, "The numbers of the chip"), p(`${D.arch.chip}: ${D.arch.sms} SMs at ${D.arch.clock_ghz} GHz. ${D.arch.source}.`)));
  byId("foot").textContent = `fagen ${D.fagen} · ${D.problem} · ${D.arch.name}`;
}

function drawCharts() {
  if (D.streamed) drawBandwidth();
  else drawRoofline();
  drawConvergence();
  drawSpeedup();
  drawSystems();
  drawMemory();
}

function drawAll() {
  hideTip();
  drawMap();
  drawDetail();
  drawCharts();
  drawTable();
}

function start() {
  const first = configs.slice().sort(byTime(state.clock))[0];
  state.family = first ? first.f : 0;
  regroup();
  chooseBest();
  drawHead();
  drawControls();
  drawSources();
  drawReading();
  startTip();
  startMap();
  if (D.streamed) startBandwidth();
  else startRoofline();
  startSystems();
  startTable();
  drawAll();
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    hideTip();
    drawCharts();
  });
}

document.addEventListener("DOMContentLoaded", start);
