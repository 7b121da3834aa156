#!/usr/bin/env python3
"""Drawn shapes of 8-bit products, off the grid: what fa_launch chooses beside what it chose before, and beside fagen's bf16.

    python3 bench/races/fp8_drawn.py --seed 5101 --count 40 --before old/libfagen_lever.so --list       choices, without a GPU
    python3 bench/races/fp8_drawn.py --seed 5101 --count 40 --before old/libfagen_lever.so -o race.json

--before is the libfagen_lever.so of another build. The configs that it chooses are compiled by this one, so that templates are the same.
Without --all those shapes alone are raced that choose otherwise.
"""
import argparse
import math
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

from common import fagen as script


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--before", required=True, metavar="LIBRARY")
    p.add_argument("--d", default="64,96,128", help="head_dims (default 64,96,128)")
    p.add_argument("--all", action="store_true", help="those that choose as before, too")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=60, help="of races (default 60)")
    p.add_argument("--threads", type=int, default=16, help="that compile")
    p.add_argument("--list", action="store_true")
    p.add_argument("-o", "--output", help="a JSON file, as that of fp8_race.py")
    return p.parse_args(argv)


def draw(o):
    """(d, b, hq, hkv, n, mask): 512 to 32k tokens, 2 to 64 sequences' heads, 1 to 60 GFLOP a head's row of them."""
    made, rng = [], random.Random(o.seed)
    while len(made) < o.count:
        d, group = int(rng.choice(o.d.split(","))), rng.choice((1, 1, 4, 8))
        b, hkv, n = rng.choice((1, 1, 2, 3, 4, 6, 8)), rng.randint(1, 24), int(2 ** rng.uniform(9, 15))
        if 1e11 < 4 * b * hkv * group * n * n * d < 8e12 and b * hkv * group * n <= 1 << 20:
            made.append((d, b, hkv * group, hkv, n, rng.choice(("none", "causal"))))
    return made


def choice_of(fa, shape):
    d, b, hq, hkv, n, mask = shape
    p = fa.problem(dtype=script.abi.FA_E4M3, mask=mask, d=d, dv=d, b=b, hq=hq, hkv=hkv, sq=n, sk=n, o_dtype=script.BF16, align=16)
    return script.explained(fa.explain(problem=p))["config"]


def main(argv=None):
    o = parse(argv)
    now, before = (script.Fagen(lever=True, device="sim:h200", cache_dir="", **({"path": at} if at else {})) for at in (None, o.before))
    some = [(s, choice_of(now, s), choice_of(before, s)) for s in draw(o)]
    moved = [x for x in some if o.all or x[1] != x[2]]
    print(f"{len(moved)} of {len(some)} shapes" + ("" if o.all else " choose otherwise"))
    if o.list:
        for shape, new, old in moved:
            print(*shape, new.removeprefix("fp8_wgmma:"), "before", old.removeprefix("fp8_wgmma:"))
        return
    import fagen
    import fp8_race
    options = fp8_race.parse(["--rounds", str(o.rounds), "--anyway", "--threads", str(o.threads)])
    begun = time.monotonic()

    def compile_ahead(job):
        shape, config = job
        if config is None:
            d, b, hq, hkv, n, mask = shape
            fagen.prepare(fagen.Problem("bfloat16", d, d, causal=mask == "causal", b=b, hq=hq, hkv=hkv, sq=n, sk=n))
        else:
            with fagen.Context("cuda:0") as own:
                fagen.pin(fp8_race.problem(*shape), config=config, device=own)
    jobs = dict.fromkeys((shape, c) for shape, *configs in moved for c in (*configs, None))
    with ThreadPoolExecutor(o.threads) as pool:
        list(pool.map(compile_ahead, jobs))
    print(f"compiled in {time.monotonic() - begun:.0f} s", flush=True)
    begun, out = time.monotonic(), []
    for shape, new, old in moved:
        if time.monotonic() - begun > o.seconds:
            print("no time for", len(moved) - len(out))
            break
        options.config = list(dict.fromkeys((new, old)))
        fp8_race.race(shape, options, None, {None: None}, out)
        us = {v["config"]: sorted(v["seconds"])[len(v["seconds"]) // 2] for v in out[-1]["variants"]}
        out[-1].update(shape=shape, ratio=us[new] / us[old], over_bf16=us["bf16"] / us[new])
        print(f"  {out[-1]['ratio']:.3f} of the time before, {out[-1]['over_bf16']:.3f} of bf16's rate", flush=True)
        if o.output:
            import json
            with open(o.output, "w") as f:
                json.dump(out, f, indent=1)
    for name in ("ratio", "over_bf16"):
        x = [r[name] for r in out]
        if x:
            print(f"{name}: {len(x)} shapes, {math.exp(sum(map(math.log, x)) / len(x)):.3f} ({min(x):.3f} to {max(x):.3f}), "
                  f"{sum(y > 1.05 for y in x)} above 1.05")


if __name__ == "__main__":
    main()
