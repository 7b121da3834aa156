"""Medians, spreads, ratios: what is made of the samples of a cell. Knows no GPU."""
import math
import statistics

ACCURATE = 1e-2   # relative error of an output, beyond which it is wrong
NO_WORSE = 2.0    # how much larger than a peer's our error may be


def geomean(values):
    values = list(values)
    return math.exp(statistics.fmean(math.log(v) for v in values)) if values else math.nan


def spread(samples):
    """Median absolute deviation over the median."""
    m = statistics.median(samples)
    return statistics.median(abs(x - m) for x in samples) / m


def rate(cell, name):
    """TFLOP/s of one of a cell's runners, or None where it did not run."""
    r = cell["runs"].get(name)
    if not r or not r.get("seconds"):
        return None
    return r.get("flops", cell["flops"]) / statistics.median(r["seconds"]) / 1e12


def peers(cell):
    """The peers that were timed and whose output was right."""
    return [n for n, r in cell["runs"].items() if r["kind"] == "peer" and r.get("seconds") and not r.get("wrong")]


def paired(cell, name, other):
    """The rate of one runner over another's: the median over the rounds of that within a round, since the clock moves between rounds.
    None where one of the two did not run."""
    a, b = (cell["runs"].get(n) or {} for n in (name, other))
    if not a.get("seconds") or not b.get("seconds"):
        return None
    work = a.get("flops", cell["flops"]) / b.get("flops", cell["flops"])
    return work * statistics.median(y / x for x, y in zip(a["seconds"], b["seconds"]))


def student(freedom):
    """The 97.5 % quantile of Student's t: the expansion of Cornish and Fisher, right to 1e-3 from 8 degrees of freedom on."""
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + sum(p / freedom ** n for n, p in enumerate((
        (z ** 3 + z) / 4, (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96, (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384), 1))


def interval(cell, name, other):
    """The 95 % interval of paired(), of the mean over the rounds of its logarithm; None where one of the two did not run, or only once."""
    a, b = ((cell["runs"].get(n) or {}).get("seconds") or () for n in (name, other))
    logs = [math.log(y / x) for x, y in zip(a, b)]
    if len(logs) < 2:
        return None
    middle, half = statistics.fmean(logs), student(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle - half), math.exp(middle + half)


def best_peer(cell):
    """The one beside whom we are slowest; where we did not run, the fastest."""
    names = peers(cell)
    if not names:
        return None
    return min(names, key=lambda n: paired(cell, "ours", n)) if paired(cell, "ours", names[0]) else max(names, key=lambda n: rate(cell, n))


def ratio(cell, peer=None):
    """Our rate over the peer's, in pairs; of the best peer where none is named. None where one of the two is missing or wrong."""
    peer = peer or best_peer(cell)
    if peer is None or any((cell["runs"].get(n) or {}).get("wrong") for n in ("ours", peer)):
        return None
    return paired(cell, "ours", peer)


def judge(runs):
    """Marks what is wrong in a cell's runs {name: {"kind", "error", "worst"}}: a relative error of 1e-2 or more, a tile that is far
    off, and for ours an error of more than twice that of a right peer. Returns the names marked."""
    for r in runs.values():
        r.pop("wrong", None)
        if not r["error"] < ACCURATE:
            r["wrong"] = f"relative error {r['error']:.2e}, accepted below {ACCURATE:.0e}"
        elif not r["worst"] < 10 * ACCURATE:
            r["wrong"] = f"relative error of its worst tile {r['worst']:.2e}, accepted below {10 * ACCURATE:.0e}"
    right = {n: r["error"] for n, r in runs.items() if r["kind"] == "peer" and "wrong" not in r}
    for r in runs.values():
        if r["kind"] == "ours" and right and "wrong" not in r and "mask" not in r:
            name = min(right, key=right.get)
            if r["error"] > NO_WORSE * right[name]:
                r["wrong"] = f"relative error {r['error']:.2e}, more than {NO_WORSE:g} times the {right[name]:.2e} of {name}"
    return [n for n, r in runs.items() if "wrong" in r]


def rounds_that_fit(left, cost, least, most):
    """How many rounds of `cost` seconds each fit into `left` seconds; left None = no limit."""
    if left is None:
        return most
    return max(least, min(most, int(left / cost))) if cost > 0 else most


def calls_that_fill(lasts, seconds, sets, most=512):
    """How many calls of `seconds` each last `lasts` seconds: a multiple of sets, and beyond one turn of them at most `most`."""
    turns = math.ceil(lasts / max(seconds, 1e-7) / sets)
    return sets * max(1, min(turns, most // sets))


def groups(cells, *keys):
    """{(value of each key): cells} in the order of first appearance."""
    out = {}
    for c in cells:
        out.setdefault(tuple(c[k] for k in keys), []).append(c)
    return out
