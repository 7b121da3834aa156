#!/usr/bin/env python3
"""Masks of score programs, old templates beside new: cells of bench/masks.py, or shapes and masks that are drawn.

    git archive 1d24a67 templates | tar -x -C old
    python3 bench/races/drawn_masks.py old/templates --count 24 --seed 7 [--new new/templates] [--masks documents,blocks]
    python3 bench/races/drawn_masks.py old/templates --cells documents,128,4096 tree,128,4096

bf16, as many heads as are 2048 wide together. A drawn shape has 1k to 16k keys, 8k to 32k tokens, and documents, chunks, blocks, branches
of a tree or a prefix of any size. Calls are CUDA graphs of 2 ms in random order, of what either side chooses, kernels before attention
included. A row is the median over the rounds of the new time by the old one's of the same round; results of both are held against fp64. Of
cells also the time over the bound of bench/masks.py. Behind it what the assembler told of a kernel that it made slow: products that run one
after the other decide a race.
"""
import argparse
import math
import os
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

import masks
import scores

DRAWN = ("documents", "chunked", "blocks", "tree", "prefix", "matrix")


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old", help="the folder of the old templates")
    p.add_argument("--new", help="likewise of the new; this tree's without it")
    p.add_argument("--cells", nargs="+", default=[], help="MASK,D,S of bench/masks.py, and no drawn shapes")
    p.add_argument("--count", type=int, default=24, help="drawn shapes")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--masks", default="documents,chunked,blocks,tree", help="that are drawn in turns")
    p.add_argument("--head-dims", default="64,128")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--seconds", type=float, default=120, help="of races; what is left out then is named")
    o = p.parse_args(argv)
    for name in o.masks.split(","):
        if name not in DRAWN:
            p.error(f"the mask is \"{name}\"; accepted: {', '.join(DRAWN)}")
    for text in o.cells:
        part = text.split(",")
        if len(part) != 3 or part[0] not in masks.MASKS or not (part[1] + part[2]).isdigit():
            p.error(f"the cell is \"{text}\"; accepted: MASK,D,S, with {', '.join(masks.MASKS)}")
    return o


def documents(n, most, rng):
    """Numbers of so many documents of any lengths, at most."""
    import torch
    cuts = torch.tensor(sorted(rng.sample(range(1, n), rng.randint(1, most))), device="cuda")
    return (torch.arange(n, device="cuda")[:, None] >= cuts).sum(1).int()


def operands(name, b, h, n, rng):
    """Drawn operands of a mask, and what is told of them."""
    import torch
    if name == "documents":
        rows = [documents(n, rng.choice((4, 12, 24, 40)), rng) for _ in range(b)]
        return [torch.stack(rows)], f"{min(int(r.max()) + 1 for r in rows)} to {max(int(r.max()) + 1 for r in rows)} documents"
    if name == "chunked":
        chunk = rng.choice((128, 192, 256, 300, 512, 700, 1000, 1024, 2048))
        return [chunk], f"chunks of {chunk}"
    if name == "prefix":
        return [torch.tensor([rng.randint(1, n - 1) for _ in range(b)], device="cuda", dtype=torch.int32)], ""
    if name == "blocks":
        share, side = rng.uniform(0.05, 0.5), n // 128
        generator = torch.Generator("cuda").manual_seed(rng.randrange(1 << 30))
        seen = torch.rand(b, h, side, side, device="cuda", generator=generator) < share
        return [(seen | torch.eye(side, device="cuda", dtype=torch.bool)).to(torch.uint8)], f"share {share:.2f}"
    if name == "tree":
        own = rng.choice((32, 64, 96, 128, 200, 256))
        return [masks.bits(masks.tree(n, own)).expand(b)], f"branches of {own}"
    of, i = documents(n, 24, rng), torch.arange(n, device="cuda")
    return [masks.bits((i <= i[:, None]) & (of == of[:, None])).expand(b, h)], ""


def cases(o):
    """(mask, head_dim, keys, sequences, seed of its operands or None) of each."""
    if o.cells:
        for text in o.cells:
            name, d, s = text.split(",")
            yield name, int(d), int(s), max(1, scores.TOKENS // int(s)), None
        return
    rng, names, dims = random.Random(o.seed), o.masks.split(","), [int(x) for x in o.head_dims.split(",")]
    for n in range(o.count):
        name, d = names[n % len(names)], rng.choice(dims)
        s = rng.choice((1024, 1536, 2048, 3000, 4096, 4096, 6144, 8192, 12288, 16384))
        if name in ("blocks", "tree", "matrix"):
            s = s // 128 * 128  # a tree has its words of bits whole
        yield name, d, s, max(1, rng.choice((8192, 16384, 16384, 32768)) // s), rng.randrange(1 << 30)


class Case:
    def __init__(self, name, d, s, b, seed):
        import torch
        self.name, self.d, self.s, self.b, self.h, self.note = name, d, s, b, scores.WIDTH // d, ""
        self.qkv = [torch.randn(b, s, self.h, d, device="cuda", dtype=torch.bfloat16) for _ in "qkv"]
        if seed is None:
            self.values = masks.MASKS[name][0](b, self.h, s)
        else:
            self.values, self.note = operands(name, b, self.h, s, random.Random(seed))

    def call(self, fa, fagen, masked=True):
        """A function that launches, the launch, what it writes."""
        import torch
        out = torch.empty_like(self.qkv[0])
        more = {"score": fa.score(masks.text_of(self.name)), "values": self.values} if masked else {}
        args = fa.args(*self.qkv, out, fagen.NONE, **more)
        space = fa.give_workspace(args)
        fa.launch(args)
        return (lambda _, kept=(space, more): (fa.launch(args), out)[1]), args, out


def race(o, case, sides, fagen, order):
    """The row of a case: {side: seconds of rounds}, what is told of it, whether all is right."""
    from common import graphs
    import torch
    made, right, config, slow = {}, True, "", ""
    for side, fa in sides.items():
        run, args, out = case.call(fa, fagen)
        torch.cuda.synchronize()
        right = right and masks.apart(case.name, case.values, *case.qkv, out) < scores.APART
        told = fagen.explained(fa.explain(args))
        config = told["config"]
        slow += f", {side}: {told['slow']}" if "slow" in told else ""
        made[side] = graphs.capture(run, lasts=2e-3)
    if o.cells:
        made["plain"] = graphs.capture(case.call(sides["new"], fagen, masked=False)[0], lasts=2e-3)
    samples = graphs.race(made, order, o.rounds)
    seconds = {side: statistics.median(x) for side, x in samples.items()}
    ratio = statistics.median(n / old for n, old in zip(samples["new"], samples["old"]))
    text = f"{case.name:10} d={case.d:3} s={case.s:5} b={case.b:2} {case.note:22}"
    text += f" {seconds['old'] * 1e6:8.1f} {seconds['new'] * 1e6:8.1f} us {ratio:.3f}"
    if o.cells:
        share = masks.share_of_tiles(case.name, case.values, case.h, case.s, *masks.tile_of(config))
        bound = seconds["plain"] * share / 0.90 + 8e-6
        text += f", plain {seconds['plain'] * 1e6:.1f}, over the bound {seconds['old'] / bound:.2f} {seconds['new'] / bound:.2f}"
    print(text + slow + ("" if right else "  WRONG"), flush=True)
    return ratio, right


def main():
    o = parse()
    from common import fagen, tournament
    import torch
    sides = {"old": fagen.Fagen(template_dir=o.old), "new": fagen.Fagen(template_dir=o.new)}
    todo = list(cases(o))
    print(torch.cuda.get_device_name(), flush=True)

    def prepare(job):
        (name, d, s, b, seed), fa = job
        q = torch.empty(b, s, scores.WIDTH // d, d, device="cuda", dtype=torch.bfloat16)
        values = masks.MASKS[name][0](b, scores.WIDTH // d, s)
        fa.prepare(fa.problem_of(fa.args(q, q, q, torch.empty_like(q), fagen.NONE, score=fa.score(masks.text_of(name)), values=values)))
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(prepare, [(case, fa) for case in todo for fa in sides.values()]))
    tournament.warm_up()
    ratios, wrong, begun, order = {}, False, time.monotonic(), random.Random(7)
    for n, case in enumerate(todo):
        if time.monotonic() - begun > o.seconds:
            print("left out: " + " ".join(f"{name},{d},{s}" for name, d, s, *_ in todo[n:]))
            break
        ratio, right = race(o, Case(*case), sides, fagen, order)
        ratios.setdefault(case[0], []).append(ratio)
        wrong = wrong or not right
        torch.cuda.empty_cache()
    for name, of in ratios.items():
        mean = math.exp(statistics.mean(map(math.log, of)))
        print(f"{name}: {mean:.3f} of the time in the mean of {len(of)}, {min(of):.3f} to {max(of):.3f}")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
