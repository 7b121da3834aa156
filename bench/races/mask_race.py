#!/usr/bin/env python3
"""Configs and templates for masks of score programs, raced: what the choice leaves, and what a changed kernel gains.

    python3 bench/races/mask_race.py documents,128,4096 blocks,64,16384 --top 12 [--file configs.txt] [--templates order=../other/templates]
                               [--backward] [--rounds 4] [--seconds 60] [-o race.json]

A cell is a mask of bench/masks.py, head_dim and length, in bf16 with heads that are 2048 wide together and 16,384 tokens. Of each: what
is chosen, configs of a file, a line each, and as many as the model ranks first; with each --templates NAME=FOLDER also kernels of those.
Calls are CUDA graphs, sampled in turns, forward and back, the kernel that makes tables included; what is 1.3 times the best after the
first round leaves. The plain call is in the race, and the bound is that of bench/masks.py, by each config's own tiles. Each result is
held against fp64. --backward: the gradients alone, and configs of theirs.
"""
import argparse
import json
import os
import re
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

import masks
import scores

KEEP = 1.3


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cell", nargs="+", help="MASK,D,S")
    p.add_argument("--file", help="configs, a line each; what stands before a : is the cells they are for, as documents,128 or nothing")
    p.add_argument("--top", type=int, default=0, help="configs that the model ranks first")
    p.add_argument("--templates", action="append", default=[], help="NAME=FOLDER: the same configs from other templates")
    p.add_argument("--backward", action="store_true", help="gradients of Q, K and V")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--threads", type=int, default=32, help="that compile")
    p.add_argument("--seconds", type=float, default=200, help="of all; cells that are left out then are named")
    p.add_argument("--rows", type=int, default=14, help="that are printed of a cell")
    p.add_argument("-o", "--json", help="all samples")
    o = p.parse_args(argv)
    o.cells = []
    for text in o.cell:
        part = text.split(",")
        if len(part) != 3 or part[0] not in masks.MASKS or not (part[1] + part[2]).isdigit():
            p.error(f"the cell is \"{text}\"; accepted: MASK,D,S, with {', '.join(masks.MASKS)}")
        o.cells.append((part[0], int(part[1]), int(part[2])))
    o.sides = {"": None}
    for text in o.templates:
        name, _, folder = text.partition("=")
        if not folder:
            p.error(f"--templates is \"{text}\"; accepted: NAME=FOLDER")
        o.sides[name] = folder
    return o


def configs_of(o, cell):
    """Of the file those that are for the cell."""
    if not o.file:
        return []
    out, name = [], ",".join(map(str, cell))
    with open(o.file) as f:
        for line in f:
            line = line.split("#")[0].strip()
            lead, colon, config = line.partition(": ")
            if line and (not colon or name.startswith(lead)):
                out.append(config if colon else line)
    return out


class Cell:
    """Tensors of a cell, and its calls by each side's library."""

    def __init__(self, name, d, s, backward=False):
        import torch
        self.backward = backward
        self.name, self.d, self.s, self.h, self.b = name, d, s, scores.WIDTH // d, max(1, scores.TOKENS // s)
        self.qkv = [torch.randn(self.b, masks.queries_of(name, s) if of == "q" else s, self.h, d, device="cuda", dtype=torch.bfloat16)
                    for of in "qkv"]
        self.grad_out = torch.randn_like(self.qkv[0]) if backward else None
        self.values = masks.MASKS[name][0](self.b, self.h, s)

    def args(self, fa, fagen, masked=True):
        """The launch, what it writes and what has to live as long: of gradients with a forward's results, which runs here."""
        import torch
        q, k, v = self.qkv
        out = torch.empty_like(q)
        more = {"score": fa.score(masks.text_of(self.name)), "values": self.values} if masked else {}
        if not self.backward:
            return fa.args(q, k, v, out, fagen.NONE, **more), out, more
        lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], device="cuda")
        forward = fa.args(q, k, v, out, fagen.NONE, lse=lse, **more)
        space = fa.give_workspace(forward)
        fa.launch(forward)
        torch.cuda.synchronize()
        del space
        written = tuple(torch.empty_like(t) for t in self.qkv)
        args = fa.gradient_args(q, k, v, out, lse, self.grad_out, *written, mask=fagen.NONE, **more)
        return args, (out, lse, *written), more

    def apart(self, made):
        """How far what a launch has written is from fp64."""
        if self.backward:
            return masks.gradients_apart(self.name, self.values, *self.qkv, self.grad_out, made)
        return masks.apart(self.name, self.values, *self.qkv, made)


def contenders(o, at, cell, libraries, fagen):
    """[(name, function that makes the plan, library, args, output)] of a cell."""
    out, chosen = [], None
    for side, fa in libraries.items():
        args, o_tensor, kept = cell.args(fa, fagen)
        problem = fa.problem_of(args)
        if chosen is None:
            chosen = next(line.split(None, 1)[1] for line in fa.explain(problem=problem).splitlines() if line.startswith("config"))
            texts = [("chosen", chosen)] + [(text, text) for text in configs_of(o, at)]
            texts += [(f"model {n}", text) for n, text in enumerate(fa.rank(problem, o.top))] if o.top else []
        seen = set()
        for label, text in texts:
            try:
                text = fa.pick(problem, text)
            except fagen.Error as e:
                print(f"   {side}@{label}: {str(e)[:160]}", flush=True)
                continue
            if text not in seen:
                out.append({"side": side, "label": label, "config": text, "fa": fa, "args": args, "out": o_tensor, "kept": kept,
                            "problem": problem})
            seen.add(text)
    return out


def compiled(job):
    try:
        job["plan"] = job["fa"].plan(job["problem"], job["config"])
    except Exception as e:  # of one config
        job["why"] = str(e)[:200]
    return job


def race(o, cell, plain, jobs, rounds):
    """Seconds of each job and of the plain call."""
    from common import graphs
    made = {-1: graphs.capture(plain, lasts=3e-3)}
    for n, job in enumerate(jobs):
        fa, args, plan = job["fa"], job["args"], job["plan"]
        job["space"] = fa.give_workspace(args, plan)
        made[n] = graphs.capture(lambda _, fa=fa, args=args, plan=plan, out=job["out"]: (fa.launch(args, plan), out)[1], lasts=3e-3)
    first = {n: min(g.sample() for _ in range(2)) for n, g in made.items()}
    best = min(t for n, t in first.items() if n >= 0)
    names = [n for n in made if n < 0 or first[n] < KEEP * best]
    return scores.race(made, names, rounds), first


def run_cell(o, at, libraries, fagen):
    import torch
    cell = Cell(*at, o.backward)
    fa = libraries[""]
    args, out, _ = cell.args(fa, fagen, masked=False)
    space = fa.give_workspace(args)
    fa.launch(args)
    jobs = contenders(o, at, cell, libraries, fagen)
    begun = time.monotonic()
    with ThreadPoolExecutor(o.threads) as pool:
        jobs = list(pool.map(compiled, jobs))
    took, right = time.monotonic() - begun, []
    for job in jobs:
        if "why" not in job:
            job["space"] = job["fa"].give_workspace(job["args"], job["plan"])
            try:
                job["fa"].launch(job["args"], job["plan"])
                torch.cuda.synchronize()
            except fagen.Error as e:
                job["why"] = str(e)[:200]
        if "why" in job:
            print(f"   {job['side']}@{job['label']}: {job['why']}", flush=True)
            continue
        job["apart"] = cell.apart(job["out"])
        right.append(job)
    samples, first = race(o, cell, lambda _: (fa.launch(args), out)[1], right, o.rounds)
    del space
    plain, rows, shares = statistics.median(samples[-1]), [], {}
    for n, job in enumerate(right):
        tile = masks.tile_of(job["config"])
        if tile not in shares:
            shares[tile] = masks.share_of_tiles(cell.name, cell.values, cell.h, cell.s, *tile)
        seconds = samples.get(n, [first[n]])
        bound = plain * shares[tile] / 0.90 + 8e-6
        rows.append({"mask": cell.name, "d": cell.d, "s": cell.s, "templates": job["side"], "label": job["label"], "config": job["config"],
                     "told": job["plan"].told, "apart": job["apart"], "seconds": seconds, "tiles": shares[tile], "plain": plain,
                     "bound": bound, "of bound": statistics.median(seconds) / bound})
    rows.sort(key=lambda r: statistics.median(r["seconds"]))
    print(f"--- {cell.name} d={cell.d} s={cell.s}: plain {plain * 1e6:.1f} us, {len(jobs)} compiled in {took:.0f} s", flush=True)
    for n, r in enumerate(rows):
        if n < o.rows or r["label"] == "chosen":
            wrong = "" if r["apart"] < scores.APART else "  WRONG"
            print(f"{statistics.median(r['seconds']) * 1e6:8.1f} us {r['of bound']:5.2f} of {r['bound'] * 1e6:7.1f}  {r['told']} ",
                  f"{r['templates']}@{r['label']} {short(r['config'])}{wrong}", flush=True)
    return rows


def short(config):
    """The tunables of a config that say most."""
    keys = ("br", "ctas", "schedule", "bc", "stages_k", "q_bufs", "grid", "ahead", "sections", "o_path", "exp",
            "twins", "held", "stages", "dq", "ds_bufs", "q_br")
    found = dict(part.split("=") for part in config.split(":", 1)[1].split(","))
    return ",".join(f"{k}={found[k]}" for k in keys if k in found)


def main():
    o = parse()
    from common import fagen
    import torch
    from common import tournament
    libraries = {name: fagen.Fagen(lever=True, template_dir=folder) for name, folder in o.sides.items()}
    tournament.warm_up()
    print(torch.cuda.get_device_name(), flush=True)
    rows, left, begun = [], [], time.monotonic()
    for at in o.cells:
        if time.monotonic() - begun > o.seconds:
            left.append(",".join(map(str, at)))
            continue
        rows += run_cell(o, at, libraries, fagen)
        torch.cuda.empty_cache()
        if o.json:
            with open(o.json, "w") as f:
                json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, f)
    if left:
        print("left out: " + " ".join(left))
    return any(not row["apart"] < scores.APART for row in rows)


if __name__ == "__main__":
    raise SystemExit(main())
