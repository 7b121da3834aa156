"""Tables of a results document, as Markdown: what docs/performance.md holds."""
import math
import statistics

from common import stats
from common.cells import of_dict

TITLES = {"ours": "fagen", "cudnn": "cuDNN", "fa2": "FlashAttention-2", "fa3": "FlashAttention-3", "fa4": "FlashAttention-4",
          "flex": "flex_attention", "mma": "flash_bwd_mma"}
THRESHOLDS = (1.0, 1.1)  # cells below them are listed


def title(name):
    return TITLES.get(name, name.replace("ours", "fagen"))


def shown(cell):
    """'698 / 666 cudnn = 1.05 (0.1)': our rate, the best peer's, their ratio, our spread in percent."""
    ours, peer, ratio = stats.rate(cell, "ours"), stats.best_peer(cell), stats.ratio(cell)
    if ours is None:
        return "wrong" if cell["runs"].get("ours", {}).get("wrong") else "-"
    noise = 100 * stats.spread(cell["runs"]["ours"]["seconds"])
    return f"{ours:.0f} / {stats.rate(cell, peer):.0f} {peer} = {ratio:.2f} ({noise:.1f})" if ratio else f"{ours:.0f} ({noise:.1f})"


def line(cell):
    """One cell with all its runners, for the terminal."""
    words = [f"{cell['grid']}: {of_dict(cell).name():34}"]
    for name, r in cell["runs"].items():
        rate = stats.rate(cell, name)
        words.append(f"{name} {'WRONG: ' + r['wrong'] if r.get('wrong') else f'{rate:.1f}' if rate else '-'}")
    ratio = stats.ratio(cell)
    if ratio:
        words.append(f"= {ratio:.3f}")
    words += [f"[no {name}: {why[:100]}]" for name, why in cell["skipped"].items()]
    ours = cell["runs"].get("ours", {})
    if ours.get("config"):
        words.append(f"({ours['origin']}) {ours['config']}")
    return "  ".join(words)


def failures(doc):
    """Cells without a right result of ours: (name, why)."""
    out = []
    for c in doc["cells"]:
        for name, r in c["runs"].items():
            if r["kind"] == "ours" and r.get("wrong"):
                out.append((of_dict(c).name(), f"{title(name)}: {r['wrong']}"))
        out += [(of_dict(c).name(), f"{title(name)}: {why}") for name, why in c["skipped"].items() if name.startswith("ours")]
    return out


def table(head, rows):
    return "\n".join("| " + " | ".join(str(x) for x in r) + " |" for r in [head, ["---"] * len(head)] + rows)


def row_name(c):
    return c["mask"] + (f" {c['left']},{c['right']}" if c["mask"] == "window" else "")


def grid_table(cells):
    lengths = sorted({c["sq"] for c in cells})
    rows = []
    for (d, mask), some in stats.groups([{**c, "mask_name": row_name(c)} for c in cells], "d", "mask_name").items():
        at = {c["sq"]: c for c in some}
        rows.append([d, mask] + [shown(at[s]) if s in at else "" for s in lengths])
    return table(["d", "mask"] + lengths, rows)


def mean(values):
    values = [v for v in values if v]
    return f"{stats.geomean(values):.3f}" if values else "-"


def summary_table(cells):
    """Geometric means of the ratio to the best peer, by d and mask; then to each peer."""
    masks = list(dict.fromkeys(c["mask"] for c in cells))
    names = list(dict.fromkeys(n for c in cells for n in stats.peers(c)))
    head = ["d"] + [f"best peer, {m}" for m in masks] + [f"{title(n)}, {m}" for n in names for m in masks]
    rows = []
    for d in list(dict.fromkeys(c["d"] for c in cells)) + ["all"]:
        def some(mask, d=d):
            return [c for c in cells if c["mask"] == mask and d in (c["d"], "all")]
        rows.append([d] + [mean(stats.ratio(c) for c in some(m)) for m in masks]
                    + [mean(stats.ratio(c, n) for c in some(m)) for n in names for m in masks])
    return table(head, rows)


def verdict(cells):
    """The sentence that counts: mean, least, most, and the cells below the thresholds."""
    ratios = [(stats.ratio(c), c) for c in cells if stats.ratio(c)]
    if not ratios:
        return "No cell has both a result of ours and a peer's."
    low, high = min(ratios, key=lambda x: x[0]), max(ratios, key=lambda x: x[0])
    out = [f"Geometric mean of the {len(ratios)} ratios to the best peer: **{stats.geomean(r for r, _ in ratios):.3f}**; "
           f"least {low[0]:.3f} ({of_dict(low[1]).name()}); most {high[0]:.3f} ({of_dict(high[1]).name()})."]
    last = -math.inf
    for edge in THRESHOLDS:
        some = sorted(((r, c) for r, c in ratios if last <= r < edge - 1e-9), key=lambda x: x[0])
        last = edge - 1e-9
        listed = "; ".join(f"{of_dict(c).name()}: {r:.3f} of {stats.best_peer(c)}" for r, c in some)
        out.append(f"{'Below' if edge == THRESHOLDS[0] else 'From there to below'} {edge:.2f}: {len(some)} of {len(ratios)}"
                   + (f": {listed}." if some else "."))
    return "\n".join(out)


def beside_table(cells):
    """Our kernel under another mask in the same interleaving: our rate over visible pairs beside its."""
    rows = []
    for c in cells:
        for name, r in c["runs"].items():
            if r.get("mask") and stats.rate(c, "ours") and stats.rate(c, name):
                rows.append([c["d"], c["sq"], *(f"{stats.rate(c, n):.0f}" for n in ("ours", name)), f"{stats.paired(c, 'ours', name):.2f}"])
    names = {r["mask"] for c in cells for r in c["runs"].values() if r.get("mask")}
    return table(["d", "length", "TFLOP/s over visible pairs"] + [", ".join(sorted(names))] + ["ratio"], rows) if rows else ""


def configs_table(cells):
    rows = []
    for c in cells:
        ours = c["runs"].get("ours", {})
        errors = ", ".join(f"{n} {r['error']:.1e}" for n, r in c["runs"].items() if not r.get("mask"))
        rows.append([of_dict(c).name(), ours.get("origin", "-"), f"`{ours.get('config', '-')}`", errors])
    return table(["cell", "from", "config", "relative error"], rows)


def header(doc):
    h, p = doc["host"], doc["protocol"]
    peers = "; ".join(f"{title(n)}: {v.get('version') or 'left out: ' + v['missing']}" for n, v in doc["peers"].items())
    rounds = [len(r["seconds"]) for c in doc["cells"] for r in c["runs"].values() if r.get("seconds")]
    counted = f"{min(rounds)} to {max(rounds)}" if rounds and min(rounds) != max(rounds) else f"{rounds[0] if rounds else 0}"
    clocks = ", ".join(f"{when} {c.get('clocks.sm', '?')} at {c.get('temperature.gpu', '?')} C" for when, c in doc["clocks"].items())
    return (f"{h['device']} (driver {h['driver']}), PyTorch {h['torch']}, {h['date']}. {peers}. {counted} interleaved rounds in rotating "
            f"order, samples of {1e3 * p['sample']:g} ms, {p['buffers']} sets of N(0, 1) data in turn; clock {clocks}.\n\n"
            "Each cell: TFLOP/s of fagen / of the best peer = ratio (median absolute deviation of ours, percent). The ratio is that within a round, the "
            "median of all rounds: the clock moves between rounds, so that it may differ a little from that of the two rates.")


def markdown(doc):
    out = [header(doc), ""]
    for (name,), some in stats.groups(doc["cells"], "grid").items():
        kinds = "/".join(dict.fromkeys(c["dtype"] for c in some))
        heads = {(c["hq"], c["hkv"]) for c in some}
        gqa = f", {some[0]['hq']} query and {some[0]['hkv']} KV heads" if len(heads) == 1 and some[0]["hq"] != some[0]["hkv"] else ""
        out += [f"### {name}: {kinds}{gqa}", "", grid_table(some), "", verdict(some), "", "Geometric means of our ratio:", "",
                summary_table(some), ""]
        beside = beside_table(some)
        if beside:
            out += ["Beside our own kernel in the same interleaving:", "", beside, ""]
        skipped = sorted({(n, why) for c in some for n, why in c["skipped"].items() if not n.startswith("ours")})
        out += [f"Without {title(n)} in some cells: {why}" for n, why in skipped] + ([""] if skipped else [])
        notes = sorted({(n, r["note"]) for c in some for n, r in c["runs"].items() if r.get("note")})
        out += [f"{title(n)}: {note}." for n, note in notes] + ([""] if notes else [])
        out += ["<details><summary>Configs and errors</summary>", "", configs_table(some), "", "</details>", ""]
    if len(stats.groups(doc["cells"], "grid")) > 1:
        out += ["### All grids", "", verdict(doc["cells"]), ""]
    wrong = failures(doc)
    if wrong:
        out += ["### Without a right result of ours", ""] + [f"- {name}: {why}" for name, why in wrong] + [""]
    if "took" in doc:
        share = statistics.fmean(c.get("took", 0) for c in doc["cells"]) if doc["cells"] else 0
        out.append(f"The run took {doc['took']:.0f} s, {share:.1f} s per cell.\n")
    return "\n".join(out)
