// layers: what the heat map can show, and the colours that it shows it in.

// Viridis (van der Walt and Smith 2015): even steps of lightness, told apart whatever the kind of colour vision.
const RAMP = [[68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88],
  [181, 222, 43], [253, 231, 37]];

function rampAt(t) {
  const at = Math.min(Math.max(t, 0), 1) * (RAMP.length - 1), k = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[k].map((v, i) => Math.round(v + (RAMP[k + 1][i] - v) * (at - k)));
}

const css = (rgb) => `rgb(${rgb.join(" ")})`;

// Black or white, whichever has more contrast (WCAG 2: relative luminance).
function inkOn(rgb) {
  const [r, g, b] = rgb.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

// of: the value of a config; write: for the cell; tell: for people; bright: which end of the ramp is bright; log: the scale.
const LAYERS = [
  { key: "time", title: "Time", unit: "", of: (c) => timeOf(c, state.clock), write: (v) => exact(scaled(v), 3), tell: showTime,
    bright: "low", log: true, ends: ["slower", "faster"], timed: true },
  { key: "tflops", title: "TFLOP/s", of: (c) => tflopsOf(timeOf(c, state.clock)), write: (v) => exact(v, 3),
    tell: (v) => exact(v, 4) + " TFLOP/s", bright: "high", log: false, ends: ["slower", "faster"], timed: true, multiplied: true },
  { key: "gbs", title: "GB/s", of: (c) => gbsOf(timeOf(c, state.clock)), write: (v) => whole(v), tell: (v) => whole(v) + " GB/s of " + D.tensors,
    unit: "of " + D.tensors + ", each once", bright: "high", log: false, ends: ["slower", "faster"], timed: true, streamed: true },
  { key: "smem", title: "Shared memory", of: (c) => c.smem, write: (v) => digits(v / 1024, 3), tell: (v) => whole(v) + " bytes", unit: "KiB per block",
    bright: "high", log: false, ends: ["less", "more"] },
  { key: "regs", title: "Registers", of: (c) => c.compiled_regs ?? c.regs, write: (v) => v.toString(), tell: (v) => v + " per thread",
    unit: "per thread", bright: "high", log: false, ends: ["fewer", "more"] },
  { key: "occupancy", title: "Occupancy", of: (c) => c.occupancy, write: (v) => Math.round(100 * v).toString(), tell: (v) => percent(v, 1),
    unit: "% of an SM's warps", bright: "high", log: false, ends: ["lower", "higher"] },
  { key: "bytes", title: "Global bytes", of: (c) => c.bytes, write: (v) => digits(v / 2 ** 20, 3), tell: (v) => showBytes(v) + " by the model",
    unit: "MiB asked of global memory, by the model", bright: "low", log: true, ends: ["more", "fewer"] },
  { key: "counted", title: "Bytes, simulated", of: (c) => (c.sim_read === null ? null : c.sim_read + c.sim_written), write: (v) => digits(v / 1024, 3),
    tell: (v) => whole(v) + " bytes counted", unit: "KiB counted by the simulator", bright: "low", log: true, ends: ["more", "fewer"], simulated: true },
  { key: "conflicts", title: "Bank conflicts", of: (c) => c.conflicts, write: (v) => whole(v), tell: (v) => plural(v, "conflict"),
    unit: "passes too many, counted by the simulator", bright: "low", log: false, ends: ["more", "fewer"], simulated: true },
  { key: "fits", title: "Why pruned", unit: "% of the tile's points that fit", bright: "high", log: false, ends: ["fewer", "more"], tally: true,
    write: (v) => Math.round(100 * v).toString(), tell: (v) => percent(v) + " fit" },
  { key: "warm", title: "Time, warm L2", of: (c) => c.warm_us, write: (v) => exact(scaled(v), 3), tell: (v) => showTime(v) + " measured with a warm L2",
    bright: "low", log: true, ends: ["slower", "faster"], timed: true, warm: true },
];

// Those that have a value to show, in the order of the digits that choose them.
function layers() {
  return LAYERS.filter((layer) => (!layer.simulated || D.counters.length) && (!layer.warm || configs.some((c) => c.warm_us !== null)) &&
    (!layer.streamed || D.streamed) && (!layer.multiplied || !D.streamed));
}

// The unit in which the cells of the time layers are written: that of the fastest.
function timeUnit(list) {
  const best = list.reduce((least, c) => Math.min(least, timeOf(c, state.clock) ?? Infinity), Infinity);
  return best >= 1e6 ? { factor: 1e6, name: "s" } : best >= 1e3 ? { factor: 1e3, name: "ms" } : { factor: 1, name: "µs" };
}

const scaled = (us) => us / state.unit.factor;

const layerOf = (key) => LAYERS.find((layer) => layer.key === key);

// From the values of a layer to the ramp, whose bright end is the best of `trusted`, where there are any: what lies beyond has its colour.
function scaleOf(layer, values, trusted = []) {
  const there = (list) => list.filter((v) => v !== null && v !== undefined), known = there(values), leads = there(trusted).length ? there(trusted) : known;
  const low = Math.min(...(layer.bright === "low" ? leads : known)), high = Math.max(...(layer.bright === "low" ? known : leads));
  const f = layer.key === "time" || layer.warm ? (v) => -1 / v : layer.log && low > 0 ? Math.log : (v) => v; // times by the speed that they are
  const place = (v) => (high === low ? 1 : (f(v) - f(low)) / (f(high) - f(low)));
  return { low, high, known: known.length, at: (v) => (high === low ? 1 : layer.bright === "low" ? 1 - place(v) : place(v)) };
}
