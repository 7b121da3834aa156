"""Tables of what decode.py measured, as Markdown."""
import statistics

from common import stats
from sections.decode_cases import HBM
from common.report import table, title

TITLES = {"fa3kv": "FlashAttention-3 kvcache", "fa3split": "FlashAttention-3 with splits", "cudnn graph": "cuDNN graph"}
LEAST = 0.95  # ratios below it are listed


def named(name):
    """'fa3kv, page 16' as tables call it."""
    who, comma, rest = name.partition(",")
    return TITLES.get(who, title(who)) + comma + rest


def us(row, name):
    """Microseconds of a call, or None where there is no right time."""
    r = row["runs"].get(name) or {}
    return 1e6 * statistics.median(r["seconds"]) if r.get("seconds") and not r.get("wrong") else None


def shown(x, digits=1):
    return "-" if x is None else f"{x:.{digits}f}"


def rate(row, name):
    """TB/s over the bytes of K and V."""
    t = us(row, name)
    return row["bytes"] / t / 1e6 if t else None


def ours_of(row):
    """'ours' and the named configs that ran in a case."""
    return [n for n, r in row["runs"].items() if r["kind"] == "ours"]


def peers_of(rows):
    return list(dict.fromkeys(n for row in rows for n, r in row["runs"].items() if r["kind"] == "peer" and r.get("seconds")))


def ratio(row, name="ours"):
    """The best peer's time over that of one of ours."""
    best = stats.best_peer(row)
    return stats.paired(row, name, best) if best and us(row, name) else None


def verdict(rows, name="ours"):
    ratios = [(ratio(row, name), row["name"]) for row in rows]
    good = sorted((r, n) for r, n in ratios if r)
    if not good:
        return f"No case has both a time of {named(name)} and of a peer."
    below = [f"{n} ({r:.3f})" for r, n in good if r < LEAST]
    missing = [n for r, n in ratios if not r]
    text = (f"{named(name)}: geometric mean of {len(good)} ratios {stats.geomean(r for r, _ in good):.3f}, least {good[0][0]:.3f} "
            f"({good[0][1]}), {sum(r >= 1 for r, _ in good)} of them 1.00 or more; below {LEAST:.2f}: {', '.join(below) or 'none'}.")
    return text + (f" Without a ratio: {', '.join(missing)}." if missing else "")


def dense_table(rows):
    peers, extra = peers_of(rows), list(dict.fromkeys(n for row in rows for n in ours_of(row) if n != "ours"))
    out = []
    for row in rows:
        best, r = stats.best_peer(row), ratio(row)
        noise = stats.spread(row["runs"]["ours"]["seconds"]) if us(row, "ours") else None
        out.append([row["name"], f"{row['bytes'] / 1e6:.1f}", shown(us(row, "ours")), shown(rate(row, "ours"), 2), best or "-",
                    shown(r, 3), shown(noise and 100 * noise)] + [shown(us(row, n)) for n in peers]
                   + [f"{shown(us(row, n))} ({shown(ratio(row, n), 3)})" for n in extra])
    return table(["case", "MB of K, V", "fagen us", "TB/s", "best peer", "ratio", "spread %"] + [f"{named(n)} us" for n in peers]
                 + [f"{n} us (ratio)" for n in extra], out)


def times_dense(row, name):
    """How many times what fagen takes without pages."""
    return stats.paired(row, "ours", name) if us(row, name) and us(row, "ours") else None


def pages_table(rows):
    """A line per case: fagen without pages; then for lengths and each size how many times that fagen and the peers take."""
    columns = list(dict.fromkeys(n.partition(", ")[2] for row in rows for n in row["runs"] if ", " in n))
    who = list(dict.fromkeys(n.partition(",")[0] for row in rows for n in row["runs"] if ", " in n))
    out = []
    for row in rows:
        for name in who:
            cells = [times_dense(row, f"{name}, {c}") for c in columns]
            if any(cells):
                out.append([f"{row['bytes'] / 1e6:.0f}", row["name"], named(name), shown(us(row, "ours"))] + [shown(x, 3) for x in cells])
    return table(["MB of K, V", "case", "", "fagen dense us"] + columns, out)


def ragged_table(rows):
    names = list(dict.fromkeys(n for row in rows for n, r in row["runs"].items() if r.get("seconds")))
    out = []
    for row in rows:
        for name in names:
            tb = rate(row, name)
            if tb:
                out.append([row["name"], f"{row['tokens']}", f"{row['bytes'] / 1e6:.0f}", named(name), shown(us(row, name)), f"{tb:.2f}",
                            f"{tb * 1e12 / HBM:.3f}"])
    return table(["batch", "tokens", "MB of K, V", "", "us", "TB/s", f"of {HBM / 1e12:g} TB/s"], out)


def host_text(doc):
    lines = []
    if doc.get("why"):
        lines += [f"Hot launch: {doc['why']}", ""]
    else:
        lines += [table(["a hot launch, without the driver's own", "layers", "median ns", "spread %"],
                        [[r["form"], r["layers"], shown(1e9 * r["seconds"], 0), shown(100 * r["spread"])] if "seconds" in r
                         else [f"{r['form']}: {r['why']}", r["layers"], "-", "-"] for r in doc["hot"]]), ""]
    for r in doc["replays"]:
        if "why" in r:
            lines.append(f"- Replays, {r['form']}: {r['why']}")
        else:
            lines.append(f"- Replays, {r['form']}: {r['replays']} of one graph of {r['layers']} layers, {r['sequences']} sequences up to "
                         f"{r['longest']} keys, other lengths each time; {r['checked']} checked, largest relative error {r['error']:.1e}, "
                         f"{len(r['wrong'])} wrong" + "".join(f"; {w}" for w in r["wrong"][:5]))
    return "\n".join(lines)


def wrong(doc):
    """(case, contender, why) of ours that is wrong, or of fagen's own choice that did not run. A named config need not serve every case."""
    out = []
    for section, rows in doc["sections"].items():
        if section == "host":
            out += [(section, f"replays, {r['form']}", r.get("why") or r["wrong"][0])
                    for r in rows["replays"] if r.get("why") or r["wrong"]]
            continue
        for row in rows:
            out += [(f"{section}: {row['name']}", n, r["wrong"]) for n, r in row["runs"].items() if r["kind"] == "ours" and r.get("wrong")]
            out += [(f"{section}: {row['name']}", n, why) for n, why in row["skipped"].items() if n.startswith("ours")]
    return out


def reasons(rows):
    """Why contenders are missing, each reason once, with the number of its cases."""
    seen = {}
    for row in rows:
        for n, why in [*row["skipped"].items(), *((n, r["wrong"]) for n, r in row["runs"].items() if r.get("wrong"))]:
            seen.setdefault((n.partition(",")[0], why), []).append(n)
    return "\n".join(f"- Without {named(who)}, {len(names)} times: {why}" for (who, why), names in seen.items())


def configs(rows):
    lines = [[row["name"], named(n), r.get("origin", "-"), f"`{r.get('config', '-')}`", f"{r['error']:.1e}"]
             for row in rows for n, r in row["runs"].items() if r["kind"] == "ours"]
    return table(["case", "", "from", "config", "relative error"], lines)


def verdicts(rows):
    return [verdict(rows, n) for n in dict.fromkeys(n for row in rows for n in ours_of(row))]


# The title of a section, its table, and lines below it.
KINDS = {"table": ("The same tensors in every call", dense_table, verdicts),
         "cold": ("Nothing of K and V in the L2", dense_table, verdicts),
         "pages": ("Pages: times what fagen takes without", pages_table, None),
         "ragged": ("Sequences of different lengths", ragged_table, verdicts),
         "host": ("The host's part, and lengths that change in place", host_text, None)}


def section(name, rows, kinds):
    head, made, below = kinds[name]
    out = [f"### {name}: {head}", "", made(rows), ""]
    if isinstance(rows, dict):
        return out
    out += below(rows) + [""] if below else []
    why = reasons(rows)
    return out + ([why, ""] if why else []) + ["<details><summary>Configs and errors</summary>", "", configs(rows), "", "</details>", ""]


def header(doc, what):
    h, p = doc["host"], doc["protocol"]
    peers = "; ".join(f"{named(n)}: {v.get('version') or 'left out: ' + v['missing']}" for n, v in doc["peers"].items())
    clocks = ", ".join(f"{when} {c.get('clocks.sm', '?')} at {c.get('temperature.gpu', '?')} C" for when, c in doc["clocks"].items())
    return (f"{h.get('device')} (driver {h.get('driver')}), PyTorch {h.get('torch')}, {h.get('date')}. {peers}. {what}; graphs of "
            f"at least {1e3 * p['lasts']:g} ms, at most {p['rounds']} rounds in random order, medians; clock {clocks}."
            + "".join(f" named {n}: `{c}`." for n, c in enumerate(p["configs"], 1)))


def markdown(doc, kinds=KINDS, what="bf16, no mask"):
    out = [header(doc, what), ""]
    for name, rows in doc["sections"].items():
        if rows:
            out += section(name, rows, kinds)
    bad = wrong(doc)
    if bad:
        seen = {}
        for case, n, why in bad:
            seen.setdefault((n, why), []).append(case)
        out += ["### Without a right result of fagen", ""]
        out += [f"- {named(n)}: {why} ({'; '.join(cases)})" for (n, why), cases in seen.items()] + [""]
    if doc.get("left"):
        out += [f"Left out, since the time was over: {', '.join(doc['left'])}.", ""]
    out += [f"- Failed: {why}" for why in doc.get("failed", ())] + [""] * bool(doc.get("failed"))
    if doc.get("broken"):
        out += [f"The run ended early: {doc['broken']}", ""]
    if "took" in doc:
        out.append(f"The run took {doc['took']:.0f} s.\n")
    return "\n".join(out)
