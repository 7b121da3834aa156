// data: the document of the page as objects, and how its figures are written for people.

const D = JSON.parse(document.getElementById("data").textContent);

// One object per config: family f, values v of the tunables, index i, and every column by its name; null = not known.
const configs = D.configs.map((row, i) => {
  const c = { i, f: row[0], v: row[1] };
  D.columns.configs.forEach((column, k) => { c[column.name] = row[k + 2]; });
  for (const part of ["records", "counters"]) for (const column of D.columns[part]) c[column.name] = null;
  return c;
});
for (const part of ["records", "counters"])
  for (const row of D[part]) D.columns[part].forEach((column, k) => { configs[row[0]][column.name] = row[k + 1]; });

const hasTimes = D.sources.measured > 0;

function tunable(c, name) {
  const k = D.families[c.f].tunables.findIndex((t) => t.name === name);
  return k < 0 ? null : c.v[k];
}

// A value by its name, where it has one.
const valueText = (t, v) => t.names[t.values.indexOf(v)] ?? String(v);

// The config as every command says and takes it.
function configText(c) {
  const family = D.families[c.f];
  return family.name + ":" + family.tunables.map((t, k) => t.name + "=" + valueText(t, c.v[k])).join(",");
}

// The time of a config in microseconds, by the clock that is chosen; null where it has none.
function timeOf(c, clock) {
  return clock === "measured" ? c.measured_us : c.model_us;
}

function tflopsOf(us) {
  return us ? D.flops / us / 1e6 : null;
}

// What naive attention is, of each operation that has it.
const NAIVE = { forward: { kernels: "three kernels", holds: "S and P" }, backward: { kernels: "five kernels, with P kept from the forward,", holds: "P, dP and dS" } }[D.asked.op];

// Bytes of the tensors, each once, over the time: of problems that HBM bounds. The tuner measures other lengths than the model has.
function gbsOf(us, clock = state.clock) {
  return us ? (clock === "measured" ? D.measured_bytes : D.tensor_bytes) / us / 1e3 : null;
}

// Whether its time is none to lead by: the record rejects the config, or few samples were taken, most of them before the chip was warm.
const isRejected = (c) => c.rejected === "yes";
const isWeak = (c, clock) => isRejected(c) || (clock === "measured" && c.quality === "few-samples");

// The configs with the shortest time first; what has none comes last, as the model has it, behind times that are none to lead by.
function byTime(clock) {
  return (a, b) => {
    const x = timeOf(a, clock), y = timeOf(b, clock);
    if ((x === null) !== (y === null)) return x === null ? 1 : -1;
    if (isWeak(a, clock) !== isWeak(b, clock)) return isWeak(a, clock) ? 1 : -1;
    if (isRejected(a) !== isRejected(b)) return isRejected(a) ? 1 : -1;
    return x === y ? a.i - b.i : x - y;
  };
}

const csvText = () => {
  const quoted = (s) => /[,"\r\n]/.test(s) ? '"' + s.replace(/"/g, '""') + '"' : s;
  const columns = [...D.columns.configs, ...D.columns.records, ...D.columns.counters];
  const cell = (c, column) => {
    const v = c[column.name];
    return v === null ? "" : column.decimals < 0 ? quoted(v) : v.toFixed(column.decimals);
  };
  const lines = [["config", ...columns.map((column) => column.name)].join(",")];
  for (const c of configs) lines.push([quoted(configText(c)), ...columns.map((column) => cell(c, column))].join(","));
  return lines.join("\n") + "\n";
};

const PRODUCTS = { 2: "two", 5: "five" }[D.products] ?? String(D.products);

// Of lists too long for Math.min(...list).
const leastOf = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
const mostOf = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);

// Numbers for people. Thin blanks part thousands.

function digits(x, n) {
  return Number(x.toPrecision(n)).toLocaleString("en", { maximumSignificantDigits: n, useGrouping: false });
}

// With the zeros at the end, so that columns line up: 119.0
function exact(x, n) {
  return x >= 10 ** n ? whole(x) : x.toPrecision(n);
}

function whole(x) {
  return Math.round(x).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function showTime(us, n = 4) {
  if (us === null || us === undefined) return "not known";
  return us >= 1e6 ? exact(us / 1e6, n) + " s" : us >= 1e3 ? exact(us / 1e3, n) + " ms" : exact(us, n) + " µs";
}

function showBytes(bytes, n = 3) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let u = 0;
  while (bytes >= 1024 && u < units.length - 1) bytes /= 1024, u++;
  return digits(bytes, Math.max(n, Math.floor(Math.log10(Math.max(bytes, 1))) + 1)) + " " + units[u];
}

function showCount(x) {
  return x >= 1024 && x % 1024 === 0 ? x / 1024 + "k" : x.toString();
}

function percent(x, n = 0) {
  return (100 * x).toFixed(n) + " %";
}

function plural(n, word) {
  return whole(n) + " " + word + (n === 1 ? "" : "s");
}

// DOM: h("p", { class: "x" }, "text", child)
function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// "B_r = 128" with what is after the underscore lowered; the nodes of it.
function lowered(text) {
  return text.split(/(_[a-z])/).map((part) => (/^_[a-z]$/.test(part) ? h("sub", {}, part[1]) : part));
}

// The content of an element, without what is not there.
function put(id, ...children) {
  byId(id).replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== ""));
}

const byId = (id) => document.getElementById(id);

const PAGE = 50; // rows of the table at first
