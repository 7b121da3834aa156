#!/usr/bin/env python3
"""Configs and templates of score programs, each raced with plain causal attention: what a changed kernel gains.

    python3 bench/races/score_race.py relative,128,16384 alibi,64,16384 --templates sums=other/templates [--rounds 6] [-o race.json]
    python3 bench/races/score_race.py relative,128,16384,flash_fwd_wgmma:br=192,...

A cell is a program of bench/scores.py, head_dim, length and, where it is named, a config; else the one that is chosen. With each
--templates NAME=FOLDER also by kernels of those, file by file in the place of the library's. Plain attention is always the library's own.
Results are held against fp64 before anything is timed. A share is as of bench/scores.py.
"""
import argparse
import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

import scores


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cell", nargs="+", help="PROGRAM,D,S or PROGRAM,D,S,CONFIG")
    p.add_argument("--templates", action="append", default=[], help="NAME=FOLDER: also kernels of these")
    p.add_argument("--cap", type=float, default=scores.CAP, help="of softcaps (default %(default)s)")
    p.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16"))
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--threads", type=int, default=16, help="that compile")
    p.add_argument("--seconds", type=float, default=150, help="of all; cells that are left out then are named")
    p.add_argument("-o", "--json", help="all samples")
    o = p.parse_args(argv)
    scores.CAP = o.cap
    o.jobs, o.sides = [], {"": None}
    for text in o.templates:
        name, _, folder = text.partition("=")
        if not folder:
            p.error(f"--templates is \"{text}\"; accepted: NAME=FOLDER")
        o.sides[name] = os.path.abspath(folder)
    for text in o.cell:
        name, d, s, config = (text.split(",", 3) + [""] * 3)[:4]
        if name not in scores.PROGRAMS or not (d + s).isdigit():
            p.error(f"the cell is \"{text}\"; accepted: PROGRAM,D,S[,CONFIG], with {', '.join(scores.PROGRAMS)}")
        o.jobs += [{"program": name, "d": int(d), "s": int(s), "config": config, "side": side} for side in o.sides]
    return o


class Cell:
    """Tensors of a head_dim and length, the plain call, and what programs read."""

    def __init__(self, fa, fagen, d, s, dtype="bfloat16"):
        import torch
        self.fagen, self.d, self.s, self.h, self.b = fagen, d, s, scores.WIDTH // d, max(1, scores.TOKENS // s)
        self.qkv = [torch.randn(self.b, s, self.h, d, device="cuda", dtype=getattr(torch, dtype)) for _ in "qkv"]
        self.operands = {}
        args, out = self.args(fa)
        self.space = fa.give_workspace(args)
        self.plain = lambda _: (fa.launch(args), out)[1]

    def values(self, program):
        if program not in self.operands:
            own = scores.PROGRAMS[program][0](self.h, self.s)
            self.operands[program] = [x.expand(self.b, *x.shape[1:]) if hasattr(x, "dim") and x.dim() == 4 else x for x in own]
        return self.operands[program]

    def args(self, fa, program=None):
        import torch
        out = torch.empty_like(self.qkv[0])
        more = {"score": fa.score(scores.text_of(program)), "values": self.values(program)} if program else {}
        return fa.args(*self.qkv, out, self.fagen.CAUSAL, **more), out


def prepared(job, cell, fa):
    """The kernel of a job: its plan, or None for what is chosen. A config that cannot be is told in `why`."""
    try:
        job["args"], job["out"] = cell.args(fa, job["program"])
        problem = fa.problem_of(job["args"])
        if not job["config"]:
            fa.prepare(problem)
            return None
        return fa.plan(problem, fa.pick(problem, job["config"]))
    except cell.fagen.Error as e:
        job["why"] = str(e)[:200]


def run(job, cell, fa, plan, plain, rounds):
    from common import graphs
    import torch
    args, out = job.pop("args"), job.pop("out")
    space = fa.give_workspace(args, plan)
    fa.launch(args, plan)
    torch.cuda.synchronize()
    job["apart"] = scores.apart(job["program"], cell.values(job["program"]), *cell.qkv, out)
    made = graphs.capture(lambda _: (fa.launch(args, plan), out, space)[1], lasts=4e-3)
    samples = scores.race({"plain": plain, "own": made}, ["plain", "own"], rounds)
    shares = [p / t for p, t in zip(samples["plain"], samples["own"])]
    job["share"], job["seconds"], job["plain"] = statistics.median(shares), samples["own"], samples["plain"]
    job["spread"] = statistics.median(abs(x - job["share"]) for x in shares)


def told(job, o):
    name = f"{job['program']:12} d={job['d']:3} s={job['s']:5} {job['side'] or 'own':8}"
    if "why" in job:
        return f"{name} {job['why']}"
    name += "" if o.cap == 50 and o.dtype == "bfloat16" else f" cap {o.cap:g} {o.dtype}"
    wrong = "" if job["apart"] < scores.APART else " WRONG"
    return (f"{name} {job['share']:.4f} +- {job['spread']:.4f} {statistics.median(job['seconds']) * 1e6:8.1f} us, apart {job['apart']:.1e}"
            f"{wrong} {job['config'] or 'chosen'}")


def main():
    o = parse()
    from common import fagen
    from common import graphs
    import torch
    from common import tournament
    begun = time.monotonic()
    tournament.warm_up()
    print(torch.cuda.get_device_name(), flush=True)
    named = any(job["config"] for job in o.jobs)
    libraries = {side: fagen.Fagen(lever=named, template_dir=folder) for side, folder in o.sides.items()}
    for d, s in dict.fromkeys((job["d"], job["s"]) for job in o.jobs):
        jobs = [job for job in o.jobs if (job["d"], job["s"]) == (d, s)]
        if time.monotonic() - begun > o.seconds:
            print(f"left out: d={d} s={s}")
            continue
        cell = Cell(libraries[""], fagen, d, s, o.dtype)
        for job in jobs:
            cell.values(job["program"])
        with ThreadPoolExecutor(o.threads) as pool:
            plans = list(pool.map(lambda job, cell=cell: prepared(job, cell, libraries[job["side"]]), jobs))
        plain = graphs.capture(cell.plain, lasts=4e-3)
        for job, plan in zip(jobs, plans):
            if "why" not in job:
                run(job, cell, libraries[job["side"]], plan, plain, o.rounds)
            print(told(job, o), flush=True)
        torch.cuda.empty_cache()
        if o.json:
            with open(o.json, "w") as f:
                rows = [{k: v for k, v in job.items() if k not in ("args", "out")} for job in o.jobs]
                json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, f)
    return any("apart" in job and not job["apart"] < scores.APART for job in o.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
