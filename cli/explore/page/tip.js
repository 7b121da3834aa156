// tip: the one tooltip, and what is said aloud.

function tipLines(title, rows, note) {
  return [h("b", {}, ...lowered(title)), h("dl", {}, ...rows.filter((row) => row).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    note ? h("p", {}, note) : null].filter((x) => x);
}

let tipAnchor = null; // what tells where the tooltip of the focused thing belongs; null for the mouse's

// Beside the rectangle that anchor() tells, where there is room. stays: it is of what has the focus, and scrolling moves it along.
function showTip(anchor, children, stays) {
  const tip = byId("tip"), rect = anchor();
  tipAnchor = stays ? anchor : null;
  tip.replaceChildren(...children);
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), gap = 10, wide = document.documentElement.clientWidth, high = window.innerHeight;
  let x = rect.right + gap, y = rect.top;
  if (x + box.width > wide - 4) x = rect.left - gap - box.width;
  if (x < 4) {
    x = Math.min(Math.max(rect.left + rect.width / 2 - box.width / 2, 4), wide - box.width - 4);
    y = rect.bottom + gap + box.height > high ? rect.top - gap - box.height : rect.bottom + gap;
  }
  tip.style.left = Math.max(4, x) + "px";
  tip.style.top = Math.max(4, Math.min(y, high - box.height - 4)) + "px";
}

function hideTip() {
  byId("tip").hidden = true;
  tipAnchor = null;
}

// What scrolls under a mouse that rests is not pointed at: the events that a browser then makes up are where the last move was.
let pointer = "";
const pointerOf = (event) => event.clientX + "," + event.clientY;
const pointed = (event) => pointerOf(event) !== pointer;

function startTip() {
  window.addEventListener("pointermove", (event) => { pointer = pointerOf(event); }); // after everybody else's handlers
  document.addEventListener("scroll", scrollTip, { passive: true, capture: true });
  for (const kind of ["wheel", "touchmove"]) document.addEventListener(kind, hideTip, { passive: true }); // a hand that scrolls reads elsewhere
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
}

// The tooltip of the focused thing moves along as keys scroll the page to it, and goes when the thing leaves the window.
function scrollTip() {
  const tip = byId("tip");
  if (tip.hidden) return;
  const rect = tipAnchor?.();
  if (rect && rect.bottom > 0 && rect.top < window.innerHeight && rect.right > 0 && rect.left < document.documentElement.clientWidth)
    showTip(tipAnchor, [...tip.childNodes], true);
  else hideTip();
}

function say(text) {
  byId("live").textContent = text;
}

// What is told of one config, wherever it is met.
function configRows(c) {
  const record = c.verified === "no" && c.outcome === "ok" ? [["record", "a time, but never verified: it does not count"]] : c.outcome && c.outcome !== "ok" ? [["record", c.outcome + (c.why ? ": " + c.why : "")]] : [];
  return [
    c.measured_us !== null ? ["measured", showTime(c.measured_us) + ", " + digits(tflopsOf(c.measured_us), 4) + " TFLOP/s"] : null,
    c.measured_us !== null ? ["trust", [c.quality, percent(c.spread, 2) + " spread of " + plural(c.samples, "sample"),
      c.low_us !== null && c.high_us !== null ? "median " + showTime(c.low_us) + " to " + showTime(c.high_us) : null, c.clock_mhz !== null ? whole(c.clock_mhz) + " MHz" : null,
      c.temperature !== null ? c.temperature + " °C" : null].filter((x) => x).join(", ")] : null,
    c.measured_us !== null && c.kernel === "older" ? ["caveat", "the kernel's text was another one then"] : null,
    c.warm_us !== null ? ["warm L2", showTime(c.warm_us)] : null,
    ...record,
    ["model", showTime(c.model_us) + ", " + digits(tflopsOf(c.model_us), 4) + " TFLOP/s"],
    ["busiest", c.bound],
    ["shared memory", whole(c.smem) + " bytes"],
    ["registers", c.compiled_regs !== null ? c.compiled_regs + " compiled" + (c.spills ? ", " + c.spills + " bytes spilled" : "") : c.regs + " estimated"],
    ["occupancy", percent(c.occupancy, 1) + ", " + plural(c.blocks_sm, "block") + " per SM, by " + c.limiter],
    ["global bytes", showBytes(c.bytes)],
    c.sim_read !== null ? ["simulated", whole(c.sim_read + c.sim_written) + " bytes" + (c.sim_read + c.sim_written === c.sim_modelled ? ", as the model has"
      : ", the model has " + whole(c.sim_modelled)) + "; " + plural(c.conflicts, "bank conflict")] : null,
  ];
}

// Nothing that disturbs was seen, and it is this kernel that was timed.
const isDoubtful = (c) => (c.quality !== null && c.quality !== "steady") || c.kernel === "older";

const marksOf = (c) => [c.i === leader().i ? "★" : null, D.shipped && D.shipped.config === c.i ? "◆" : null, c.measured_us === null ? null : isDoubtful(c) ? "≈" : "●",
 
  c.sim_read !== null ? "▪" : null].filter((x) => x);

// Of a tile: its best config's, and whether another of it ships.
function tileMarks(list) {
  const marks = list.length ? marksOf(list[0]) : [];
  if (list.length && list[0].measured_us === null && list.some((c) => c.measured_us !== null)) marks.unshift("○"); // the model's best is another one
  return D.shipped && list.slice(1).some((c) => c.i === D.shipped.config) ? ["◇", ...marks] : marks;
}

const MARKS = [["★", "fastest"], ["◆", "ships with fagen"], ["◇", "another config of the tile ships with fagen"], ["●", "measured"], ["○", "another config of the tile was measured"], ["≈", "measured, with a caveat"], ["▪", "simulated"]];
