// bandwidth: in place of the roofline where HBM bounds the problem: bytes of the tensors over the time, against what an SM can have under way.

const heldOf = (c) => c.smem * c.blocks_sm / 1024; // KiB

// Configs at one place of the figure are one point, which the fastest stands for.
function bandwidthPoints(f, list) {
  const points = new Map();
  for (const c of list) {
    const x = heldOf(c), y = gbsOf(timeOf(c, state.clock)), key = c.f + ":" + Math.round(f.x(x) / 2) + ":" + Math.round(f.y(y) / 2);
    if (points.has(key)) points.get(key).like++;
    else points.set(key, { c, x, y, like: 0 });
  }
  return [...points.values()];
}

function drawBandwidth() {
  const box = byId("roofline"), list = configs.filter((c) => timeOf(c, state.clock) !== null && heldOf(c) > 0).sort(byTime(state.clock));
  if (!list.length) return;
  const xs = list.map(heldOf), ys = list.map((c) => gbsOf(timeOf(c, state.clock))), naive = NAIVE ? gbsOf(D.naive.model_us, "model") : null;
  const x = { min: 0, max: mostOf(xs) * 1.05, write: (v) => digits(v, 3), title: "shared memory in use on an SM, KiB" };
  const y = { min: 0, max: Math.max(D.arch.hbm_gbs * 1.15, mostOf(ys) * 1.1), write: (v) => whole(v), title: "GB/s of " + D.tensors };
  const f = frame(box, x, y, 0.66);
  for (const [key, gbs, name] of [["hbm", D.arch.hbm_gbs, "HBM"], ["peak", naive, "naive at its roofline"]].filter(([, gbs]) => gbs)) {
    f.plot.append(svg("path", { class: "roof " + key, d: pathOf(f, [[x.min, gbs], [x.max, gbs]]) }));
    label(f, f.right - 4, f.y(gbs) - 5, `${name} ${whole(gbs)} GB/s`, { "text-anchor": "end" });
  }
  const points = bandwidthPoints(f, list).reverse(), best = leader();
  for (const p of points)
    f.plot.append(shapeAt(f, p.c.f ? "square" : "circle", p.x, p.y, 3.2, { class: "point" + (p.c.f === state.family ? " own" : "") }));
  if (timeOf(best, state.clock) !== null) label(f, ...placeIn(f, best, -9), "★", { "text-anchor": "middle" });
  roofFrame = f;
  markChosen();
  const walk = points.map((p) => ({ x: p.x, y: p.y, choose: () => chooseConfig(p.c), text: () => configText(p.c) + ", " + whole(p.y) + " GB/s",
    tip: () => tipLines(whole(p.y) + " GB/s " + marksOf(p.c).join(""), configRows(p.c), configText(p.c).replace(/,/g, ", ") + (p.like ? ` · and ${p.like} more here` : "")) }));
  walk.sort((a, b) => a.x - b.x || a.y - b.y);
  present(box, f, walk, "Bandwidth of the configs, GB/s against shared memory in use on an SM");
  const families = D.families.map((family, k) => (k ? "squares " : "circles ") + family.name).join(", ");
  byId("roofline-note").textContent = `${families}; ★ the fastest; the ring is the chosen tile. A roofline of FLOPs would tell nothing: the matrix units could do ` +
    `${digits(Math.max(...D.arch.peaks.map((p) => p.tflops)) * 1e3 / D.arch.hbm_gbs / (D.flops / D.tensor_bytes), 2)} times the products that the bytes bring. Bytes are those of ${D.tensors}, each once` +
    (!D.asked.features.includes("lengths") ? "." : state.clock === "measured" ? "; lengths are drawn uniform up to the longest." : "; every sequence is as long as the longest.");
}

function startBandwidth() {
  byId("roofline-title").textContent = "Bandwidth";
}
