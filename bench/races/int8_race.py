#!/usr/bin/env python3
"""Q and K in integers of 8 bits with V in bf16, beside all in bf16: of wgmma and of mma.sync, each with what a short tuning finds.

Codes are those of N(0, 1) by rows, with a scale of each row or of each head. All contenders of a cell are captured as graphs and raced in
rounds; each output is held against attention in fp64 over the dequantized numbers, of some rows.

    python3 bench/races/int8_race.py -o int8.json
    python3 bench/races/int8_race.py --d 64 --n 4096 --budget 5s --rounds 9
"""
import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

BF16, FOLDED, TOKEN = 2, 1, 2
ROWS = 64  # query rows that are held against fp64


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--d", default="128,64", help="head_dims (default 128,64)")
    p.add_argument("--n", default="16384,4096", help="lengths (default 16384,4096)")
    p.add_argument("--masks", default="none,causal", help="masks (default none,causal)")
    p.add_argument("--by", default="token,folded", help="scales of Q and K (default token,folded)")
    p.add_argument("--heads", type=int, default=16, help="query heads, and of K and V (default 16)")
    p.add_argument("--tokens", type=int, default=16384, help="tokens of a batch (default 16384)")
    p.add_argument("--budget", default="6s", help="of each tuning (default 6s)")
    p.add_argument("--rounds", type=int, default=11, help="of a race (default 11)")
    p.add_argument("--fagen", default="bin/fagen", help="the command (default bin/fagen)")
    p.add_argument("-o", "--output", help="a JSON file")
    return p.parse_args(argv)


def best_of(report):
    """The fastest config of a tuning's JSON that was timed, and its seconds."""
    found = []

    def look(x):
        if isinstance(x, dict):
            if x.get("config") and x.get("outcome") == "ok" and x.get("samples"):
                found.append((x["seconds"], x["config"]))
            for y in x.values():
                look(y)
        elif isinstance(x, list):
            for y in x:
                look(y)

    look(report)
    return min(found)[1] if found else None


def tuned(options, text, family):
    done = subprocess.run([options.fagen, "tune", "--problem", text, "--family", family, "--budget", options.budget, "--json", "-q"],
                          capture_output=True, text=True)
    try:
        config = best_of(json.loads(done.stdout))
    except ValueError:
        config = None
    print(f"  {family}: {config or done.stderr[-300:]}", flush=True)
    return config


def codes(x, by):
    """Codes of x [b, n, h, d] and their scales: of each row, or of each head."""
    import torch
    most = x.float().abs().amax(dim=-1) if by == "token" else x.float().abs().amax(dim=(1, 3))
    scale = most / 127
    wide = scale[..., None] if by == "token" else scale[:, None, :, None]
    return (x.float() / wide).round().clamp(-127, 127).to(torch.int8), scale.contiguous()


def right_of(q, k, v, causal, rows):
    import torch
    s = q[0, rows, 0].double() @ k[0, :, 0].double().T * q.shape[3] ** -0.5
    if causal:
        s = s.masked_fill(torch.arange(k.shape[1], device=s.device)[None] > rows[:, None], float("-inf"))
    return s.softmax(-1) @ v[0, :, 0].double()


def pin(fagen, problem, config):
    from fagen._candidates import default_context
    from fagen._library import check, lib
    handle = default_context(None).handle
    check(lib.fa_pin(handle, ctypes.byref(problem), config.encode()))
    check(lib.fa_prepare(handle, ctypes.byref(problem)))


def unpin():
    from fagen._candidates import default_context
    from fagen._library import check, lib
    check(lib.fa_unpin(default_context(None).handle, None))


def main(argv=None):
    options, rows = parse(argv), []
    import fagen
    import torch
    from common import graphs
    print(torch.cuda.get_device_name(), flush=True)
    h = options.heads
    for d in map(int, options.d.split(",")):
        configs = {}
        for by in options.by.split(","):
            code = TOKEN if by == "token" else FOLDED
            text = f"s8,d={d},mask=none,v=bf16,q_scale={code},k_scale={code},b=1,hq={h},hkv={h},sq=16384,sk=16384"
            configs[by, "wgmma"], configs[by, "mma"] = tuned(options, text, "fp8_wgmma"), tuned(options, text, "int8_mma")
        configs["bf16", "mma"] = tuned(options, f"bf16,d={d},mask=none,b=1,hq={h},hkv={h},sq=16384,sk=16384", "flash_fwd_mma")
        for n in map(int, options.n.split(",")):
            for mask in options.masks.split(","):
                causal, b = mask == "causal", max(1, options.tokens // n)
                g = torch.Generator(device="cuda").manual_seed(1)
                q, k, v = (torch.randn(b, n, h, d, device="cuda", generator=g, dtype=torch.float32).to(torch.bfloat16) for _ in range(3))
                at = torch.randint(0, n, (ROWS,), device="cuda")
                made, row = {}, {"d": d, "n": n, "b": b, "mask": mask, "runs": {}}
                shape = {"d": d, "causal": causal, "b": b, "hq": h, "hkv": h, "sq": n, "sk": n}

                def add(name, problem, config, call, right):
                    if problem is not None and config is None:
                        return
                    try:
                        if problem is not None:
                            pin(fagen, problem, config)
                        out = torch.empty_like(q)
                        graph = graphs.capture(lambda _: call(out), lasts=4e-3)
                        unpin()
                    except fagen.FagenError as e:
                        print(f"  {name}: {str(e)[:200]}", flush=True)
                        return
                    torch.cuda.synchronize()
                    got = out[0, at, 0].double()
                    error = float(((got - right) ** 2).mean().sqrt() / (right * right).mean().sqrt())
                    made[name] = (graph, out)
                    row["runs"][name] = {"rms_error": error, "config": config or "chosen"}

                exact = right_of(q, k, v, causal, at)
                add("bf16 wgmma", None, None, lambda out: (fagen.attention(q, k, v, causal=causal, out=out), out)[1], exact)
                mma = fagen.Problem(dtype="bfloat16", **shape).abi()
                add("bf16 mma", mma, configs["bf16", "mma"], lambda out: (fagen.attention(q, k, v, causal=causal, out=out), out)[1], exact)
                for by in options.by.split(","):
                    (q8, qs), (k8, ks) = codes(q, by), codes(k, by)
                    wide = [x.double() * (s.double()[..., None] if by == "token" else s.double()[:, None, :, None])
                            for x, s in ((q8, qs), (k8, ks))]
                    right = right_of(*wide, v, causal, at)
                    of_codes = float(((right - exact) ** 2).mean().sqrt() / (exact * exact).mean().sqrt())
                    for kind in ("wgmma", "mma"):
                        problem = fagen.Problem(dtype="int8", **shape).abi()
                        problem.v_dtype = BF16
                        problem.q_scale_by = problem.k_scale_by = TOKEN if by == "token" else FOLDED

                        def call(out, q8=q8, k8=k8, qs=qs, ks=ks):
                            return fagen.attention(q8, k8, v, causal=causal, out=out, q_scale=qs, k_scale=ks), out

                        add(f"s8 {by} {kind}", problem, configs[by, kind], lambda out, call=call: call(out)[1], right)
                        if f"s8 {by} {kind}" in row["runs"]:
                            row["runs"][f"s8 {by} {kind}"]["error_of_codes"] = of_codes
                samples, order = {name: [] for name in made}, list(made)
                for _ in range(options.rounds):
                    random.shuffle(order)
                    for name in order:
                        samples[name].append(made[name][0].sample())
                work = 4 * b * h * n * n * d / (2 if causal else 1)
                for name, x in samples.items():
                    row["runs"][name].update(us=statistics.median(x) * 1e6, tflops=work / statistics.median(x) / 1e12)
                rows.append(row)
                told = (f"{name} {x['us']:.1f} us {x['tflops']:.0f} TFLOP/s error {x['rms_error']:.4f}" for name, x in row["runs"].items())
                print(f"d {d:3} n {n:6} {mask:6} " + "  ".join(told), flush=True)
                del made
    if options.output:
        with open(options.output, "w") as f:
            json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
