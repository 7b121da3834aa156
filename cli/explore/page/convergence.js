// convergence: the best so far against the configs tried, in several orders of trying.

// Pairs (tried, best time so far) of times in the order of trying, only where the best changes, and the last.
function bestSoFar(times) {
  const steps = [];
  let best = Infinity;
  times.forEach((us, i) => { if (us < best) steps.push([i + 1, best = us]); });
  if (times.length) steps.push([times.length, best]);
  return steps;
}

// What the best of k configs drawn at random is worth on average, exactly: the i-th fastest of n is the best of the draw with
// probability C(n - i, k - 1) / C(n, k).
function randomSoFar(times) {
  const sorted = times.slice().sort((a, b) => a - b), n = sorted.length, steps = [];
  for (let k = 1; k <= n; k = k < 10 ? k + 1 : Math.ceil(k * 1.12)) {
    let p = k / n, sum = 0;
    for (let i = 1; i <= n - k + 1; i++) {
      sum += p * sorted[i - 1];
      p *= (n - i - k + 1) / (n - i);
    }
    steps.push([k, sum]);
  }
  return steps;
}

function searches() {
  if (hasTimes) {
    const timed = configs.filter((c) => c.measured_us !== null).map((c) => c.measured_us), seen = new Set();
    const history = D.history.filter(([k]) => !seen.has(k) && seen.add(k)).map(([, us]) => us);
    return [{ text: "as it was tuned", key: "tuned", shape: "square", steps: bestSoFar(history) }, { text: "in the model's order", key: "model", shape: "circle", steps: bestSoFar(timed) },
      { text: "at random, on average", key: "random", shape: "diamond", steps: randomSoFar(timed) }];
  }
  const modelled = configs.map((c) => c.model_us), listed = configs.filter((c) => c.order !== null).sort((a, b) => a.order - b.order).map((c) => c.model_us);
  return [{ text: "in the model's order", key: "model", shape: "circle", steps: bestSoFar(modelled) }, { text: "at random, on average", key: "random", shape: "diamond", steps: randomSoFar(modelled) },
    { text: "in the order of the space", key: "tuned", shape: "square", steps: bestSoFar(listed) }];
}

function drawConvergence() {
  const box = byId("convergence"), list = searches(), best = Math.min(...list.map((s) => s.steps[s.steps.length - 1][1]));
  const most = Math.max(...list.map((s) => s.steps[s.steps.length - 1][0]));
  for (const s of list) s.points = s.steps.map(([k, us]) => [k, 100 * best / us]);
  const least = leastOf(list.flatMap((s) => s.points.map((p) => p[1])));
  const x = { min: 1, max: Math.max(2, most), log: true, write: (v) => whole(v), title: "configs tried" };
  const low = Math.max(0, Math.floor(least / 10) * 10), step = [1, 2, 5, 10, 20].find((s) => (100 - low) / s <= 7);
  const y = { min: low, max: 101, ticks: Array.from({ length: Math.floor((100 - low) / step) + 1 }, (_, k) => 100 - k * step).reverse(), write: (v) => digits(v, 3) + " %",
    title: "speed of the best so far" }; // the last tick is the fastest
  const f = frame(box, x, y, 0.66), points = [];
  list.forEach((s) => {
    f.plot.append(svg("path", { class: "line " + s.key, d: s.key === "random" ? pathOf(f, s.points) : stepsOf(f, s.points) }));
    for (const [px, py] of s.points) points.push({ x: px, y: py, text: () => `${s.text}: after ${px}, ${digits(py, 4)} percent`,
      tip: () => tipLines(s.text, [["tried", whole(px)], ["best so far", showTime(best * 100 / py)], ["of the fastest", percent(py / 100, 2)]]) });
    for (const [px, py] of s.key === "random" ? [] : s.points.slice(0, -1)) f.plot.append(shapeAt(f, s.shape, px, py, 3, { class: "dot " + s.key }));
  });
  present(box, f, points, "Convergence: the speed of the best so far against the configs tried", keyOf(list));
  byId("convergence-note").textContent = hasTimes
    ? `All three orders are of the ${plural(configs.filter((c) => c.measured_us !== null).length, "config")} that were measured; the fastest took ${showTime(best)}.`
    : `Times of the model: trying in its order finds the fastest at once, which says nothing of the chip. What a search without it would need is the other two lines.`;
}
