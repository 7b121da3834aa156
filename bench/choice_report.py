#!/usr/bin/env python3
"""What bench/choice.py raced, beside the peers: how fast the choice and the best kernel are, by classes of shapes.

    python3 bench/choice_report.py h100.json
    python3 bench/choice_report.py --under 0.95 h100.json      and the shapes whose best kernel is slower than that

A ratio is the best peer's time over ours, above 1 where fagen is faster; means are geometric. The first config of a shape is what is chosen.
Of what choice.py --lent raced: the time with another workspace, a lent one or none over that with the call's own, of the shapes whose
kernel takes one.
Needs no GPU.
"""
import argparse
import json
import math
import statistics

from common import cells


LENT = 1.02  # of the time with a workspace: what a launch without one may take
# Whose workspace beside which. "none": of a context that lends none.
BESIDE = {"another": "own", "lent": "own", "lent singly": "own singly", "none": "own"}
ROWS = ((1, 16), (17, 64), (65, 128), (129, 256))


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("recording", nargs="+")
    p.add_argument("--under", type=float, metavar="RATIO", help="list the shapes whose best kernel is under it")
    return p.parse_args(argv)


def kind_of(c):
    """Classes of shapes: rows of a KV group together over keys, lengths that differ, lengths that do not."""
    rows = c.sq * (c.hq // c.hkv)
    if c.sq == c.sk:
        return "sq = sk, groups" if c.hq != c.hkv else "sq = sk"
    for least, most in ROWS:
        if c.sq < c.sk and rows <= most:
            return f"{least} to {most} rows of a KV group"
    return "above 256 rows of a KV group" if c.sq < c.sk else "sq > sk"


def order_of(kind):
    """Classes by their rows, then the others."""
    return (0, int(kind.split()[0])) if kind[0].isdigit() else (1, kind)


class Shape:
    def __init__(self, entry):
        self.cell, self.problem = cells.parse(entry["problem"]), entry["problem"]
        at = {v["workspace"]: statistics.median(v["seconds"]) for v in entry["variants"] if "seconds" in v and "workspace" in v}
        self.beside = {name: at[name] / at[own] for name, own in BESIDE.items() if name in at}
        self.takes = any(v.get("bytes") for v in entry["variants"])  # a workspace
        runs = [(v.get("config"), v.get("peer"), statistics.median(v["seconds"])) for v in entry["variants"]
                if "seconds" in v and v.get("workspace", "own") == "own"]
        configs = [v["config"] for v in entry["variants"] if "config" in v]
        ours = {c: t for c, _, t in runs if c}
        peers = {p: t for _, p, t in runs if p}
        self.best = min(ours, key=ours.get) if ours else None
        self.peer = min(peers, key=peers.get) if peers else None
        self.seconds, self.peer_seconds = ours.get(self.best), peers.get(self.peer)
        self.chosen = ours.get(entry.get("chosen", configs[0] if configs else None))


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def row(name, shapes):
    best = [s.peer_seconds / s.seconds for s in shapes]
    chosen = [s.peer_seconds / s.chosen for s in shapes if s.chosen]
    regret = sorted(s.chosen / s.seconds - 1 for s in shapes if s.chosen)
    print(f"{name:32}{len(shapes):4}   chosen {mean(chosen):5.2f} ({min(chosen):4.2f})   best {mean(best):5.2f} ({min(best):4.2f})"
          f"   behind its best {100 * statistics.mean(regret):4.1f} %, {100 * regret[math.ceil(0.9 * len(regret)) - 1]:4.1f} %, "
          f"{100 * regret[-1]:4.1f} %")


def beside_own(name, shapes):
    if not shapes:
        return
    worst = max(shapes, key=lambda s: s.beside[name])
    print(f"{len(shapes)} shapes, workspace {name}: {mean([s.beside[name] for s in shapes]):.3f} of the time with their own in the mean, "
          f"{worst.beside[name]:.3f} at the most ({worst.problem}), {sum(s.beside[name] > LENT for s in shapes)} above {LENT}")


def main():
    o, shapes = parse(), []
    for path in o.recording:
        with open(path) as f:
            shapes += [Shape(entry) for entry in json.load(f)]
    whole = [s for s in shapes if s.best and s.peer and s.chosen]
    for name in BESIDE:
        beside_own(name, [s for s in shapes if s.takes and name in s.beside])
    shapes = [s for s in shapes if not s.beside]
    if shapes:
        print("ratio to the best peer, geometric mean (least); regret: mean, 90th percentile, most")
    for name in sorted({kind_of(s.cell) for s in whole}, key=order_of):
        row(name, [s for s in whole if kind_of(s.cell) == name])
    many = [s for s in whole if s.cell.sq < s.cell.sk and s.cell.sq * (s.cell.hq // s.cell.hkv) > 64]
    if many:
        row("all above 64 rows", many)
    if whole:
        row("all", whole)
    if len(whole) < len(shapes):
        print(f"{len(shapes) - len(whole)} shapes without a peer, a config or the choice among them")
    for s in sorted((s for s in whole if o.under and s.peer_seconds / s.seconds < o.under), key=lambda s: s.peer_seconds / s.seconds):
        print(f"{s.peer_seconds / s.seconds:5.2f}  {s.problem}\n       {s.best}\n       {s.seconds * 1e6:.1f} us, {s.peer} {s.peer_seconds * 1e6:.1f}")


if __name__ == "__main__":
    main()
