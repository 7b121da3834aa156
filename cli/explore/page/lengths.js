// lengths: speed-up, systems and memory against the length.

function lengthAxis(list) {
  const values = list.map((l) => l.sk);
  return { min: Math.min(...values) / 1.15, max: Math.max(...values) * 1.15, log: true, ticks: values.filter((v) => (v & (v - 1)) === 0), write: showCount,
    title: D.asked.sq === D.asked.sk ? "length N" : "keys" };
}

function drawLines(box, f, series, name, note) {
  const points = [];
  for (const s of series) {
    f.plot.append(svg("path", { class: "line " + s.key, d: pathOf(f, s.points) }));
    for (const [x, y, l] of s.points) {
      f.plot.append(shapeAt(f, s.shape, x, y, 3.6, { class: "dot " + s.key }));
      points.push({ x, y, text: () => `${s.text}: ${showCount(l.sk)}, ${s.write(y)}`, tip: () => tipLines("N = " + showCount(l.sk), note(l), s.text) });
    }
  }
  points.sort((a, b) => a.x - b.x || a.y - b.y);
  present(box, f, points, name, keyOf(series));
}

function hideCard(id) {
  byId(id).closest(".card").hidden = true;
}

const speedNote = (l) => [["model", showTime(l.model_us)], ["naive, at its roofline", showTime(l.naive_us)], l.naive_us ? ["speed-up", digits(l.naive_us / l.model_us, 3) + "×"] : null,
  l.measured_us ? ["measured", showTime(l.measured_us)] : null, l.measured_naive_us ? ["naive, measured", showTime(l.measured_naive_us)] : null,
  ["bytes moved", showBytes(l.bytes)], l.naive_us ? ["naive moves", showBytes(l.naive_bytes)] : null];

function drawSpeedup() {
  if (!NAIVE) return hideCard("speedup");
  const box = byId("speedup"), list = D.lengths.filter((l) => l.model_us), times = (v) => digits(v, 3) + "×";
  const series = [
    { key: "model", shape: "circle", text: "naive at its roofline / model", of: (l) => l.naive_us / l.model_us },
    { key: "tuned", shape: "square", text: "naive at its roofline / measured", of: (l) => (l.measured_us ? l.naive_us / l.measured_us : null) },
    { key: "random", shape: "diamond", text: "naive measured / measured", of: (l) => (l.measured_us && l.measured_naive_us ? l.measured_naive_us / l.measured_us : null) },
  ].map((s) => ({ ...s, write: times, points: list.map((l) => [l.sk, s.of(l), l]).filter((p) => p[1]) })).filter((s) => s.points.length);
  const most = Math.max(...series.flatMap((s) => s.points.map((p) => p[1])));
  const f = frame(box, lengthAxis(list), { min: 0, max: Math.max(2, most * 1.15), write: times, title: "times as fast as naive" }, 0.6);
  f.plot.append(svg("path", { class: "even", d: `M${f.left} ${f.y(1)}H${f.right}` }));
  drawLines(box, f, series, "Speed-up over naive attention against the length", speedNote);
  byId("speedup-note").textContent = `Batch ${D.asked.b}, ${plural(D.asked.hq, "head")}. Naive is ${NAIVE.kernels} over all pairs, hidden ones too, with ${NAIVE.holds} in memory as ` +
    `${D.asked.dtype}, each at the roofline of the fastest matrix unit and of HBM: kinder than any real one. Ours is the best config of each length.`;
}

// The systems in the order of D.systems, after fagen's own kernel.
const SYSTEM_MARKS = [["naive", "triangle"], ["tuned", "square"], ["random", "diamond"], ["other", "circle"]];

function drawSystems() {
  const box = byId("systems"), bytes = state.systems === "bytes", write = bytes ? showBytes : showTime;
  const series = [{ key: "model", shape: "circle", text: "fagen", at: (l) => l }, ...D.systems.map((name, i) => {
    const [key, shape] = SYSTEM_MARKS[i % SYSTEM_MARKS.length];
    return { key, shape, text: name, at: (l) => l.systems[i] };
  })].map((s) => ({ ...s, write, points: D.lengths.map((l) => [l.sk, s.at(l) && (bytes ? s.at(l).bytes : s.at(l).model_us), l]).filter((p) => p[1]) }))
    .filter((s) => s.points.length);
  const values = series.flatMap((s) => s.points.map((p) => p[1]));
  const y = { min: Math.min(...values) / 2, max: Math.max(...values) * 2, log: true, write, title: bytes ? "bytes asked of global memory" : "time by the model" };
  const f = frame(box, lengthAxis(D.lengths), y, 0.6);
  drawLines(box, f, series, "fagen's kernel and the systems against the length", (l) => series.map((s) => [s.text, s.at(l) ?
    `${showTime(s.at(l).model_us)}${s.at(l).measured_us ? ", measured " + showTime(s.at(l).measured_us) : ""}, ${showBytes(s.at(l).bytes)}` : "no kernel"]));
  byId("systems-note").textContent = `Families that fagen keeps for comparison: ${D.systems.join(", ")}. They multiply on the FMA units whatever the type is; fagen bench ` +
    "times them on a GPU.";
}

function startSystems() {
  byId("systems-axis").replaceChildren(radios("systems", "Compared by", [["time", "time"], ["bytes", "bytes"]], state.systems, (v) => { state.systems = v; drawSystems(); }));
}

function drawMemory() {
  const box = byId("memory"), list = D.lengths.filter((l) => l.model_us), ours = D.asked.op === "forward" ? "LSE, where asked for, and the workspace" : "the workspace";
  const series = [
    { key: "naive", shape: "triangle", text: "naive: " + NAIVE?.holds, of: (l) => l.naive_held },
    { key: "random", shape: "diamond", text: D.tensors + " themselves", of: (l) => l.tensors },
    { key: "model", shape: "circle", text: "fagen: " + ours, of: (l) => l.held },
  ].map((s) => ({ ...s, write: showBytes, points: list.map((l) => [l.sk, s.of(l), l]).filter((p) => p[1]) })).filter((s) => s.points.length);
  const values = series.flatMap((s) => s.points.map((p) => p[1]));
  const y = { min: Math.min(...values) / 2, max: Math.max(...values) * 3, log: true, write: showBytes, title: "bytes held" };
  y.ticks = Array.from({ length: 26 }, (_, k) => 4 ** (k + 2)).filter((v) => v >= y.min && v <= y.max);
  const f = frame(box, lengthAxis(list), y, 0.6);
  drawLines(box, f, series, "Memory held against the length", (l) => [NAIVE ? ["naive: " + NAIVE.holds, showBytes(l.naive_held)] : null, [D.tensors, showBytes(l.tensors)],
    ["fagen", showBytes(l.held)], NAIVE && l.held ? ["less than naive", digits(l.naive_held / l.held, 3) + "×"] : null].filter((row) => row));
  byId("memory-note").textContent = (NAIVE ? `Naive attention holds ${NAIVE.holds}, which grow with the square of the length. ` : "") + `These kernels hold ${ours}.` +
    (D.asked.op === "backward" ? " It has rowsum(dO O) of each row, and what the best config of the length keeps: sums of dQ in fp32, or dS of some heads at a time." : "");
}
