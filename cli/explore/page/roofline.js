// roofline: every config under the peaks of the chip, and naive attention beside them.

const bytesOf = (c) => (state.bytes === "l2" ? c.bytes : c.hbm_bytes);

// Configs at one place of the figure are one point, which the fastest stands for.
function roofPoints(f, list) {
  const points = new Map();
  for (const c of list) {
    const tflops = tflopsOf(timeOf(c, state.clock));
    if (tflops === null || !bytesOf(c)) continue;
    const x = D.flops / bytesOf(c), key = c.f + ":" + Math.round(f.x(x) / 2) + ":" + Math.round(f.y(tflops) / 2);
    if (points.has(key)) points.get(key).like++;
    else points.set(key, { c, x, y: tflops, like: 0 });
  }
  return [...points.values()];
}

// What the model gives the L2 for each family, with all SMs at work: loads by TMA get more out of it.
function l2Rates() {
  const rates = new Map();
  D.families.forEach((family, f) => {
    const most = mostOf(configs.filter((c) => c.f === f && c.l2_us).map((c) => c.bytes / c.l2_us / 1e3 / Math.min(1, c.grid / D.arch.sms))), gbs = Number(most.toPrecision(3));
    if (gbs > 0) rates.set(gbs, [...(rates.get(gbs) ?? []), family.name]);
  });
  return [...rates].map(([gbs, names]) => ["l2", gbs, rates.size > 1 ? "L2, " + names.join(", ") : "L2"]);
}

function roofs(x, y) {
  const peak = Math.max(...D.arch.peaks.map((p) => p.tflops)), memory = [...l2Rates(), ["hbm", D.arch.hbm_gbs, "HBM"]], lines = [];
  for (const [key, gbs, name] of memory) {
    const to = Math.min(peak * 1e3 / gbs, x.max), from = Math.max(x.min, y.min * 1e3 / gbs);
    if (from < to) lines.push({ key, name: `${name} ${whole(gbs)} GB/s`, points: [[from, from * gbs / 1e3], [to, to * gbs / 1e3]], quiet: key !== state.bytes, slope: true });
  }
  const fastest = Math.max(...memory.filter(([key]) => key === state.bytes).map(([, gbs]) => gbs));
  for (const p of D.arch.peaks) {
    const from = Math.max(x.min, p.tflops * 1e3 / fastest);
    if (from < x.max) lines.push({ key: "peak", name: `${p.name} ${digits(p.tflops, 3)} TFLOP/s`, points: [[from, p.tflops], [x.max, p.tflops]] });
  }
  if (D.arch.exp_tflops < 1.4 * peak)
    lines.push({ key: "exp", name: `exponentials ${digits(D.arch.exp_tflops, 3)}`, points: [[x.min, D.arch.exp_tflops], [x.max, D.arch.exp_tflops]], quiet: true });
  return lines;
}

let roofFrame = null; // of the figure as it is drawn

// Of the figure that is drawn: bandwidth.js has the other.
const placeIn = (f, c, dy) => (D.streamed ? [f.x(heldOf(c)), f.y(gbsOf(timeOf(c, state.clock))) + dy]
  : [f.x(D.flops / bytesOf(c)), f.y(tflopsOf(timeOf(c, state.clock))) + dy]);

// The ring around the chosen config, if it has a time.
function markChosen() {
  const c = configs[state.config ?? leader().i];
  roofFrame.plot.querySelector(".chosen")?.remove();
  if (!c || timeOf(c, state.clock) === null) return;
  const ring = SHAPES[c.f ? "square" : "circle"](...placeIn(roofFrame, c, 0), 6.5);
  ring.setAttribute("class", "chosen");
  roofFrame.plot.append(ring);
}

function drawRoofline() {
  const box = byId("roofline"), list = configs.filter((c) => timeOf(c, state.clock) !== null), naive = NAIVE ? { x: D.flops / D.naive.bytes, y: tflopsOf(D.naive.model_us) } : null;
  const xs = [...(naive ? [naive.x] : []), ...list.map((c) => D.flops / bytesOf(c))], ys = [...(naive ? [naive.y] : []), ...list.map((c) => tflopsOf(timeOf(c, state.clock)))];
  const peak = Math.max(...D.arch.peaks.map((p) => p.tflops));
  const x = { min: leastOf(xs) / 2, max: Math.max(mostOf(xs) * 2, peak * 1e3 / D.arch.hbm_gbs * 2), log: true, write: (v) => digits(v, 2),
    title: state.bytes === "l2" ? "FLOP per byte asked of global memory" : "FLOP per byte from HBM" };
  const y = { min: leastOf(ys) / 1.6, max: Math.max(peak, D.arch.exp_tflops < 1.4 * peak ? D.arch.exp_tflops : 0) * 1.5, log: true,
    write: (v) => digits(v, 2), title: "TFLOP/s" };
  const f = frame(box, x, y, 0.66);
  const points = roofPoints(f, list).reverse();
  const star = placeIn(f, leader(), -9);
  for (const line of roofs(x, y)) {
    f.plot.append(svg("path", { class: "roof " + line.key + (line.quiet ? " quiet" : ""), d: pathOf(f, line.points) }));
    const [a, b] = line.points.map(([px, py]) => [f.x(px), f.y(py)]);
    if (line.slope) {
      const angle = Math.atan2(b[1] - a[1], b[0] - a[0]) * 180 / Math.PI, share = line.key === "l2" ? 0.3 : 0.17, above = line.key === "l2" ? -6 : 14;
      const lx = a[0] + (b[0] - a[0]) * share, ly = a[1] + (b[1] - a[1]) * share;
      label(f, 0, 0, line.name, { transform: `translate(${lx} ${ly}) rotate(${angle}) translate(0 ${above})`, "text-anchor": "middle" });
    } else {
      const wide = 7 * line.name.length, meets = (dy) => Math.abs(b[1] + dy - star[1]) < 16 && star[0] > f.right - wide - 16;
      label(f, f.right - 4, b[1] + (meets(-5) ? 15 : -5), line.name, { "text-anchor": "end" });
    }
  }
  for (const p of points)
    f.plot.append(shapeAt(f, p.c.f ? "square" : "circle", p.x, p.y, 3.2, { class: "point" + (p.c.f === state.family ? " own" : "") }));
  if (naive) {
    f.plot.append(shapeAt(f, "triangle", naive.x, naive.y, 6, { class: "naive" }));
    label(f, f.x(naive.x) + 11, f.y(naive.y) + 15, "naive");
  }
  label(f, ...star, "★", { "text-anchor": "middle" });
  roofFrame = f;
  markChosen();
  const walk = points.map((p) => ({ x: p.x, y: p.y, choose: () => chooseConfig(p.c), text: () => configText(p.c) + ", " + digits(p.y, 4) + " TFLOP/s",
    tip: () => tipLines(digits(p.y, 4) + " TFLOP/s " + marksOf(p.c).join(""), configRows(p.c), configText(p.c).replace(/,/g, ", ") + (p.like ? ` · and ${p.like} more here` : "")) }));
  if (naive) walk.push({ ...naive, text: () => "naive attention, " + digits(naive.y, 3) + " TFLOP/s", tip: () => tipLines("Naive attention", [["time", showTime(D.naive.model_us)],
    ["TFLOP/s", digits(naive.y, 3)], ["bytes", showBytes(D.naive.bytes)], [NAIVE.holds, showBytes(D.naive.held)]], `${NAIVE.kernels[0].toUpperCase() + NAIVE.kernels.slice(1)} over all pairs, each at its roofline.`) });
  walk.sort((a, b) => a.y - b.y);
  present(box, f, walk, "Roofline of the configs, TFLOP/s against FLOP per byte");
  const families = D.families.map((family, k) => (k ? "squares " : "circles ") + family.name).join(", ");
  byId("roofline-note").textContent = `${families}; ▲ naive; ★ the fastest; the ring is the chosen tile. FLOP are those of the ${PRODUCTS} products over visible pairs. ` +
    (state.bytes === "l2" ? "Bytes are those that the kernel asks for, as the simulator counts them: the L2 serves them, so points may lie above the line of HBM. The rate of the L2 is the model's."
      : "Bytes are what the model expects to miss the L2.");
}

function startRoofline() {
  byId("roofline-axis").replaceChildren(radios("bytes", "Bytes", [["l2", "asked for"], ["hbm", "from HBM"]], state.bytes, (v) => { state.bytes = v; drawRoofline(); }));
}
