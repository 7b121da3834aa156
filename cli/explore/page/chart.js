// chart: axes, points and their tooltip, for figures that are drawn again for every width.

function scaleTo(axis, from, to) {
  const f = axis.log ? Math.log : (v) => v, a = f(axis.min), b = f(axis.max);
  return (v) => from + (f(v) - a) / (b - a) * (to - from);
}

// Round values between min and max, at most about n.
function ticksOf(axis, n) {
  if (axis.ticks) return axis.ticks.length <= n ? axis.ticks : axis.ticks.filter((_, i) => i % Math.ceil(axis.ticks.length / n) === 0);
  if (axis.log) {
    for (const steps of [[1, 2, 5], [1, 3], [1]]) {
      const list = [];
      for (let e = Math.floor(Math.log10(axis.min)); e <= Math.ceil(Math.log10(axis.max)); e++)
        for (const m of steps) if (m * 10 ** e >= axis.min * 0.999 && m * 10 ** e <= axis.max * 1.001) list.push(m * 10 ** e);
      if (list.length <= n) return list;
      if (steps.length === 1) return list.filter((_, i) => i % Math.ceil(list.length / n) === 0);
    }
  }
  const raw = (axis.max - axis.min) / n, size = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= raw);
  const list = [];
  for (let v = Math.ceil(axis.min / step - 1e-9) * step; v <= axis.max + step * 1e-9; v += step) list.push(v);
  return list;
}

// An empty figure in the box: { svg, x, y, left, right, top, bottom, clip }.
function frame(box, x, y, ratio) {
  const wide = Math.max(280, box.clientWidth), high = Math.round(Math.min(440, Math.max(260, wide * ratio)));
  const left = 34 + 6.6 * Math.max(...ticksOf(y, 8).map((v) => y.write(v).length)), right = wide - 14, top = 12, bottom = high - 44, id = box.id + "-clip";
  const fx = scaleTo(x, left, right), fy = scaleTo(y, bottom, top);
  const root = svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, "aria-hidden": "true" });
  root.append(svg("defs", {}, svg("clipPath", { id }, svg("rect", { x: left, y: top, width: right - left, height: bottom - top }))));
  for (const v of ticksOf(x, Math.floor((right - left) / 58)))
    root.append(svg("line", { class: "rule", x1: fx(v), x2: fx(v), y1: top, y2: bottom }),
      svg("text", { class: "tick", x: fx(v), y: bottom + 16, "text-anchor": "middle" }, x.write(v)));
  for (const v of ticksOf(y, Math.floor((bottom - top) / 34)))
    root.append(svg("line", { class: "rule", x1: left, x2: right, y1: fy(v), y2: fy(v) }),
      svg("text", { class: "tick", x: left - 6, y: fy(v) + 4, "text-anchor": "end" }, y.write(v)));
  root.append(svg("text", { class: "axis", x: (left + right) / 2, y: high - 8, "text-anchor": "middle" }, x.title),
    svg("text", { class: "axis", transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.title));
  const plot = svg("g", { "clip-path": `url(#${id})` });
  root.append(plot);
  return { root, plot, x: fx, y: fy, left, right, top, bottom, wide, high };
}

// A label with a halo, that lines after it do not cross.
function label(f, x, y, text, attributes = {}) {
  f.root.append(svg("text", { class: "label", x, y, ...attributes }, text));
}

function pathOf(f, points) {
  return points.map(([x, y], i) => (i ? "L" : "M") + f.x(x).toFixed(1) + " " + f.y(y).toFixed(1)).join("");
}

function stepsOf(f, points) {
  return points.map(([x, y], i) => (i ? "H" + f.x(x).toFixed(1) + "V" : "M" + f.x(x).toFixed(1) + " ") + f.y(y).toFixed(1)).join("");
}

const SHAPES = {
  circle: (x, y, r) => svg("circle", { cx: x, cy: y, r }),
  square: (x, y, r) => svg("rect", { x: x - r * 0.9, y: y - r * 0.9, width: 1.8 * r, height: 1.8 * r }),
  diamond: (x, y, r) => svg("path", { d: `M${x} ${y - 1.3 * r}L${x + 1.3 * r} ${y}L${x} ${y + 1.3 * r}L${x - 1.3 * r} ${y}Z` }),
  triangle: (x, y, r) => svg("path", { d: `M${x} ${y - 1.2 * r}L${x + 1.2 * r} ${y + r}L${x - 1.2 * r} ${y + r}Z` }),
  cross: (x, y, r) => svg("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}` }),
};

function shapeAt(f, shape, x, y, r, attributes = {}) {
  const s = SHAPES[shape](f.x(x), f.y(y), r);
  for (const [key, value] of Object.entries(attributes)) s.setAttribute(key, value);
  return s;
}

// The names of lines: { key, shape, text }.
function keyOf(series) {
  return h("div", { class: "key" }, ...series.map((s) => {
    const mark = SHAPES[s.shape](19, 7, 3.6);
    mark.setAttribute("class", "dot " + s.key);
    return h("span", {}, svg("svg", { width: 38, height: 14, "aria-hidden": "true" }, svg("path", { class: "line " + s.key, d: "M1 7H37" }), mark), s.text);
  }));
}

// Puts the figure in the box. marks: { x, y, tip: () => children, text: () => string, choose }, in the order in which keys walk them.
// key: the lines' names, as keyOf makes them, or nothing.
function present(box, f, marks, name, key) {
  box.replaceChildren(...(key ? [key] : []), f.root);
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-roledescription", "chart");
  box.setAttribute("aria-label", name + ". Arrow keys walk through its points.");
  const ring = svg("circle", { class: "ring", r: 7, visibility: "hidden" });
  f.root.append(ring);
  const at = marks.map((p) => [f.x(p.x), f.y(p.y)]);
  const show = (i, stays) => {
    box.at = i;
    ring.setAttribute("cx", at[i][0]);
    ring.setAttribute("cy", at[i][1]);
    ring.setAttribute("visibility", "visible");
    showTip(() => {
      const rect = f.root.getBoundingClientRect(), x = rect.left + at[i][0], y = rect.top + at[i][1];
      return { left: x - 6, right: x + 6, top: y - 6, bottom: y + 6, width: 12, height: 12 };
    }, marks[i].tip(), stays);
  };
  const hide = () => { ring.setAttribute("visibility", "hidden"); hideTip(); };
  const nearest = (event) => {
    const rect = f.root.getBoundingClientRect(), x = event.clientX - rect.left, y = event.clientY - rect.top;
    let best = -1, least = 28 ** 2;
    at.forEach(([px, py], i) => {
      const d = (px - x) ** 2 + (py - y) ** 2;
      if (d < least) { least = d; best = i; }
    });
    return best;
  };
  box.onpointermove = (event) => {
    if (!pointed(event)) return;
    const i = nearest(event);
    if (i < 0) hide();
    else show(i, false);
  };
  box.onpointerleave = (event) => { if (pointed(event)) hide(); };
  box.onclick = (event) => { const i = nearest(event); if (i >= 0 && marks[i].choose) marks[i].choose(); };
  box.onblur = hide;
  box.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    let i = box.at === undefined || box.at >= marks.length ? (step < 0 ? marks.length : -1) : box.at;
    if (!marks.length || event.altKey || event.ctrlKey || event.metaKey) return;
    if (step) i = Math.min(Math.max(i + step, 0), marks.length - 1);
    else if (event.key === "Home") i = 0;
    else if (event.key === "End") i = marks.length - 1;
    else if (event.key === "Enter" && box.at !== undefined && marks[i].choose) { marks[i].choose(); event.preventDefault(); return; }
    else return;
    event.preventDefault();
    show(i, true);
    say(marks[i].text());
  };
}
