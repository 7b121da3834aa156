// detail: the chosen tile: its best config unit by unit, the others, and what was pruned.

const UNITS = [["matrix", "matrix units"], ["exp", "exponentials"], ["issue", "issue slots"], ["smem", "shared memory"], ["l2", "L2"], ["hbm", "HBM"]];

function unitBars(c) {
  const most = Math.max(c.model_us, ...UNITS.map(([key]) => c[key + "_us"]));
  return h("div", { class: "units", role: "list", "aria-label": "How long each unit is busy, by the model" }, ...UNITS.map(([key, title]) => {
    const bar = h("span", { class: key === c.bound ? "fill bound" : "fill" });
    bar.style.width = 100 * c[key + "_us"] / most + "%";
    return h("div", { role: "listitem", class: "unit" }, h("span", {}, title), h("span", { class: "track" }, bar),
      h("span", { class: "figure" }, percent(c[key + "_us"] / c.model_us)));
  }));
}

function copyButton(text) {
  const button = h("button", { type: "button", class: "small", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      button.textContent = "select it by hand";
    }
    say(button.textContent);
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  } }, "copy");
  return button;
}

function configCard(c) {
  const family = D.families[c.f];
  return h("div", {},
    h("p", { class: "big" }, showTime(timeOf(c, state.clock) ?? c.model_us), h("small", {}, timeOf(c, state.clock) !== null && state.clock === "measured" ?
      " measured" : " by the model")),
    h("ul", { class: "values" }, ...family.tunables.map((t, k) =>
      h("li", { title: t.doc }, t.name, " ", h("b", {}, valueText(t, c.v[k]))))),
    h("dl", { class: "rows" }, ...configRows(c).filter((row) => row).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    unitBars(c),
    h("p", { class: "command" }, h("code", {}, configText(c)), copyButton(configText(c))));
}

// Only what differs from the best.
function otherConfigs(list) {
  const best = list[0], most = 8;
  const rows = list.slice(1, 1 + most).map((c) => {
    const differs = D.families[c.f].tunables.filter((t, k) => c.v[k] !== best.v[k])
      .map((t) => t.name + "=" + valueText(t, tunable(c, t.name))).join(" ");
    const us = timeOf(c, state.clock), time = h("b", {}, showTime(us ?? c.model_us) + (us === null ? " by the model" : ""));
    return h("li", {}, h("button", { type: "button", class: "plain", onclick: () => { state.config = c.i; drawDetail(); markChosen(); } },
      time, " ", h("span", {}, differs)));
  });
  if (!rows.length) return null;
  return h("div", {}, h("h3", {}, "Others of this tile"), h("ol", { class: "others" }, ...rows),
    list.length > 1 + most ? h("p", { class: "note" }, "and " + whole(list.length - 1 - most) + " more" + ", in the table below") : null);
}

function prunedList(t) {
  if (!t.reasons.length) return null;
  return h("div", {}, h("h3", {}, t.fits ? "Pruned here" : "Why it is pruned"), h("ul", { class: "reasons" }, ...t.reasons.map((r) =>
    h("li", {}, h("b", {}, r.constraint), " ", h("span", { class: "times" }, "× " + whole(r.points)), h("br"), r.why || "",
      h("details", {}, h("summary", {}, "a config that it prunes"), h("code", {}, r.config))))));
}

function drawDetail() {
  const t = state.tile;
  if (!t) {
    put("detail", h("p", { class: "note" }, "Choose a tile."));
    put("rest");
    return;
  }
  const list = configsAt(t), chosen = list.find((c) => c.i === state.config) ?? list[0];
  put("detail", h("h3", { class: "name" }, ...lowered(tileName(t))),
    h("p", { class: "note" }, t.points ? `${plural(t.points, "point")} of the space, ${whole(t.fits)} fit` + (list.length !== t.fits ? `, ${whole(list.length)} shown` : "")
      : "no point of its own in the space: a constraint fails before the tile is known"),
    chosen ? configCard(chosen) : null);
  put("rest", list.length ? otherConfigs(list) : null, prunedList(t));
}
