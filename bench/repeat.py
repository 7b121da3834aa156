#!/usr/bin/env python3
"""The same launch, many times: are O and LSE the same bits each time? A race or a missing wait shows as a difference sooner or later. Then
a chain of launches, each with the O of the one before as its Q: does it end in the same bits when nobody waits between them, and as a graph?

    python3 bench/repeat.py                                    20 random problems and configs, 200 launches of each
    python3 bench/repeat.py --family flash_fwd_wgmma --kernels 40 --seed 7
    python3 bench/repeat.py --problem 128,causal,4096 --config 'flash_fwd_mma:br=128,bc=64,warps=4'
"""
import argparse
import random
import sys
import time

from common import cells


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kernels", type=int, default=20)
    p.add_argument("--repeats", type=int, default=200)
    p.add_argument("--chains", type=int, default=10, help="chains of 16 launches, and as many replays of one as a graph (default 10)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--family", help="only configs of this family (default: what fa_launch chooses for every third, else any that fits)")
    p.add_argument("--problem", action="append", default=[], help="instead of random ones")
    p.add_argument("--config", help="instead of random ones")
    p.add_argument("--seconds", type=float, help="no new problem is begun after this time")
    return p.parse_args(argv)


def random_cell(rng):
    d = rng.choice([64, 64, 128, 128, 256, 96, 192] + [8 * rng.randint(2, 32)])
    hkv = rng.choice([1, 2, 4, 8])
    hq = hkv * rng.choice([1, 1, 2, 4])
    sq = rng.choice([rng.randint(1, 300), rng.randint(300, 4096), 128 * rng.randint(1, 32)])
    sk = rng.choice([sq, sq, rng.randint(1, 4096)])
    mask = rng.choice(["none", "causal", "causal", "window"])
    left, right = (rng.randint(0, 1500), rng.choice([0, 0, rng.randint(0, 200)])) if mask == "window" else (-1, -1)
    return cells.Cell("random", rng.choice(["bf16", "fp16"]), d, d, rng.randint(1, 4), hq, hkv, sq, sk, mask, left, right,
                      diagonal=rng.choice(["bottom-right", "top-left"]))


def config_of(fa, fagen, problem, options, rng, n):
    """A config's text, or None for what fa_launch chooses."""
    if options.config:
        return fa.pick(problem, options.config)
    if not options.family and n % 3 == 0:
        return None
    fitting = fa.rank(problem, 0, options.family)
    return rng.choice(fitting[:max(40, len(fitting) // 4)])  # the better part of them, by the model


def chain(fa, fagen, cell, plan, args, q, o, chains):
    """Chains that do not end in the bits of the one in which every launch has ended before the next begins."""
    import torch
    first, other = q.clone(), o
    back = type(args).from_buffer_copy(args)
    args.q.ptr, back.q.ptr, back.o.ptr = first.data_ptr(), other.data_ptr(), first.data_ptr()

    def links(wait=False):
        for n in range(16):
            fa.launch(back if n % 2 else args, plan)
            if wait:
                torch.cuda.synchronize()

    def end(run, *more):
        first.copy_(q)
        run(*more)
        return first.view(torch.int16).clone()
    whole = end(links, True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        links()
    return sum((end(links) != whole).any().item() + (end(graph.replay) != whole).any().item() for _ in range(chains))


def repeat(fa, fagen, cell, config, repeats, chains):
    """(launches whose O or LSE differs from the first's, or None where the first has NaN; chains that do)."""
    import torch
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[cell.dtype]
    q, k, v = (torch.randn(cell.b, s, h, d, device="cuda", dtype=kind) for s, h, d in (
        (cell.sq, cell.hq, cell.d), (cell.sk, cell.hkv, cell.d), (cell.sk, cell.hkv, cell.dv)))
    o = torch.empty(cell.b, cell.sq, cell.hq, cell.dv, device="cuda", dtype=kind)
    lse = torch.empty(cell.b, cell.hq, cell.sq, device="cuda")
    args = fa.args(q, k, v, o, fagen.MASKS[cell.mask], lse, window=(cell.left, cell.right), diagonal=fagen.DIAGONALS[cell.diagonal])
    problem = fa.problem(**{n: getattr(cell, n) for n in ("dtype", "mask", "d", "dv", "b", "hq", "hkv", "sq", "sk")})
    plan = fa.plan(problem, config) if config else None
    space = fa.give_workspace(args, plan)
    first, differ = None, torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(repeats):
        o.fill_(float("nan"))
        lse.fill_(float("nan"))
        fa.launch(args, plan)
        bits = o.view(torch.int16), lse.view(torch.int32)
        if first is None:
            first = [b.clone() for b in bits]
            if o.isnan().any() or lse.isnan().any():
                return None, 0
        else:
            differ += (bits[0] != first[0]).any() | (bits[1] != first[1]).any()
    return differ.item(), chain(fa, fagen, cell, plan, args, q, o, chains) if cell.d == cell.dv else 0


def main():
    options = parse()
    from common import fagen
    import torch
    fa = fagen.Fagen(lever=True)
    rng = random.Random(options.seed)
    torch.manual_seed(options.seed)
    try:
        some = [cells.parse(t) for t in options.problem] or [random_cell(rng) for _ in range(options.kernels)]
    except ValueError as e:
        raise SystemExit(str(e)) from None
    begun, ran, bad = time.monotonic(), 0, 0
    for n, cell in enumerate(some):
        if options.seconds and time.monotonic() - begun > options.seconds:
            print(f"{len(some) - n} problems are left: {options.seconds:g} s are over")
            break
        problem = fa.problem(**{k: getattr(cell, k) for k in ("dtype", "mask", "d", "dv", "b", "hq", "hkv", "sq", "sk")})
        try:
            config = config_of(fa, fagen, problem, options, rng, n)
            differ, broken = repeat(fa, fagen, cell, config, options.repeats, options.chains)
        except fagen.Error as e:
            if "status -2" in str(e) or "status -7" in str(e):  # no config of the family for this problem
                print(f"-     {cell.problem()}: {e}")
                continue
            raise
        ran += 1
        bad += differ != 0 or broken != 0
        verdict = "NaN" if differ is None else f"{differ} DIFFER" if differ else f"{broken} CHAINS DIFFER" if broken else "ok"
        print(f"{verdict:5} {cell.problem()}  {config or 'as chosen'}", flush=True)
    print(f"{ran - bad} of {ran} kernels gave the same bits in {options.repeats} launches and {options.chains} chains, {time.monotonic() - begun:.0f} s")
    return 1 if bad or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
