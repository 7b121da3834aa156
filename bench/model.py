#!/usr/bin/env python3
"""How well the model foretells a race: of each problem the rank correlation of its times with the measured ones, what its first pick costs
over the winner, and where the winner stands.

    python3 bench/variants.py --grid main --top 48 --json race.json ...            on a GPU
    python3 bench/model.py race.json                                               anywhere
    python3 bench/model.py --family flash_fwd_wgmma --by br,bc race1.json race2.json
Reads what variants.py --json wrote and asks `fagen space` of this build, from the library's folder, PATH or $FAGEN. No GPU, no PyTorch.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys


def command():
    """The fagen that was built here, or that $FAGEN names, or of PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("FAGEN")] + [os.path.join(here, "..", "build", b, "bin", "fagen") for b in ("portable", "release")]
    found = [p for p in places if p and os.path.exists(p)] or [shutil.which("fagen")]
    if not found[0]:
        raise SystemExit("fagen was not found: build the release preset, or set FAGEN")
    return found[0]


def ranks(values):
    """Places from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    out, i = [0.0] * len(values), 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in order[i:j + 1]:
            out[k] = (i + j) / 2 + 1
        i = j + 1
    return out


def correlation(x, y):
    """Spearman's; None where one of the two does not vary."""
    x, y = ranks(x), ranks(y)
    mx, my = statistics.fmean(x), statistics.fmean(y)
    both = math.sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / both if both else None


def measured(documents, family=None, least=1):
    """{problem: {config: seconds}} of the configs that ran at least so often and whose products ptxas did not serialize; of several races
    the geometric mean."""
    times = {}
    for doc in documents:
        for r in doc:
            for v in r["variants"]:
                told = v.get("told", {})
                if len(v.get("seconds") or []) < least or v.get("peer") or told.get("serialized") or told.get("spills"):
                    continue
                if not family or v["config"].split(":")[0] == family:
                    times.setdefault(r["problem"], {}).setdefault(v["config"], []).append(statistics.median(v["seconds"]))
    return {p: {c: math.exp(statistics.fmean(map(math.log, t))) for c, t in configs.items()} for p, configs in times.items()}


def compare(times, modelled):
    """What model and race say of one problem: times {config: seconds}, modelled the same in the model's order."""
    known = [c for c in modelled if c in times]
    if len(known) < 3:
        return None
    best = min(known, key=times.get)
    logs = {c: math.log(modelled[c] / times[c]) for c in known}
    return {"n": len(known), "rho": correlation([modelled[c] for c in known], [times[c] for c in known]), "best": best,
            "regret": times[known[0]] / times[best], "place": known.index(best) + 1, "overall": list(modelled).index(best) + 1,
            "rms": math.sqrt(statistics.fmean(x * x for x in logs.values())), "logs": logs}


def ask(fagen, problem, arch, family):
    """{config: the model's seconds} of the configs that fit, the fastest first."""
    words = [fagen, "space", "--problem", problem, "--arch", arch, "--limit", "1000000", "--json"] + (["--family", family] if family else [])
    out = subprocess.run(words, stdout=subprocess.PIPE, check=False)
    doc = json.loads(out.stdout)
    if out.returncode:
        raise SystemExit(f"{' '.join(words)}: {doc['error']['message']}")
    return {c["recorded"]: c["seconds"] for c in doc["configs"]}


def tunables(config):
    return dict(w.split("=") for w in config.partition(":")[2].split(","))


def residuals(results, names):
    """A line per combination of values: how much longer the model thinks they take than they do, in a problem on average less."""
    groups = {}
    for problem, r in results.items():
        mean = statistics.fmean(r["logs"].values())
        d = problem.split("d=")[1].split(",")[0]
        for c, x in r["logs"].items():
            groups.setdefault((int(d),) + tuple(int(tunables(c).get(n, -1)) for n in names), []).append(x - mean)
    return [f"  d={k[0]} " + " ".join(f"{n}={v}" for n, v in zip(names, k[1:])) + f": {100 * statistics.fmean(g):+.1f} % ({len(g)})"
            for k, g in sorted(groups.items())]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", nargs="+")
    p.add_argument("--arch", default="h200", help="whose model (default h200)")
    p.add_argument("--family", help="only its configs")
    p.add_argument("--least", type=int, default=2, help="samples a config must have (default 2)")
    p.add_argument("--by", help="also the mean error by these tunables, as br,bc")
    o = p.parse_args()
    documents = []
    for name in o.file:
        with open(name) as f:
            documents.append(json.load(f))
    fagen, results = command(), {}
    for problem, times in measured(documents, o.family, o.least).items():
        r = compare(times, ask(fagen, problem, o.arch, o.family))
        if r:
            results[problem] = r
    if not results:
        raise SystemExit("no problem with three timed configs that the space has")
    print(f"{'n':>4} {'rho':>5} {'pick':>6} {'place':>5} {'of all':>6} {'rms':>5}  problem")
    for problem, r in results.items():
        rho = "-" if r["rho"] is None else f"{r['rho']:.2f}"
        print(f"{r['n']:4} {rho:>5} {r['regret']:6.3f} {r['place']:5} {r['overall']:6} {r['rms']:5.2f}  {problem}")
    rhos = [r["rho"] for r in results.values() if r["rho"] is not None]
    regrets = [r["regret"] for r in results.values()]
    errors = [x for r in results.values() for x in r["logs"].values()]
    print(f"{len(results)} problems, {len(errors)} timings: rank correlation {statistics.fmean(rhos):.2f}; the first pick takes "
          f"{statistics.fmean(regrets):.3f} times the winner's time, {max(regrets):.3f} at worst; rms error {math.sqrt(statistics.fmean(x * x for x in errors)):.3f}")
    if o.by:
        print("model over measured, the problem's mean apart:")
        print("\n".join(residuals(results, o.by.split(","))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
