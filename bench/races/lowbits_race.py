#!/usr/bin/env python3
"""Few query rows over caches of few bits: what fa_launch() chooses beside 16 bits, beside what another tree chooses, and beside configs.

    python3 bench/races/lowbits_race.py --seed 4001 --count 20 --kv q8_0,q4_0,s8 --rows 9-16 --before old/templates --moved
    python3 bench/races/lowbits_race.py --cells --only 'sq=4' --kv q8_0 --config 'decode_mma:br=16,bk=32,head_warps=2,limbs=1'
    python3 bench/races/lowbits_race.py --list --seed 4001 --count 20       the cells and what is chosen, without a GPU

--cells: the cells of bench/lowbits.py from 134 MB of 16 bits on; else cells are drawn. Calls are CUDA graphs, sampled in rounds, each in an
order that is drawn; a time is the median over the rounds. O is held beside that of 16 bits, which have the numbers that the codes mean:
what differs is named and not timed.
"""
import argparse
import json
import math
import os
import random
import re
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

from common.stats import geomean
from sections.decode_cases import TABLE, Case

APART = 0.02        # of the norm: Q and P in fp16 are some 0.004, a wrong tile far more
CONTEXT = 12        # cells of a context, whose kernels are all loaded
LEAST = 134e6       # bytes of 16 bits of --cells
HELD = (2e7, 6e8)   # bytes of 16 bits of drawn cells
GROUPS = (1, 2, 3, 4, 4, 5, 7, 8, 8, 12, 16)  # query heads to a KV head, of drawn cells
QUERIES = (1, 1, 1, 2, 3, 4, 5, 8)
SCALE_BY = {"s8": 2, "e4m3": 1, "e5m2": 1}  # of tokens, of heads


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cells", action="store_true", help="those of bench/lowbits.py from 134 MB on")
    p.add_argument("--only", default="", metavar="REGEX", help="of names, as --list has them")
    p.add_argument("--seed", type=int, default=4001)
    p.add_argument("--count", type=int, default=20, help="of each format (default 20)")
    p.add_argument("--kv", default="q8_0,q4_0,s8", help="formats (default q8_0,q4_0,s8)")
    p.add_argument("--rows", default="1-16", metavar="FROM-TO", help="query rows of a KV head, drawn (default 1-16)")
    p.add_argument("--before", metavar="DIR|LIBRARY", help="beside it what is chosen with these templates, or by this libfagen_lever.so")
    p.add_argument("--moved", action="store_true", help="those alone that --before chooses otherwise")
    p.add_argument("--config", action="append", default=[], help="may leave tunables out; may be given again")
    p.add_argument("--rank", type=int, default=0, metavar="N", help="the model's N cheapest beside it")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=100, help="of races; a line says for how many cells there was no time (default 100)")
    p.add_argument("--threads", type=int, default=16, help="that compile")
    p.add_argument("--list", action="store_true")
    p.add_argument("-o", "--json")
    o = p.parse_args(argv)
    o.kv = o.kv.split(",")
    ends = re.fullmatch(r"(\d+)-(\d+)", o.rows)
    o.least_rows, o.most_rows = (int(x) for x in ends.groups()) if ends else (1, 0)
    if not any(o.least_rows <= sq * group <= o.most_rows for sq in QUERIES for group in GROUPS):
        p.error(f"--rows: \"{o.rows}\"; accepted: FROM-TO with a product of {sorted(set(QUERIES))} queries and {sorted(set(GROUPS))} heads "
                "to a KV head between the two, such as 1-16")
    if o.moved and not o.before:
        p.error("--moved: there is no --before to hold choices against")
    return o


def draw(rng, o):
    """A cell whose rows of a KV head are as asked."""
    while True:
        d, hkv, group = rng.choice((64, 128)), rng.choice((1, 2, 4, 4, 8, 8, 8, 16)), rng.choice(GROUPS)
        sq = rng.choice(QUERIES)
        if not o.least_rows <= sq * group <= o.most_rows:
            continue
        tokens = math.exp(rng.uniform(*(math.log(x / (4 * hkv * d)) for x in HELD)))
        b = max(1, round(math.exp(rng.uniform(0, math.log(min(128, tokens / 512))))))
        return Case(b, hkv * group, hkv, sq, int(tokens / b), d)


def cells_of(o):
    """[(format, cell)]: the formats in turns, so that a race that ends early has some of each."""
    if o.cells:
        drawn = [[c for c in TABLE if c.bytes() >= LEAST]] * len(o.kv)
    else:
        drawn = []
        for kv in o.kv:
            rng = random.Random(f"{o.seed} {kv}")
            drawn.append([draw(rng, o) for _ in range(o.count)])
    return [(kv, c) for row in zip(*drawn) for kv, c in zip(o.kv, row) if re.search(o.only, f"{kv},{c.name()}")]


def context(fagen, at=None, **given):
    where = {"path" if os.path.isfile(at) else "template_dir": at} if at else {}
    return fagen.Fagen(lever=True, **where, **given)


def problem_of(fa, fagen, kv, cell):
    by = SCALE_BY.get(kv, 0)
    return fa.problem(dtype="bf16", mask="none", d=cell.d, dv=cell.d, b=cell.b, hq=cell.hq, hkv=cell.hkv, sq=cell.sq, sk=cell.sk,
                      kv_dtype=fagen.FORMATS[kv][0], k_scale_by=by, v_scale_by=by)


def choice_of(fa, fagen, kv, cell):
    return fagen.explained(fa.explain(problem=problem_of(fa, fagen, kv, cell)))["config"].split()[0]


def configs_of(fa, fagen, kv, cell, o):
    return list(dict.fromkeys(o.config + (fa.rank(problem_of(fa, fagen, kv, cell), o.rank) if o.rank else [])))


def compiled(fa, fagen, kv, cell, config):
    """The plan of a config, none of what is chosen, or why there is none."""
    try:
        if kv is None:
            return fa.prepare(fa.problem(dtype="bf16", mask="none", d=cell.d, dv=cell.d, b=cell.b, hq=cell.hq, hkv=cell.hkv, sq=cell.sq,
                                         sk=cell.sk))
        problem = problem_of(fa, fagen, kv, cell)
        return fa.prepare(problem) if config is None else fa.plan(problem, fa.pick(problem, config))
    except fagen.Error as e:
        return str(e)


def race(sides, fagen, kv, cell, plans, o):
    """sides: {"ours": context, "before": another}. A row: {"us": {name: time}, ...}."""
    import torch
    from common import graphs
    from sections.lowbits_codes import encoded
    draw = random.Random(cell.name())
    torch.manual_seed(draw.randrange(1 << 30))
    q = torch.randn(cell.b, cell.sq, cell.hq, cell.d, device="cuda", dtype=torch.bfloat16)
    ends = [encoded(kv, torch.randn(cell.b, cell.sk, cell.hkv, cell.d, device="cuda", dtype=torch.bfloat16)) for _ in "kv"]
    out, truth, made, notes, told = torch.empty_like(q), None, {}, {}, {}
    for name, plan in plans.items():
        if isinstance(plan, str):
            notes[name] = plan[:150]
            continue
        fa = sides.get(name, sides["ours"])
        low = {} if name == "16 bits" else {"kv": kv, "k_scale": ends[0][1], "v_scale": ends[1][1]}
        args = fa.args(q, *(x[0] if low else x[2] for x in ends), out, **low)
        fa.give_workspace(args, plan)
        told[name] = plan.config + " " + " ".join(f"{k}={v}" for k, v in plan.told.items()) if plan \
            else fagen.explained(fa.explain(args))["config"].split()[0]

        def run(_, fa=fa, args=args, plan=plan):
            fa.launch(args, plan)
            return out
        got = run(0).float().flatten()
        truth = got.clone() if truth is None else truth
        apart = ((got - truth).norm() / truth.norm()).item()
        if apart <= APART:
            made[name] = graphs.capture(run, lasts=0.7e-3)
        else:
            notes[name] = f"O differs by {apart:.3g} of the norm"
    samples = graphs.race(made, draw, o.rounds)
    return {"kv": kv, "cell": cell.name(), "bytes": cell.bytes(), "configs": told, "notes": notes,
            "us": {n: round(1e6 * statistics.median(s), 2) for n, s in samples.items()}}


def told(row):
    us = row["us"]
    words = [f"{row['kv']} {row['cell']}: 16 bits {us['16 bits']:.2f} us, ours {us['ours']:.2f}, {us['16 bits'] / us['ours']:.3f}"]
    words += [f"{us['ours'] / us['before']:.3f} of the time before"] if "before" in us else []
    best = min((n for n in us if n != "16 bits"), key=us.get)
    words += [f"{us['ours'] / us[best]:.3f} of the fastest, {best}"] if best not in ("ours", "before") else []
    return ", ".join(words) + (f" {row['notes']}" if row["notes"] else "")


def summary(rows, kinds):
    for kv in kinds:
        some = [r["us"] for r in rows if r["kv"] == kv and "ours" in r["us"] and "16 bits" in r["us"]]
        over = [us["16 bits"] / us["ours"] for us in some]
        before = [us["ours"] / us["before"] for us in some if "before" in us]
        if some:
            print(f"{kv}: {len(some)} cells, over 16 bits {statistics.mean(over):.3f} ({min(over):.3f} to {max(over):.3f})"
                  + (f"; {geomean(before):.3f} ({min(before):.3f} to {max(before):.3f}) of the time before" if before else ""))


def main():
    o = parse()
    from common import fagen
    for kv in o.kv:
        if kv not in fagen.FORMATS:
            sys.exit(f"lowbits_race.py: --kv: the format is \"{kv}\"; accepted: {', '.join(fagen.FORMATS)}")
    some = cells_of(o)
    if o.moved or o.list:
        now = context(fagen, device="sim:h200", cache_dir="")
        before = context(fagen, o.before, device="sim:h200", cache_dir="") if o.before else None
        some = [x for x in some if not o.moved or choice_of(now, fagen, *x) != choice_of(before, fagen, *x)]
    if o.list:
        for x in some:
            print(x[0], x[1].name(), choice_of(now, fagen, *x), choice_of(before, fagen, *x) if before else "", *configs_of(now, fagen, *x, o))
        return
    import torch
    from common import machine, tournament
    host = machine.described()
    print(host, flush=True)
    pool = ThreadPoolExecutor(o.threads)
    sides = [{"ours": context(fagen), **({"before": context(fagen, o.before)} if o.before else {})} for _ in range(0, len(some), CONTEXT)]
    made = []
    for i, (kv, cell) in enumerate(some):
        at = sides[i // CONTEXT]
        names = {"16 bits": None, **{n: None for n in at}, **{c: c for c in configs_of(at["ours"], fagen, kv, cell, o)}}
        made.append({n: pool.submit(compiled, at.get(n, at["ours"]), fagen, None if n == "16 bits" else kv, cell, c) for n, c in names.items()})
    tournament.warm_up()
    begun, rows = time.monotonic(), []
    for i, (kv, cell) in enumerate(some):
        if time.monotonic() - begun > o.seconds:
            print("no time for", len(some) - i)
            break
        try:
            with torch.no_grad():
                rows.append(race(sides[i // CONTEXT], fagen, kv, cell, {n: j.result() for n, j in made[i].items()}, o))
        except Exception as e:  # out of memory, say: the other cells go on
            print(kv, cell.name(), type(e).__name__, str(e)[:200], flush=True)
            continue
        print(told(rows[-1]), flush=True)
        torch.cuda.empty_cache()
        if o.json:
            with open(o.json, "w") as f:
                json.dump({**host, "rows": rows}, f)
    summary(rows, o.kv)
    pool.shutdown(cancel_futures=True)
    sys.stdout.flush()
    os._exit(0)  # kernels that still compile are not waited for


if __name__ == "__main__":
    main()
