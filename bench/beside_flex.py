#!/usr/bin/env python3
"""Score programs beside compiled FlexAttention, both passes, in as many processes as compile at once.

    python3 bench/beside_flex.py [--lengths 4096,16384] [--head-dims 64,128] [--masks documents,prefix,chunked,blocks,tree]
                                 [--programs softcap,alibi,relative,bias_bf16] [--passes forward,backward] [--processes 14]
                                 [--compile-seconds 100] [--rounds 5] [--before COMMAND] [-o flex.json]

A cell is a mask of bench/masks.py, its length and head_dim, in bf16 with heads that are 2048 wide together and 16,384 tokens: a process of
its own, which compiles FlexAttention's kernels and fagen's, holds fagen's results against fp64 and FlexAttention's against fagen's, and
waits. When all wait, or --compile-seconds are over, they are timed one after the other, nothing else at work: forward by CUDA graphs,
backward as PyTorch's autograd calls FlexAttention's, some in a row, fagen's by graphs. FlexAttention has its block mask made beforehand, in
blocks of 128 x 128 and of the function itself, and keeps the kernel options that it chooses. Each row of a mask has the bound of
bench/masks.py, too, as the calls are in turns and, forward, each by itself. --programs: in the place of masks, functions `score` of
bench/scores.py under the causal mask, beside which plain causal attention is timed. --before: a command that is run when all wait, as
another benchmark.
"""
import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time

import masks
import scores

SHOWN = "documents,prefix,chunked,blocks,tree"


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lengths", default="4096,16384")
    p.add_argument("--head-dims", default="64,128")
    p.add_argument("--masks", default=SHOWN)
    p.add_argument("--programs", help="of bench/scores.py, in the place of masks")
    p.add_argument("--passes", default="forward,backward")
    p.add_argument("--processes", type=int, default=14, help="that compile at once")
    p.add_argument("--compile-seconds", type=float, default=100)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--before", help="a command that is run when all wait")
    p.add_argument("-o", "--json", help="all samples")
    p.add_argument("--cell", help=argparse.SUPPRESS)  # MASK,D,S: what a process is for
    o = p.parse_args(argv)
    o.named = (o.programs or o.masks).split(",")
    known = scores.PROGRAMS if o.programs else masks.MASKS
    for name in o.named:
        if name not in known:
            p.error(f"the {'program' if o.programs else 'mask'} is \"{name}\"; accepted: {', '.join(known)}")
    for name in o.passes.split(","):
        if name not in ("forward", "backward"):
            p.error(f"the pass is \"{name}\"; accepted: forward, backward")
    return o


def block_mask(name, values, b, h, n, block=128):
    """FlexAttention's, without compiling what makes it: which blocks of keys each block of queries sees in part and as a whole."""
    import torch
    from torch.nn.attention.flex_attention import BlockMask
    heads = h if name == "blocks" else 1  # no other mask of bench/masks.py has a head's own
    side = n // block
    some, every = (torch.empty(1, heads, side, side, device="cuda", dtype=torch.bool) for _ in range(2))
    for at in range(heads):
        for r in range(side):
            seen = masks.seen_of(name, values, at, torch.arange(r * block, (r + 1) * block, device="cuda"), n)
            seen = seen.expand(block, n).view(block, side, block)
            some[0, at, r], every[0, at, r] = seen.any(0).any(1), seen.all(0).all(1)

    def listed(which):
        return which.sum(-1).int(), torch.argsort(which.int(), dim=-1, descending=True, stable=True).int()

    def mod(b, h, i, j):
        return masks.MASKS[name][1](b, h, i, j, values)
    return BlockMask.from_kv_blocks(*listed(some & ~every), *listed(every), BLOCK_SIZE=block, mask_mod=mod, seq_lengths=(n, n))


class Called:
    """A mask or a score program; script: the module of bench/ whose it is."""

    def apart(self, backward, tensors, made):
        """How far results are from fp64."""
        q, k, v, grad_out = tensors
        if backward:
            return self.script.gradients_apart(self.name, self.values, q, k, v, grad_out, made)
        return self.script.apart(self.name, self.values, q, k, v, made)


class Mask(Called):
    """A mask of bench/masks.py: its text and operands, and FlexAttention's call."""

    script = masks

    def __init__(self, fa, fagen, name, b, h, s):
        self.name, self.kind, self.s = name, fagen.NONE, s
        self.values, self.score = masks.MASKS[name][0](b, h, s), fa.score(masks.text_of(name))
        self.blocks = block_mask(name, self.values, b, h, s)

    def flex(self, backward, tensors):
        import torch
        from common import gradients
        from torch.nn.attention.flex_attention import flex_attention
        q, k, v, grad_out = tensors
        if backward:
            return gradients.flex(q, k, v, grad_out, block_mask=self.blocks)
        call, (q, k, v) = torch.compile(flex_attention, dynamic=False), (t.transpose(1, 2) for t in (q, k, v))
        return lambda _: call(q, k, v, block_mask=self.blocks)

    def bound(self, row, made, h):
        """What the row has besides: the time that the tiles which are not empty would take at plain attention's rate."""
        row["tiles"] = masks.share_of_tiles(self.name, self.values, h, self.s, *masks.tile_of(row["config"]))
        row["bound"] = statistics.median(row["plain"]) * row["tiles"] / 0.90 + 8e-6
        row["of bound"] = statistics.median(row["seconds"]) / row["bound"]
        if row["pass"] == "forward":
            row.update(masks.alone(made, self.name, row["tiles"], lasts=0.25))


class Program(Called):
    """The same of a function `score` of bench/scores.py, under the causal mask."""

    script = scores

    def __init__(self, fa, fagen, name, b, h, s):
        self.name, self.kind = name, fagen.CAUSAL
        self.values, self.score = scores.values_of(name, b, h, s), fa.score(scores.text_of(name))

    def flex(self, backward, tensors):
        q, k, v, grad_out = tensors
        return scores.flex(self.name, self.values, q, k, v, grad_out if backward else None)

    def bound(self, row, made, h):
        row["share"] = statistics.median(p / t for p, t in zip(row["plain"], row["seconds"]))


def child(o):
    """Prints `ready`, waits for a line, times, prints a row each."""
    import math

    from common import fagen, gradients, graphs, tournament
    import torch
    name, d, s = o.cell.split(",")
    d, s, fa = int(d), int(s), fagen.Fagen()
    h, b = scores.WIDTH // d, max(1, scores.TOKENS // s)
    torch.manual_seed(1)
    q, k, v, grad_out = tensors = [torch.randn(b, s, h, d, device="cuda", dtype=torch.bfloat16) for _ in "qkvg"]
    what, ready = (Program if o.programs else Mask)(fa, fagen, name, b, h, s), []
    for side in o.passes.split(","):
        row, kept, calls = {"mask": name, "d": d, "s": s, "pass": side}, [], {}
        backward = side == "backward"

        def ours(called, **more):
            if backward:
                calls[called] = gradients.contender(fa, fagen, q, k, v, grad_out, what.kind, kept, **more)
                return calls[called](0)
            out = torch.empty_like(q)
            args = fa.args(q, k, v, out, what.kind, **more)
            kept.append((fa.give_workspace(args), args, out, more))
            calls[called] = lambda _, args=args, out=out: (fa.launch(args), out)[1]
            return calls[called](0)
        ours("plain")
        made = ours(name, score=what.score, values=what.values)
        torch.cuda.synchronize()
        told = fa.explain(kept[-1][1]).splitlines()
        row["config"] = next((line.split(None, 1)[1] for line in told if line.startswith("config")), "")
        row["apart"], row["flex apart"] = what.apart(backward, tensors, made), math.nan
        try:
            run = what.flex(backward, tensors)
            if isinstance(run, str):
                raise RuntimeError(run)
            theirs = [t.transpose(1, 2) for t in (run.run() if backward else [run(0)])]
            calls["flex"] = run
            row["flex apart"] = max(((x.float() - y.float()).norm() / y.float().norm()).item()
                                    for x, y in zip(theirs, made[2:] if backward else [made]))
            del theirs
        except Exception as e:  # whatever the compiler raises
            row["no flex"] = str(e).strip().splitlines()[0][:200]
        ready.append((row, calls, kept))
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    print("ready", flush=True)
    sys.stdin.readline()
    tournament.warm_up(0.3)
    for row, calls, _ in ready:
        if hasattr(calls.get("flex"), "calls"):  # how long one lasts was seen while others compiled
            calls["flex"].calls = 20
            calls["flex"].calls = max(1, round(4e-3 / calls["flex"].sample()))
        made = {called: run if hasattr(run, "sample") else graphs.capture(run, lasts=4e-3) for called, run in calls.items()}
        samples = scores.race(made, list(made), o.rounds)
        row["seconds"], row["plain"], row["flex"] = samples[name], samples["plain"], samples.get("flex")
        what.bound(row, made, h)
        if row["flex"]:
            row["over flex"] = statistics.median(f / t for f, t in zip(row["flex"], row["seconds"]))
        print(json.dumps({**row, "device": torch.cuda.get_device_name()}), flush=True)


def told(row):
    text = f"d={row['d']:3} s={row['s']:5} {row['mask']:10} {row['pass']:8} {statistics.median(row['seconds']) * 1e6:8.1f} us, "
    if "share" in row:
        text += f"{row['share']:.3f} of plain causal, "
    else:
        text += f"{row['of bound']:.2f} of the bound{' (alone %.2f)' % row['of bound alone'] if 'of bound alone' in row else ''}, "
    text += f"apart {row['apart']:.1e}"
    if row.get("flex"):
        text += f", flex {statistics.median(row['flex']) * 1e6:8.1f} us, {row['over flex']:.2f} times its speed"
        text += f", {row['flex apart']:.1e} from fagen's"
    else:
        text += f", {row.get('no flex', '')}"
    return text + ("" if row["apart"] < scores.APART else "  WRONG")


def main():
    o = parse()
    if o.cell:
        return child(o)
    cells = [f"{name},{d},{s}" for s in o.lengths.split(",") for d in o.head_dims.split(",") for name in o.named]
    env = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    begun, made, ready, rows = time.monotonic(), {}, [], []
    until = begun + o.compile_seconds
    try:
        while (len(ready) < len(cells)) and time.monotonic() < until:
            for cell in cells[len(made):]:
                if len(made) - len(ready) >= o.processes:
                    break
                given = ["--programs", o.programs] if o.programs else []
                made[cell] = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--cell", cell, "--passes", o.passes, "--rounds",
                                               str(o.rounds), *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
            left = {cell: p for cell, p in made.items() if cell not in ready}
            if not left:
                break
            streams = {p.stdout: cell for cell, p in left.items()}
            for stream in select.select(list(streams), [], [], 0.5)[0]:
                line = stream.readline().strip()
                if line != "ready":
                    print(f"{streams[stream]}: {line or 'ended'}", flush=True)
                if line in ("ready", ""):
                    ready.append(streams[stream])
        print(f"{len(ready)} of {len(cells)} cells compiled in {time.monotonic() - begun:.0f} s", flush=True)
        for cell in [cell for cell in made if cell not in ready]:
            made[cell].kill()
            made[cell].wait()
            print(f"{cell}: still compiling", flush=True)
        if o.before:
            subprocess.run(o.before, shell=True, check=False)
        for cell in [cell for cell in cells if cell in ready]:
            process = made[cell]
            try:
                process.stdin.write("go\n")
                process.stdin.close()
                for line in process.stdout:
                    rows.append(json.loads(line))
                    print(told(rows[-1]), flush=True)
            except (BrokenPipeError, json.JSONDecodeError) as e:
                print(f"{cell}: {e}", flush=True)
            process.wait()
            if o.json:
                with open(o.json, "w") as f:
                    json.dump({"device": rows[0]["device"] if rows else "", "rows": rows}, f)
    finally:
        for process in made.values():
            process.kill()
    for side in o.passes.split(","):
        over = [row["over flex"] for row in rows if row["pass"] == side and "over flex" in row]
        if over:
            print(f"{side}: {len(over)} cells, mean {statistics.mean(over):.2f}, least {min(over):.2f} times FlexAttention's speed")
    return any(not row["apart"] < scores.APART for row in rows)


if __name__ == "__main__":
    raise SystemExit(main())
