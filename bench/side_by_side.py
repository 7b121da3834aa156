#!/usr/bin/env python3
"""fagen beside a peer on one GPU in one run: interleaved, random data, medians and their spread.

The grid is the field's usual one (FlashAttention's benchmark_attn): b * s = 16k tokens, h * d = 2048, FLOPs = 4 b h s^2 d, half of
it under a causal mask. Before a cell is timed its output is compared with the peer's.

    python3 bench/side_by_side.py                      the whole grid against FlashAttention-2 (through PyTorch's SDPA)
    python3 bench/side_by_side.py --d 64,128 --s 4096 --json out.json
"""
import argparse
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import fagen

PEERS = {"fa2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def numbers(text):
    return [int(x) for x in text.split(",")]


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--d", type=numbers, default=[64, 96, 128, 192, 256], help="head dims (default 64,96,128,192,256)")
    p.add_argument("--s", type=numbers, default=[512, 1024, 2048, 4096, 8192, 16384], help="sequence lengths")
    p.add_argument("--mask", default="none,causal", help="none, causal or both (default)")
    p.add_argument("--dtype", choices=["bf16", "fp16"], default="bf16")
    p.add_argument("--peer", choices=sorted(PEERS), default="fa2")
    p.add_argument("--tokens", type=int, default=16384, help="b * s (default 16384)")
    p.add_argument("--width", type=int, default=2048, help="h * d (default 2048)")
    p.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default 9)")
    p.add_argument("--sample", type=float, default=4e-3, help="seconds of launches per sample (default 0.004)")
    p.add_argument("--json", help="write every sample to this file")
    return p.parse_args()


def seconds(run, count):
    start, end = torch.cuda.Event(True), torch.cuda.Event(True)
    start.record()
    for i in range(count):
        run(i)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / count * 1e-3


def relative_error(out, ref):
    return ((out.float() - ref.float()).norm() / ref.float().norm()).item()


def cell(fa, peer, d, s, mask, options):
    """One cell: {ours, peer: lists of seconds}, checked first."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[options.dtype]
    b, h = max(1, options.tokens // s), max(1, options.width // d)
    causal = mask == "causal"
    sets = [[torch.randn(b, s, h, d, device="cuda", dtype=dtype) for _ in range(3)] for _ in range(2)]
    outs = [torch.empty_like(q) for q, _, _ in sets]
    args = [fa.args(q, k, v, o, fagen.CAUSAL if causal else fagen.NONE) for (q, k, v), o in zip(sets, outs)]

    def ours(i):
        fa.launch(args[i % 2])

    def theirs(i):
        q, k, v = sets[i % 2]
        return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal)

    with sdpa_kernel(PEERS[peer]):
        outs[0].fill_(float("nan"))
        ours(0)
        error = relative_error(outs[0], theirs(0).transpose(1, 2))
        if not error < 1e-2:
            raise SystemExit(f"d {d} s {s} {mask}: the outputs differ by {error:.2e}")
        estimate = min(seconds(ours, 3), seconds(theirs, 3))
        count = max(2, math.ceil(options.sample / estimate))
        samples = {"ours": [], peer: []}
        for _ in range(options.rounds):
            samples["ours"].append(seconds(ours, count))
            samples[peer].append(seconds(theirs, count))
    flops = 4 * b * h * s * s * d * (0.5 if causal else 1)
    chosen = next((line for line in fa.explain(args[0]).splitlines() if ":" in line and "br=" in line), "")
    return {"d": d, "s": s, "mask": mask, "b": b, "h": h, "flops": flops, "samples": samples, "error": error, "config": chosen.strip()}


def main():
    options = parse()
    torch.manual_seed(1)
    fa = fagen.Fagen()
    name, torch_version = torch.cuda.get_device_name(), torch.__version__
    print(f"{name}, PyTorch {torch_version}, {options.dtype}, TFLOP/s: ours / {options.peer} = ratio (spread of ours, %)\n", flush=True)
    print("| d | mask | " + " | ".join(str(s) for s in options.s) + " |")
    print("|---" * (len(options.s) + 2) + "|", flush=True)
    cells, ratios = [], []
    for d in options.d:
        for mask in options.mask.split(","):
            row = []
            for s in options.s:
                c = cell(fa, options.peer, d, s, mask, options)
                cells.append(c)
                ours, theirs = (statistics.median(c["samples"][k]) for k in ("ours", options.peer))
                spread = statistics.median(abs(x - ours) for x in c["samples"]["ours"]) / ours * 100
                ratios.append(theirs / ours)
                row.append(f"{c['flops'] / ours / 1e12:.0f} / {c['flops'] / theirs / 1e12:.0f} = {theirs / ours:.2f} ({spread:.1f})")
            print(f"| {d} | {mask} | " + " | ".join(row) + " |", flush=True)
    mean = math.exp(statistics.mean(math.log(r) for r in ratios))
    print(f"\ngeometric mean of {len(ratios)} cells: {mean:.3f}; least {min(ratios):.3f}; most {max(ratios):.3f}")
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"device": name, "torch": torch_version, "peer": options.peer, "dtype": options.dtype, "cells": cells}, f)


if __name__ == "__main__":
    sys.exit(main())
