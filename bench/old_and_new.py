#!/usr/bin/env python3
"""Kernels of before and after, raced in one process: what a change costs.

    git archive 1d24a67 templates | tar -x -C old
    python3 bench/old_and_new.py old/templates --seconds 200 -o race.json          other templates, one library: the same choices
    python3 bench/old_and_new.py old/templates forward decode --new new/templates
    python3 bench/old_and_new.py old/libfagen.so -o race.json                      another library: its kernels and its choices

Each runs the config that its library chooses in fa_launch(). Calls are CUDA graphs, raced in rounds, forward and back; a row is the median
over the rounds of the new time by the old one's of the same round, above 1 where the new kernel is slower.
"""
import argparse
import itertools
import json
import math
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from common import cells


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old", help="the folder of the old templates, or the old library")
    p.add_argument("part", nargs="*", help="forward: the grid main; decode: one to four queries over long keys; backward: gradients")
    p.add_argument("--new", help="likewise of the new; this tree's library and its templates without it")
    p.add_argument("--only", help="cells whose name ends in one of these, as 'd=64 causal s=512,d=96 none s=1024'")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--seconds", type=float, default=240, help="of races; what is left out then is named (default 240)")
    p.add_argument("-o", "--json", help="all samples")
    o = p.parse_args(argv)
    for part in o.part:
        if part not in PARTS:
            p.error(f"the part is \"{part}\"; accepted: {', '.join(PARTS)}")
    return o


def decode_cells():
    return [cells.Cell("decode", "bf16", d, d, b, 32, 8, sq, sk, "causal") for d, sq, (b, sk) in itertools.product(
        (64, 128), (1, 4), ((1, 8192), (1, 131072), (16, 8192), (64, 4096)))]


def backward_cells():
    return [c for c in cells.grid("main") if c.sq in (1024, 4096, 16384)]


PARTS = {"forward": lambda: cells.grid("main"), "decode": decode_cells, "backward": backward_cells}


class Side:
    """One of the two: a context with its templates or its library, and the calls of a cell. A library that is named has no disk cache, so
    that records of this tree's tuner are not its facts."""

    def __init__(self, fagen, at):
        alone = at is not None and not os.path.isdir(at)
        self.fagen = fagen
        self.fa = fagen.Fagen(path=os.path.abspath(at), cache_dir="") if alone else fagen.Fagen(template_dir=at)

    def prepare(self, work):
        """Compiles the kernels of (part, cell)s, sixteen at a time."""
        def one(job):
            part, cell = job
            for p in {part, "forward"}:
                self.fa.prepare(self.problem(cell, p))
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(one, work))

    def problem(self, cell, part):
        fields = {n: getattr(cell, n) for n in ("dtype", "mask", "d", "dv", "b", "hq", "hkv", "sq", "sk")}
        return self.fa.problem(**fields, op=self.fagen.BACKWARD if part == "backward" else self.fagen.FORWARD)

    def call(self, cell, part, tensors):
        import torch
        q, k, v = tensors[:3]
        o = torch.empty(cell.b, cell.sq, cell.hq, cell.dv, device="cuda", dtype=q.dtype)
        lse = torch.empty(cell.b, cell.hq, cell.sq, device="cuda")
        a = self.fa.args(q, k, v, o, self.fagen.MASKS[cell.mask], lse=lse, diagonal=self.fagen.DIAGONALS[cell.diagonal])
        space = self.fa.give_workspace(a)
        outs = [o]
        if part == "backward":
            self.fa.launch(a)
            outs = [torch.empty_like(t) for t in (q, k, v)]
            a = self.fa.gradient_args(q, k, v, o, lse, tensors[3], *outs, mask=self.fagen.MASKS[cell.mask],
                                      diagonal=self.fagen.DIAGONALS[cell.diagonal])
            space = (space, self.fa.give_workspace(a))

        def run(i, keep=(o, lse, space, tensors)):
            self.fa.launch(a)
            return outs
        return run


def race(sides, cell, part, rounds):
    from common import graphs
    import torch
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[cell.dtype]
    shapes = [(cell.sq, cell.hq, cell.d), (cell.sk, cell.hkv, cell.d), (cell.sk, cell.hkv, cell.dv), (cell.sq, cell.hq, cell.dv)]
    tensors = [torch.randn(cell.b, *s, device="cuda", dtype=kind) for s in shapes]
    runs = [s.call(cell, part, tensors) for s in sides]
    apart = max(((x.double() - y.double()).norm() / x.double().norm()).item() for x, y in zip(runs[0](0), runs[1](0)))
    made = [graphs.capture(run, lasts=3e-3) for run in runs]
    samples = [[], []]
    for n in range(rounds + 1):
        for i in ((0, 1), (1, 0))[n % 2]:
            samples[i].append(made[i].sample())
    samples = [s[1:] for s in samples]  # the first round settles the clock
    ratios = [new / old for old, new in zip(*samples)]
    return {"name": cell.name(), "part": part, "seconds": samples, "ratio": statistics.median(ratios), "apart": apart,
            "spread": statistics.median(abs(r - statistics.median(ratios)) for r in ratios)}


def main():
    from common import fagen
    import torch
    from common import tournament
    options = parse()
    sides = [Side(fagen, options.old), Side(fagen, options.new)]
    ends = tuple(options.only.split(",")) if options.only else ("",)
    work = [(part, c) for part in options.part or PARTS for c in PARTS[part]() if c.name().endswith(ends)]

    begun = time.monotonic()
    for side in sides:
        side.prepare(work)
    print(f"{len(work)} cells compiled in {time.monotonic() - begun:.0f} s on {torch.cuda.get_device_name()}", flush=True)
    tournament.warm_up()
    rows, left_out, begun = [], [], time.monotonic()
    for part, cell in work:
        if time.monotonic() - begun > options.seconds:
            left_out.append(cell.name())
            continue
        row = race(sides, cell, part, options.rounds)
        rows.append(row)
        print(f"{part:9}{row['name']:36}{row['seconds'][0][0] * 1e6:11.1f} us  {row['ratio']:.4f} +- {row['spread']:.4f}   apart {row['apart']:.1e}",
              flush=True)
    for part in PARTS:
        some = [r["ratio"] for r in rows if r["part"] == part]
        if some:
            mean = math.exp(sum(map(math.log, some)) / len(some))
            print(f"{part}: {len(some)} cells, geometric mean {mean:.4f}, most {max(some):.4f}, least {min(some):.4f}")
    if left_out:
        print(f"no time for {len(left_out)}: {', '.join(left_out)}")
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows, "left_out": left_out}, f)


if __name__ == "__main__":
    main()
