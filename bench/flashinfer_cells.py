#!/usr/bin/env python3
"""Decoding over caches of e4m3 in pages of 64 tokens beside FlashInfer's, six cells, one query row each, d = 128, in CUDA graphs, interleaved.

FlashInfer's is its tensor-core form (the other is slower); it compiles on first use, for some half a minute. Both read the same bytes, all
scales are 1. Outputs are held against attention in fp32 over what the codes mean before they are timed. One table to standard output.

    python3 bench/flashinfer_cells.py --seconds 60 -o flashinfer.json
"""
import argparse
import json
import random
import statistics
import sys

PAGE, D = 64, 128
CELLS = ((1, 32, 8, 8192), (1, 32, 8, 131072), (8, 32, 8, 8192), (64, 32, 8, 8192), (128, 64, 8, 2048), (16, 64, 8, 32768))  # b, hq, hkv, sk


def flashinfer_run(q, k, v, table, out, hkv):
    import flashinfer
    import torch
    b, _, hq, _ = q.shape
    pages = table.shape[1]
    indptr = torch.arange(b + 1, dtype=torch.int32, device="cuda") * pages
    indices, last = table.flatten().contiguous(), torch.full((b,), PAGE, dtype=torch.int32, device="cuda")
    space = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        space, "NHD", use_cuda_graph=True, use_tensor_cores=True, paged_kv_indptr_buffer=indptr.clone(),
        paged_kv_indices_buffer=indices.clone(), paged_kv_last_page_len_buffer=last.clone())
    wrapper.plan(indptr, indices, last, hq, hkv, D, PAGE, q_data_type=torch.bfloat16, kv_data_type=torch.float8_e4m3fn)

    def run(i):
        wrapper.run(q[:, 0], (k, v), out=out[:, 0])
        return out
    return run


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("-o", "--output", metavar="FILE")
    options = p.parse_args()
    import torch

    from sections import decode_cases
    from sections import decode_lab
    from sections import decode_oracle
    from sections import decode_sections
    from common import graphs
    lab = decode_lab.Lab(seed=options.seed, peers={})
    torch.manual_seed(options.seed)
    lab.warm_up()
    print(lab.machine.described(), flush=True)
    rows, gains = [], []
    for b, hq, hkv, sk in CELLS:
        q, outs = lab.randn(b, 1, hq, D), [torch.empty(b, 1, hq, D, dtype=torch.bfloat16, device="cuda") for _ in "ab"]
        table = lab.ints(decode_cases.tables([sk] * b, PAGE, lab.rng)[0])
        codes = [lab.randn(b, sk, hkv, D).to(torch.float8_e4m3fn) for _ in "kv"]
        right = torch.stack([decode_oracle.attend(*one) for one in zip(q, *(x.to(torch.bfloat16) for x in codes))])
        lengths = lab.ints([sk] * b)
        k, v = (decode_sections.paged_as(x.view(torch.uint8), table, PAGE) for x in codes)
        args = [lab.fa.args(q, k, v, outs[0], lengths=lengths, table=table, sk=sk, kv="e4m3")]
        ours, told = lab.launches(args, outs[:1], None)
        runs = {"fagen": ours}
        try:
            runs["flashinfer"] = flashinfer_run(q, k.view(torch.float8_e4m3fn), v.view(torch.float8_e4m3fn), table, outs[1], hkv)
        except Exception as e:
            print(f"flashinfer left out: {type(e).__name__}: {e}", flush=True)
        for name, run in runs.items():
            error, _ = lab.error(run(0), right)
            assert error < 1e-2, f"{name} is wrong: {error}"
        samples = graphs.race({n: graphs.capture(run) for n, run in runs.items()}, random.Random(options.seed), most=100,
                              seconds=options.seconds / len(CELLS))
        us = {n: 1e6 * statistics.median(x) for n, x in samples.items()}
        gain = us.get("flashinfer", 0) / us["fagen"]
        gains.append(gain)
        rows.append({"b": b, "hq": hq, "hkv": hkv, "sk": sk, "us": us, "config": told().get("config")})
        print(f"b={b} hq={hq} hkv={hkv} sk={sk}: fagen {us['fagen']:.1f} us, flashinfer {us.get('flashinfer', 0):.1f} us, {gain:.3f}  "
              f"{told().get('config')}", flush=True)
        del codes, right, k, v, args, runs, ours, samples
    print(f"mean {statistics.mean(gains):.3f}, least {min(gains):.3f}")
    if options.output:
        with open(options.output, "w") as f:
            json.dump({"machine": lab.machine.described(), "rows": rows}, f)
    return 0


if __name__ == "__main__":
    sys.exit(main())
