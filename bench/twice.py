#!/usr/bin/env python3
"""Is the tuner's word good? Tunes the same problems twice from nothing, and some of them exhaustively; then the winners of a problem meet in a race.

    python3 bench/twice.py [--grid default | --problem TEXT ...] [--exhaustive 12] [--limit 400] [--race all|far|none] [--keep FOLDER] [--json FILE]

Each tuning has a cache of its own; compiled kernels are shared, measurements are not. The race is variants.py's, which needs PyTorch: the two or three winners of
a problem, in turns, 25 times. Without it they are held against each other over what both tunings timed in pairs with them, the config that would run
untuned; `far` races only those that are further apart by that than half of what is allowed. Asked: the two winners of every problem are within 1 % of each
other, and the first within 1 % of the best that was found by timing the --limit best by the model (0 = every config that fits, which takes
minutes a problem). Exits with 1 where that does not hold.
"""
import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import model

NEAR = 0.01


def tune(cache, words):
    """What `fagen tune --json` answers."""
    r = subprocess.run([model.command(), "tune", "--json", *words], env={**os.environ, "FAGEN_CACHE_DIR": cache}, stdout=subprocess.PIPE, text=True)
    try:
        document = json.loads(r.stdout)
    except ValueError:
        raise SystemExit(f"fagen tune {' '.join(words)} ended with {r.returncode} and no document")
    return document


def on_each(devices, work, items):
    """[work(item, device), ...], on each device one at a time; where none is named one after the other, with None for the device."""
    free = queue.SimpleQueue()
    for d in devices or [None]:
        free.put(d)

    def one(item):
        device = free.get()
        try:
            return work(item, device)
        finally:
            free.put(device)
    with ThreadPoolExecutor(len(devices) or 1) as pool:
        return list(pool.map(one, items))


def tune_each(cache, lists, devices):
    """One tuning per list of words."""
    return on_each(devices, lambda words, device: tune(cache, words if device is None else [*words, "--device", f"cuda:{device}"]), lists)


def winners(document):
    """{problem: config} of what was measured."""
    return {p["problem"]: p["winner"]["config"] for p in document.get("problems", []) if p.get("winner") and p.get("source") == "measured"}


def share_kernels(source, to):
    """Compiling once is enough: kernels are the same bytes whoever compiles them."""
    kernels = os.path.join(source, "v1", "kernels")
    if os.path.isdir(kernels):
        os.makedirs(os.path.join(to, "v1"), mode=0o700, exist_ok=True)
        shutil.copytree(kernels, os.path.join(to, "v1", "kernels"), dirs_exist_ok=True)


def race(texts, tunings, devices=()):
    """What variants.py measures of the winners of these problems, as a document of fagen tune; a problem with one winner needs none."""
    here = os.path.dirname(os.path.abspath(__file__))
    meeting = {text: list(dict.fromkeys(t[text] for t in tunings if text in t)) for text in texts}

    def one(text, device):
        only = {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
        with tempfile.NamedTemporaryFile(suffix=".json") as f:
            subprocess.run([sys.executable, os.path.join(here, "variants.py"), "--problem", text, "--rounds", "25", "--rows", "3", "--json", f.name,
                            *meeting[text]], env={**os.environ, **only}, stdout=sys.stderr, check=False)
            try:
                results = json.load(f)
            except ValueError:  # it ended without any
                results = []
        return raced_problem(text, results)
    return {"problems": on_each(devices, one, [text for text in texts if len(meeting[text]) > 1])}


def raced_problem(text, results):
    """Of variants.py's results for one problem. What did not run is not there, and then nobody is near it."""
    return {"problem": text, "candidates": [{"config": v["config"], "outcome": "ok", "seconds": statistics.median(v["seconds"])}
                                            for r in results for v in r["variants"] if v.get("seconds") and not v.get("peer")]}


def gains(document):
    """{problem: what the winner gains over the config that would run untuned}, of one and the same config."""
    return {p["problem"]: (p["baseline"]["config"], p["gain"]) for p in document.get("problems", []) if p.get("baseline") and p.get("gain") is not None}


def unraced(*documents):
    """As a race would be, of tunings: what the winner of each takes over the same default."""
    problems = {}
    for d in documents:
        won = winners(d)
        for text, (default, gain) in gains(d).items():
            p = problems.setdefault(text, {"problem": text, "default": default, "candidates": []})
            if p["default"] == default and text in won:
                p["candidates"].append({"config": won[text], "outcome": "ok", "seconds": 1 / (1 + gain)})
    return {"problems": [problems[text] for text in sorted(problems)]}


def verdicts(race, first, second, thorough):
    """A row per problem: its configs, what the second takes over the first, and the first over the thorough search's best; None = not raced."""
    rows = []
    for p in race.get("problems", []):
        took = {c["config"]: c["seconds"] for c in p.get("candidates", []) if c.get("outcome") == "ok" and c.get("seconds")}
        text = p["problem"]
        a, b, e = (took.get(w.get(text)) for w in (first, second, thorough))
        if text not in first or text not in second:
            continue
        rows.append({"problem": text, "first": first[text], "second": second[text], "thorough": thorough.get(text),
                     "apart": 0.0 if first[text] == second[text] else b / a - 1 if a and b else None,
                     "behind": 0.0 if thorough.get(text) == first[text] else a / e - 1 if a and e else None})
    return rows


def is_far(row):
    """Whether a row that no race decided is nearer to what is not allowed than to nothing, or unknown."""
    return any(x is None or abs(x) > NEAR / 2 for x in (row["apart"], row["behind"] if row["thorough"] else 0.0))


def holds(rows, wanted):
    """Whether every pair is near, and of at least `wanted` problems the first is near the thorough search's best, none farther."""
    thorough = [r for r in rows if r["thorough"]]
    return (bool(rows) and all(r["apart"] is not None and abs(r["apart"]) <= NEAR for r in rows) and len(thorough) >= wanted
            and all(r["behind"] is not None and r["behind"] <= NEAR for r in thorough))


def table(rows):
    def percent(x):
        return "-" if x is None else f"{100 * x:+.2f} %"
    lines = [f"{'second/first':>12} {'first/best':>10}  problem"]
    for r in rows:
        lines.append(f"{percent(r['apart']):>12} {percent(r['behind']) if r['thorough'] else '':>10}  {r['problem']}")
        if r["apart"]:
            lines.append(f"{'':25}{r['first']}\n{'':25}{r['second']}")
        if r["thorough"] and r["behind"]:
            lines.append(f"{'':25}{r['thorough']}  (thorough)")
    near = sum(r["apart"] is not None and abs(r["apart"]) <= NEAR for r in rows)
    same = sum(r["first"] == r["second"] for r in rows)
    lines.append(f"{near} of {len(rows)} pairs within 1 %, {same} the same config")
    thorough = [r for r in rows if r["thorough"]]
    if thorough:
        lines.append(f"{sum(r['behind'] is not None and r['behind'] <= NEAR for r in thorough)} of {len(thorough)} within 1 % of the best found thoroughly")
    return "\n".join(lines)


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--grid", default="default", help="of fagen tune (default: default)")
    p.add_argument("--problem", action="append", default=[], help="instead of a grid; repeat for more")
    p.add_argument("--devices", help="of fagen tune: GPUs that share the grid, or all; of a list, as 0,1, each also takes its part of the thorough searches and of the race")
    p.add_argument("--exhaustive", type=int, default=0, metavar="N", help="problems, spread over the grid, that are also searched thoroughly")
    p.add_argument("--limit", type=int, default=400, help="configs of that, best by the model first (default 400; 0 = all)")
    p.add_argument("--race", choices=("all", "far", "none"), default="all", help="the winners that meet: all, those that seem far apart over the same default, none")
    p.add_argument("--keep", help="folder for the caches and documents; what is there from an earlier run is not tuned again")
    p.add_argument("--json", help="write the rows to this file")
    return p.parse_args(argv)


def main():
    o = parse()
    folder = o.keep or tempfile.mkdtemp(prefix="fagen-twice-")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lists = [["--problem", t] for t in o.problem] or [["--grid", o.grid]]
    lists = [[*w, "--devices", o.devices] if o.devices else w for w in lists]

    def done(name, words, sources=(), devices=()):
        path, cache = os.path.join(folder, name + ".json"), os.path.join(folder, name)
        if not os.path.exists(path):
            os.makedirs(cache, mode=0o700, exist_ok=True)
            for source in sources:
                share_kernels(source, cache)
            begun = time.monotonic()
            parts = tune_each(cache, words, devices)
            whole = {"problems": [p for d in parts for p in d.get("problems", [])], "wall": time.monotonic() - begun}
            with open(path, "w") as f:
                json.dump(whole, f)
        with open(path) as f:
            document = json.load(f)
        print(f"{name}: {len(document['problems'])} problems, {document['wall']:.0f} s", flush=True)
        return winners(document), cache, document

    first, a, once = done("first", lists)
    second, b, again = done("second", lists, [a])
    if not first:
        raise SystemExit("nothing was measured: a GPU is needed")
    numbers = o.devices.split(",") if o.devices and o.devices != "all" else []
    step = max(1, len(first) // max(1, o.exhaustive))
    some = list(first)[::step][:o.exhaustive]
    more = ["--strategy", "exhaustive"] + (["--limit", str(o.limit)] if o.limit else ["--all"])
    thorough, e, searched = done("thorough", [["--problem", t, *more] for t in some], [a], numbers) if some else ({}, None, {})
    rows = verdicts(unraced(once, again, searched), first, second, thorough)
    texts = [r["problem"] for r in rows if o.race == "all" or o.race == "far" and is_far(r)]
    met = {r["problem"]: r for r in verdicts(race(texts, (first, second, thorough), numbers), first, second, thorough)}
    rows = [met.get(r["problem"], r) for r in rows]
    print(table(rows))
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)
    if not o.keep:
        shutil.rmtree(folder)
    return 0 if holds(rows, len(some)) else 1


if __name__ == "__main__":
    sys.exit(main())
