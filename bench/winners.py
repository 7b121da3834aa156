#!/usr/bin/env python3
"""Rows of runtime/choose/defaults.inc, the winners that ship, from measurements: of `fagen tune --json` or of variants.py --json.

    python3 bench/winners.py race.json                                              the rows
    python3 bench/winners.py --merge runtime/choose/defaults.inc race.json > new.inc       the file with those rows in place of its own
Of several measurements of a problem the fastest counts.
"""
import argparse
import json
import re
import statistics
import sys

ROW = re.compile(r'(DEFAULT(?:_ALONE)?)\("([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\)')


def full(problem):
    """The problem with every field that fa_problem_print writes, in its order."""
    words = problem.split(",")
    f = dict(w.split("=", 1) for w in words[1:])
    kind = words[0]
    d = f["d"]
    dv = f.get("dv", d)
    size = {"bf16": 2, "fp16": 2, "e4m3": 1, "e5m2": 1}.get(kind, 4)
    align = f.get("align") or str(next(a for a in (16, 8, 4, 2) if int(d) * size % a == 0 and int(dv) * size % a == 0))
    o = f.get("o", {2: kind, 1: "bf16"}.get(size, "fp32"))
    head = f"{kind},d={d},dv={dv},mask={f.get('mask', 'none')},o={o},align={align}"
    if f.get("op") == "backward":
        f.setdefault("grad", kind)
    return head + "".join(f",{n}={f[n]}" for n in ("op", "features", "page", "b", "hq", "hkv", "sq", "sk", "window", "grad") if n in f)


def read(documents):
    """{problem: (seconds, config)} of the fastest config that ran."""
    best = {}

    def add(problem, seconds, config):
        key = full(problem)
        if seconds and (key not in best or seconds < best[key][0]):
            best[key] = (seconds, config)
    for doc in documents:
        if isinstance(doc, dict):
            for p in doc.get("problems", []):
                if p["source"] == "measured" and p["winner"]:
                    add(p["problem"], p["winner"]["seconds"], p["winner"].get("recorded", p["winner"]["config"]))
            continue
        for r in doc:
            for v in r["variants"]:
                if v.get("seconds") and not v.get("peer"):
                    add(r["problem"], statistics.median(v["seconds"]), v["config"])
    return best


def row(chip, problem, config, word="DEFAULT"):
    return f'{word}("{chip}", "{problem}",\n        "{config}")'


def merge(text, chip, best):
    """The file's text with the rows of `best` in place of those of the same chip and problem, new ones at the end."""
    left = dict(best)

    def replace(found):
        if found[2] == chip and found[3] in left:
            return row(chip, found[3], left.pop(found[3])[1], found[1])
        return found[0]
    text = ROW.sub(replace, text).rstrip("\n")
    return "\n".join([text] + [row(chip, p, config) for p, (_, config) in left.items()]) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", nargs="+")
    p.add_argument("--chip", default="NVIDIA H200", help="whose winners they are (default NVIDIA H200)")
    p.add_argument("--merge", metavar="FILE", help="runtime/choose/defaults.inc")
    o = p.parse_args()
    documents = []
    for name in o.file:
        try:
            with open(name) as f:
                documents.append(json.load(f))
        except ValueError as e:
            print(f"{name} is left out: {e}", file=sys.stderr)
    best = read(documents)
    if o.merge:
        with open(o.merge) as f:
            sys.stdout.write(merge(f.read(), o.chip, best))
    else:
        print("\n".join(row(o.chip, problem, config) for problem, (_, config) in best.items()))
    return 0 if best else 1


if __name__ == "__main__":
    sys.exit(main())
