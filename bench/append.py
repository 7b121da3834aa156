#!/usr/bin/env python3
"""Appending to a cache on one GPU: bytes per second of many tokens, and the time of few as a node of a CUDA graph.

Sections, both where none is named:
    many   65,536 tokens of 8 heads of 128, rotated, into a cache of each type, by slots; beside a copy of as many bytes in the same run
    few    1, 16, 64 and 256 tokens with 32 query heads that are rotated out in the same launch; beside a node that fills one number
The many are larger than any L2, the few are read out of it. What a launch leaves is held against PyTorch's rotation
of a few rows before it is timed, where the cache has 16 bits. The table goes to standard output, all samples to a JSON file.

    python3 bench/append.py --seconds 120 -o append.json
    python3 bench/append.py many --config append:warps=4,token_heads=4,claims=1
"""
import argparse
import ctypes as C
import json
import random
import statistics
import sys

D, HKV, HQ, PAGE, POSITIONS = 128, 8, 32, 16, 8192
MANY = 65536
FEW = (1, 16, 64, 256)
WARM = 24e6  # bytes that tensors of few tokens have together at most, so that the L2 holds them
CACHES = ("bf16", "e4m3", "e5m2", "s8", "s8 given", "q8_0", "q4_0")
BLOCKS = {"q8_0": (32, 34), "q4_0": (32, 18)}  # elements, bytes


class Append:
    """Arguments of one launch, and what they lead to."""

    def __init__(self, lab, tokens, cache, queries, seed=0):
        import torch
        abi, fagen = lab.abi, lab.fagen
        g = torch.Generator(device="cuda").manual_seed(seed)
        kind = cache.split()[0]
        pages = -(-tokens // PAGE)
        elements, size = BLOCKS.get(kind, (1, 2 if kind == "bf16" else 1))
        row = D // elements * size
        self.kept = []

        def new(*shape, dtype=torch.bfloat16):
            t = torch.randn(*shape, device="cuda", generator=g).to(dtype)
            self.kept.append(t)
            return t
        self.new_k, self.new_v = new(tokens, HKV, D), new(tokens, HKV, D)
        self.k, self.v = (torch.zeros(pages * PAGE, HKV, row, dtype=torch.uint8, device="cuda") for _ in range(2))
        self.angles = new(POSITIONS, D, dtype=torch.float32)
        self.positions = torch.randint(0, POSITIONS, (tokens,), device="cuda", generator=g)
        order = torch.randperm(pages, device="cuda", generator=g)  # pages lie anywhere, tokens of a page together
        at = torch.arange(tokens, device="cuda")
        self.slots = order[at // PAGE] * PAGE + at % PAGE
        self.skipped = torch.zeros(1, dtype=torch.int64, device="cuda")
        a = self.args = abi.Args(size=C.sizeof(abi.Args), op=abi.FA_APPEND, dtype=fagen.BF16, d=D, dv=D, b=1, sq=tokens, sk=pages * PAGE,
                                 hq=HQ if queries else HKV, hkv=HKV, page_size=PAGE, pages=pages)
        a.kv_dtype = 0 if kind == "bf16" else getattr(abi, "FA_" + kind.upper())
        for name, t in (("new_k", self.new_k), ("new_v", self.new_v)):
            setattr(a, name, fagen.Tensor(t.data_ptr(), 0, HKV * D, D))
        unit = row // size
        for name, t in (("k", self.k), ("v", self.v)):
            setattr(a, name, fagen.Tensor(t.data_ptr(), PAGE * HKV * unit, HKV * unit, unit))
        if queries:
            self.q, self.q_out = new(tokens, HQ, D), torch.zeros(tokens, HQ, D, dtype=torch.bfloat16, device="cuda")
            a.q, a.q_out = (fagen.Tensor(t.data_ptr(), 0, HQ * D, D) for t in (self.q, self.q_out))
        a.slots, a.positions, a.position_bytes = self.slots.data_ptr(), self.positions.data_ptr(), 8
        a.cos_sin, a.cos_sin_dtype, a.rotary_dim, a.rotary_positions = self.angles.data_ptr(), fagen.FP32, D, POSITIONS
        a.skipped = self.skipped.data_ptr()
        scales = 0
        if kind in ("e4m3", "e5m2") or cache == "s8 given":
            self.scales = torch.full((HKV,), 0.05, device="cuda")
            given = dict(dtype=fagen.FP32, by=abi.FA_SCALE_FOLDED, sh=1)
            a.k_scale = a.v_scale = abi.Scale(ptr=self.scales.data_ptr(), **given)
        elif cache == "s8":
            self.scales = torch.zeros(2, pages * PAGE, HKV, device="cuda")
            found = dict(dtype=fagen.FP32, by=abi.FA_SCALE_TOKEN, sb=PAGE * HKV, ss=HKV, sh=1)
            a.k_scale_out, a.v_scale_out = (abi.Scale(ptr=t.data_ptr(), **found) for t in self.scales)
            scales = 4
        self.bytes = tokens * (2 * HKV * (D * 2 + row + scales) + (2 * HQ * D * 2 if queries else 0) + 16)

    def check(self, lab):
        """Rotated rows of a cache of 16 bits are PyTorch's; no token was skipped."""
        import torch
        lab.run(self.args)
        torch.cuda.synchronize()
        assert int(self.skipped) == 0, f"{int(self.skipped)} tokens were skipped"
        n = min(64, self.new_k.shape[0])
        row = self.angles[self.positions[:n]][:, None]
        c, s = row[..., :D // 2], row[..., D // 2:]

        def turned(x):
            x, y = x[:n, :, :D // 2].float(), x[:n, :, D // 2:].float()
            return torch.cat((x * c - y * s, y * c + x * s), -1).to(torch.bfloat16)
        if not self.args.kv_dtype:
            got = self.k.view(torch.bfloat16).view(-1, HKV, D)[self.slots[:n]]
            assert torch.equal(got, turned(self.new_k)), "K is not PyTorch's"
            assert torch.equal(self.v.view(torch.bfloat16).view(-1, HKV, D)[self.slots], self.new_v), "V is not what was appended"
        if self.args.q.ptr:
            assert torch.equal(self.q_out[:n], turned(self.q)), "Q is not PyTorch's"


class Lab:
    def __init__(self, configs):
        from common import fagen
        self.fagen, self.abi, self.configs = fagen, fagen.abi, configs
        self.library = fagen.Fagen(lever=bool(configs))
        self.spaces = []

    def run(self, args, plan=None):
        self.library.launch(args, plan)

    def contenders(self, args):
        """{name: plan} of a launch: as chosen, and configs that are named."""
        out = {"": None}
        for config in self.configs:
            out[" " + config] = plan = self.library.plan(self.library.problem_of(args), config)
            if self.library.workspace(args, plan) > args.workspace_size:
                self.spaces.append(self.library.give_workspace(args, plan))
        return out


def raced(graphs_of, seconds, rng):
    from common import graphs
    samples = graphs.race({name: graphs.capture(run, sets) for name, (run, sets) in graphs_of.items()}, rng, most=200, seconds=seconds)
    return {name: statistics.median(x) for name, x in samples.items()}, samples


def many(lab, options, rng, out):
    import torch
    for cache in options.caches:
        one = Append(lab, MANY, cache, False)
        one.check(lab)
        half = torch.empty(one.bytes // 2, dtype=torch.uint8, device="cuda")
        other = torch.empty_like(half)
        runs = {"copy": (lambda i: other.copy_(half), 1)}
        for name, plan in lab.contenders(one.args).items():
            runs["append" + name] = (lambda i, plan=plan: lab.run(one.args, plan), 1)
        seconds, samples = raced(runs, options.seconds / 2 / len(options.caches), rng)
        for name, t in seconds.items():
            share = one.bytes / t / (half.numel() * 2 / seconds["copy"])
            print(f"many  {cache:9} {name:44} {t * 1e6:8.1f} us  {one.bytes / t / 1e12:5.2f} TB/s  {share:5.3f} of a copy", flush=True)
        out.append({"section": "many", "cache": cache, "bytes": one.bytes, "samples": samples})


def few(lab, options, rng, out):
    import torch
    for tokens in FEW:
        for cache in [c for c in options.caches if c in ("bf16", "e4m3", "s8", "q8_0")]:
            first = Append(lab, tokens, cache, True)
            first.check(lab)
            sets = [first] + [Append(lab, tokens, cache, True, seed) for seed in range(1, max(2, min(9, int(WARM // first.bytes))))]
            one = torch.zeros(1, device="cuda")
            runs = {"empty": (lambda i: one.fill_(1), 1)}
            for other in sets[1:]:
                lab.contenders(other.args)  # each its own workspace
            for name, plan in lab.contenders(first.args).items():
                runs["append" + name] = (lambda i, plan=plan: lab.run(sets[i % len(sets)].args, plan), len(sets))
            seconds, samples = raced(runs, options.seconds / 2 / len(FEW) / 4, rng)
            for name, t in seconds.items():
                print(f"few   {tokens:4} {cache:9} {name:44} {t * 1e6:7.2f} us  {(t - seconds['empty']) * 1e6:6.2f} us over an empty node",
                      flush=True)
            out.append({"section": "few", "tokens": tokens, "cache": cache, "samples": samples})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("sections", nargs="*", metavar="SECTION", help="many, few (default: both)")
    p.add_argument("--caches", type=lambda s: s.split(","), default=CACHES, metavar="TYPE,..", help=", ".join(CACHES))
    p.add_argument("--config", action="append", default=[], help="one more contender; may be repeated")
    p.add_argument("--seconds", type=float, default=120)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("-o", "--output", metavar="FILE")
    options = p.parse_args()
    sections = {"many": many, "few": few}
    wrong = [x for x in options.sections if x not in sections] + [x for x in options.caches if x not in CACHES]
    if wrong:
        p.error(f"{wrong[0]}; accepted: many, few; --caches {','.join(CACHES)}")
    from common import machine
    lab, rng, out = Lab(options.config), random.Random(options.seed), []
    print(machine.described(), flush=True)
    for name in options.sections or sections:
        sections[name](lab, options, rng, out)
    if options.output:
        with open(options.output, "w") as f:
            json.dump({"machine": machine.described(), "rows": out}, f)
    return 0


if __name__ == "__main__":
    sys.exit(main())
