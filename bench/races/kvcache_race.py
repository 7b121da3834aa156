#!/usr/bin/env python3
"""A decoding step on a cache, new keys and rotation included: fagen.flash_attn.flash_attn_with_kvcache beside FlashAttention-3's.

    python3 bench/races/kvcache_race.py 1,8192 8,8192 64,8192 1,131072 [--heads 32,8] [--dim 128] [--new 1] [--kv bf16,e4m3,s8,q8_0]
                                        [--rounds 6] [--seconds 120]

A cell is sequences and keys of each. Every call stores --new keys of bf16, turned by halves with cosines of fp32 (of bf16 for
FlashAttention-3, which takes no others), turns the queries and attends, in one CUDA graph, and is sampled in turns, forward and back.
"alone" is fagen's attention without new keys: what the launch in front costs. Outputs are held against FlashAttention-3's.
"""
import argparse
import os
import random
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

OWN = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "s8": "int8"}
BLOCKS = {"q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "iq4_nl": (32, 18), "nvfp4": (64, 36)}


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cell", nargs="+", help="B,S")
    p.add_argument("--heads", default="32,8", help="query heads, KV heads")
    p.add_argument("--dim", type=int, default=128)
    p.add_argument("--new", type=int, default=1, help="new keys, and queries")
    p.add_argument("--kv", default="bf16,e4m3,s8,q8_0", help=f"bf16, {', '.join([*OWN, *BLOCKS])}")
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--seconds", type=float, default=120)
    o = p.parse_args(argv)
    o.cells = [tuple(map(int, text.split(","))) for text in o.cell]
    o.hq, o.hkv = map(int, o.heads.split(","))
    return o


class Step:
    """Tensors of a cell, and its calls."""

    def __init__(self, o, b, s):
        import torch
        self.o, self.b, self.s, self.torch = o, b, s, torch
        g = torch.Generator(device="cuda").manual_seed(1)

        def new(*shape):
            return torch.randn(*shape, device="cuda", generator=g).bfloat16()
        self.q, self.k, self.v = new(b, o.new, o.hq, o.dim), new(b, o.new, o.hkv, o.dim), new(b, o.new, o.hkv, o.dim)
        self.cache = [new(b, s, o.hkv, o.dim) for _ in range(2)]
        angles = torch.arange(s, device="cuda")[:, None] * 10000.0 ** (-torch.arange(0, o.dim, 2, device="cuda") / o.dim)
        self.table = torch.cat((angles.cos(), angles.sin()), 1)  # fp32, side by side
        self.lengths = torch.full((b,), s - o.new, dtype=torch.int32, device="cuda")

    def codes(self, kv):
        torch, shape = self.torch, (self.b, self.s, self.o.hkv)
        if kv == "bf16":
            return [x.clone() for x in self.cache], {}
        scales = {name: torch.zeros(shape, device="cuda") for name in ("k_scale", "v_scale")} if kv == "s8" else {}
        if kv in OWN:
            caches = [torch.zeros(*shape, self.o.dim, dtype=torch.uint8, device="cuda").view(getattr(torch, OWN[kv])) for _ in range(2)]
        else:
            block, size = BLOCKS[kv]
            caches = [torch.zeros(*shape, self.o.dim // block * size, dtype=torch.uint8, device="cuda") for _ in range(2)]
            scales["cache_format"] = kv
        import fagen
        how = {f"{name}_out" if name.endswith("scale") else name: x for name, x in scales.items()}
        whole = torch.full((self.b,), self.s, dtype=torch.int32, device="cuda")
        fagen.append(*self.cache, *caches, seqlens_k=whole, **how)
        return caches, scales

    def ours(self, kv, alone=False):
        from fagen.flash_attn import flash_attn_with_kvcache
        caches, options = self.codes(kv)
        half = self.o.dim // 2
        new = {} if alone else dict(k=self.k, v=self.v, rotary_cos=self.table[:, :half], rotary_sin=self.table[:, half:],
                                    rotary_interleaved=False)
        return lambda i: flash_attn_with_kvcache(self.q, *caches, cache_seqlens=self.lengths, causal=True, **new, **options)

    def theirs(self):
        from common import peers
        module = peers.Fa3().module
        caches, half = [x.clone() for x in self.cache], self.o.dim // 2
        cos, sin = (x.bfloat16().contiguous() for x in (self.table[:, :half], self.table[:, half:]))

        def run(i):
            out = module.flash_attn_with_kvcache(self.q, *caches, k=self.k, v=self.v, rotary_cos=cos, rotary_sin=sin,
                                                 cache_seqlens=self.lengths, causal=True, rotary_interleaved=False, num_splits=0)
            return out[0] if isinstance(out, (tuple, list)) else out
        return run


def main():
    o = parse()
    from common import graphs, machine, package
    package.load()
    print(machine.described(), flush=True)
    for b, s in o.cells:
        step = Step(o, b, s)
        calls = {f"fagen {kv}": step.ours(kv) for kv in o.kv.split(",")}
        calls["fagen bf16 alone"] = step.ours("bf16", True)
        try:
            calls["FlashAttention-3"] = step.theirs()
            right = calls["FlashAttention-3"](0).float()
        except Exception as e:  # not installed, or it refuses
            calls.pop("FlashAttention-3", None)
            print(f"FlashAttention-3: {type(e).__name__}: {str(e)[:200]}", flush=True)
            right = calls["fagen bf16"](0).float()
        off = {name: (run(0).float() - right).abs().max().item() for name, run in calls.items() if not name.endswith("alone")}
        made = {name: graphs.capture(run) for name, run in calls.items()}
        samples = graphs.race(made, random.Random(1), o.rounds, o.seconds / len(o.cells))
        best = {name: statistics.median(x) * 1e6 for name, x in samples.items()}
        of = best.get("FlashAttention-3", best.get("fagen bf16"))
        for name, us in best.items():
            print(f"b={b} s={s} {o.heads} d={o.dim} new={o.new}: {name} {us:.2f} us, {of / us:.3f}; off by {off.get(name, 0):.4f}",
                  flush=True)
        del step, calls, made
    return 0


if __name__ == "__main__":
    sys.exit(main())
