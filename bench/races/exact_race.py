#!/usr/bin/env python3
"""Exact fp32, forward: what is chosen and configs that are named, beside PyTorch's memory-efficient kernel.

    python3 bench/races/exact_race.py [--draw 20 --seed 5] [--rounds 7] [--config br=128,bc=128,warps=8] [-o exact.json]
    python3 bench/races/exact_race.py 128,none,2,16,1024 64,causal,1,8,4096 --templates new=FOLDER

A cell is head_dim, mask, batch, heads, length; without cells those below, or --draw random ones. With each --templates NAME=FOLDER also by
kernels of those, file by file in the place of the library's. Kernels of later cells compile meanwhile. Outputs are held against fp64, of
some rows, before anything is timed; a ratio is the median over the rounds of the peer's time over that of the same round.
"""
import argparse
import json
import math
import os
import random
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

from common.alone import alone

FAMILY = "flash_fwd_ffma"
CELLS = [f"{d},{mask},{shape}" for d in (128, 64, 96) for mask in ("none", "causal") for shape in ("2,16,1024", "1,16,4096", "3,10,1500")]
ROWS = 64  # that are held against fp64
APART = 1e-5  # of their norm


def drawn(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        n = int(math.exp(rng.uniform(math.log(200), math.log(6000))))
        h = rng.choice((4, 8, 10, 12, 16, 24, 32))
        yield f"{rng.choice((64, 96, 128))},{rng.choice(('none', 'causal'))},{max(1, rng.choice((1, 2, 4)) * 2000 // n)},{h},{n}"


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cell", nargs="*", help="D,MASK,B,H,N")
    p.add_argument("--draw", type=int, default=0, help="so many random cells")
    p.add_argument("--seed", type=int, default=5, help="of --draw")
    p.add_argument("--config", action="append", default=[], help="words of a config of flash_fwd_ffma, a contender of its own")
    p.add_argument("--templates", action="append", default=[], help="NAME=FOLDER: also kernels of these")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--lock", metavar="FILE", help="times while no other process does that has this file")
    p.add_argument("-o", "--json", help="all samples")
    o = p.parse_args(argv)
    o.sides = {"": None}
    for text in o.templates:
        name, _, folder = text.partition("=")
        if not folder:
            p.error(f"--templates is \"{text}\"; accepted: NAME=FOLDER")
        o.sides[name] = os.path.abspath(folder)
    o.cells = []
    for text in o.cell or (list(drawn(o.draw, o.seed)) if o.draw else CELLS):
        words = text.split(",")
        if len(words) != 5 or words[1] not in ("none", "causal") or not all(w.isdigit() for w in words[:1] + words[2:]):
            p.error(f"the cell is \"{text}\"; accepted: D,MASK,B,H,N with none or causal")
        o.cells.append((int(words[0]), words[1], *map(int, words[2:])))
    return o


def apart(q, k, v, out, causal):
    """The last rows of the first head, as far from those of fp64 as their norm goes."""
    import torch
    n = q.shape[1]
    i, j = torch.arange(max(0, n - ROWS), n, device="cuda")[:, None], torch.arange(n, device="cuda")
    s = q[0, i[:, 0], 0].double() @ k[0, :, 0].double().T / math.sqrt(q.shape[-1])
    right = s.masked_fill((j > i) & causal, -math.inf).softmax(1) @ v[0, :, 0].double()
    return ((out[0, i[:, 0], 0].double() - right).norm() / right.norm()).item()


def compile_ahead(pool, libraries, fagen, cells, configs):
    """Each kernel once, so that a cell finds it."""
    def one(fa, words, d, mask, b, h, n):
        try:
            problem = fa.problem(dtype="fp32", mask=mask, d=d, dv=d, b=b, hq=h, hkv=h, sq=n, sk=n)
            if words:
                fa.plan(problem, fa.pick(problem, f"{FAMILY}:{words}"))
            else:
                fa.prepare(problem)
        except fagen.Error:
            pass  # the cell says why
    for at in cells:
        for fa in libraries.values():
            for words in ["", *configs]:
                pool.submit(one, fa, words, *at)


class Ours:
    """A call of a library: what it chooses, or a config."""

    def __init__(self, fa, fagen, qkv, causal, config):
        import torch
        self.fa, self.out = fa, torch.empty_like(qkv[0])
        self.args = fa.args(*qkv, self.out, fagen.CAUSAL if causal else fagen.NONE)
        self.problem, self.words, self.plan, self.why = fa.problem_of(self.args), config, None, ""
        self.error = fagen.Error

    def prepare(self):
        """Legal on any thread."""
        try:
            if self.words:
                self.plan = self.fa.plan(self.problem, self.fa.pick(self.problem, f"{FAMILY}:{self.words}"))
                self.config = self.plan.config
            else:
                self.fa.prepare(self.problem)
                told = (line.split(None, 1)[1] for line in self.fa.explain(self.args).splitlines() if line.startswith("config"))
                self.config = next(told, "")
        except self.error as e:
            self.why = str(e)[:160]
        return self

    def graph(self):
        from common import graphs
        self.space = self.fa.give_workspace(self.args, self.plan)
        self.made = graphs.capture(lambda _: (self.fa.launch(self.args, self.plan), self.out)[1], lasts=4e-3)
        return self.made


def cell(o, libraries, fagen, d, mask, b, h, n, pool):
    from common import graphs
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    qkv = [torch.randn(b, n, h, d, device="cuda") for _ in "qkv"]
    causal, row = mask == "causal", {"d": d, "mask": mask, "b": b, "h": h, "n": n, "runs": {}}
    asked = [(f"{side} {words}".strip() or "chosen", fa, words) for side, fa in libraries.items() for words in ["", *o.config]]
    ours = {name: Ours(fa, fagen, qkv, causal, words) for name, fa, words in asked}
    list(pool.map(Ours.prepare, ours.values()))
    made, seen = {}, set()
    turned = [x.transpose(1, 2) for x in qkv]
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        def peer(_):
            return torch.nn.functional.scaled_dot_product_attention(*turned, is_causal=causal)
        row["runs"]["peer"] = {"apart": apart(*qkv, peer(0).transpose(1, 2), causal)}  # calls of a graph may share their output's memory
        made["peer"] = graphs.capture(peer, lasts=4e-3)
    for name, x in ours.items():
        if x.why or (x.fa, x.config) in seen:
            row["runs"][name] = {"why": x.why or f"the same as another: {x.config}"}
            continue
        seen.add((x.fa, x.config))
        made[name] = x.graph()
        torch.cuda.synchronize()
        row["runs"][name] = {"config": x.config, "apart": apart(*qkv, x.out, causal)}
    with alone(o.lock):
        samples = graphs.race(made, random.Random(1), o.rounds, least=o.rounds)
    for name, times in samples.items():
        row["runs"][name]["seconds"] = times
        row["runs"][name]["ratio"] = statistics.median(p / t for p, t in zip(samples["peer"], times))
    return row


def told(row):
    head = f"d={row['d']:3} {row['mask']:6} b={row['b']} h={row['h']:2} n={row['n']:5}"
    for name, run in row["runs"].items():
        if "why" in run:
            yield f"{head} {name:28} {run['why']}"
        else:
            wrong = "" if run["apart"] < APART else "  WRONG"
            yield (f"{head} {name:28} {statistics.median(run['seconds']) * 1e6:9.1f} us, {run['ratio']:.3f} of the peer's rate, "
                   f"apart {run['apart']:.1e}{wrong} {run.get('config', '')}")


def main():
    o = parse()
    from common import fagen
    import torch
    from common import tournament
    tournament.warm_up()
    print(torch.cuda.get_device_name(), flush=True)
    libraries, rows = {side: fagen.Fagen(lever=True, template_dir=folder) for side, folder in o.sides.items()}, []
    with ThreadPoolExecutor(16) as ahead, ThreadPoolExecutor(16) as pool:
        compile_ahead(ahead, libraries, fagen, o.cells, o.config)
        for at in o.cells:
            rows.append(cell(o, libraries, fagen, *at, pool))
            print("\n".join(told(rows[-1])), flush=True)
            torch.cuda.empty_cache()
            if o.json:
                with open(o.json, "w") as f:
                    json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, f)
    for name in dict.fromkeys(name for row in rows for name in row["runs"]):
        ratios = [row["runs"][name]["ratio"] for row in rows if "ratio" in row["runs"].get(name, {})]
        if ratios:
            print(f"{name:28} {len(ratios)} cells, over the peer {math.exp(statistics.mean(map(math.log, ratios))):.3f} ({min(ratios):.3f})")
    return any(run.get("apart", 0) >= APART for row in rows for run in row["runs"].values())


if __name__ == "__main__":
    raise SystemExit(main())
