#!/usr/bin/env python3
"""Masks of score programs on this GPU: what a mask costs beside the same call without one, by the tiles that hold a pair which is seen.

    python3 bench/masks.py [--lengths 4096,16384] [--head-dims 64,128] [--masks documents,prefix] [--backward] [--flex] [--alone]
                           [--rounds 7] [-o masks.json]

The programs are those that ship, templates/pairs/programs, in bf16 with heads that are 2048 wide together. Calls are CUDA graphs, sampled
in turns, forward and back, the kernel that makes tables of the operands included. `bound` is what the mask is held to: the plain call's
time by the share of tiles, of the chosen kernel's size, that hold a visible pair, by 0.90, and 8 us. Rows of the result are held against
fp64 before anything is timed. --flex: the same function by torch.compile(flex_attention), with its block mask made beforehand, and what
making it takes. --backward: the gradients alone; FlexAttention's run outside of graphs. --alone: each of both also by itself for half a
second, at the clock that it leaves itself: beside the plain call a mask's call has that one's.
"""
import argparse
import math
import re
import statistics
import time

import scores
from common.bits import bits

DOCUMENTS = 12
DRAFTS = 64  # queries after a cache


def documents(n):
    """Numbers of twelve documents of unlike lengths."""
    import torch
    cuts = torch.tensor([n * (2 * i + i % 3) // (2 * DOCUMENTS + 1) for i in range(DOCUMENTS)], device="cuda")
    return (torch.arange(n, device="cuda")[:, None] >= cuts).sum(1).int()


def blocks(h, n):
    """Of 128 x 128 pairs a fifth, and those at the diagonal."""
    import torch
    side = n // 128
    shown = torch.rand(h, side, side, device="cuda", generator=torch.Generator("cuda").manual_seed(1)) < 0.2
    return (shown | torch.eye(side, device="cuda", dtype=torch.bool)).to(torch.uint8)


# name: (operands of b sequences, h heads and n keys; who sees whom, of tensors of indices b, h, i, j and the operands)
MASKS = {
    "causal": (lambda b, h, n: [], lambda b, h, i, j, x: j <= i),
    "window": (lambda b, h, n: [1023, 0], lambda b, h, i, j, x: (j <= i) & (i - j <= 1023)),
    "chunked": (lambda b, h, n: [n // 8], lambda b, h, i, j, x: (j <= i) & (i // x[0] == j // x[0])),
    "prefix": (lambda b, h, n: [of_sequences(b, n // 3)], lambda b, h, i, j, x: (j <= i) | (j < x[0][b])),
    "padding": (lambda b, h, n: [of_sequences(b, n // 8), of_sequences(b, n - n // 5)],
                lambda b, h, i, j, x: (j >= x[0][b]) & (j < x[1][b])),
    "documents": (lambda b, h, n: [documents(n).expand(b, n).contiguous()], lambda b, h, i, j, x: (j <= i) & (x[0][b, i] == x[0][b, j])),
    "starts": (lambda b, h, n: [starts(n).expand(b, n).contiguous()], lambda b, h, i, j, x: (j <= i) & (j >= x[0][b, i])),
    "blocks": (lambda b, h, n: [blocks(h, n)[None].expand(b, h, n // 128, n // 128).contiguous()],
               lambda b, h, i, j, x: x[0][b, h, i // 128, j // 128] != 0),
    "tree": (lambda b, h, n: [bits(tree(n, n // 32)).expand(b)], lambda b, h, i, j, x: x[0].sees(b, i, j)),
    "drafts": (lambda b, h, n: [bits(tree(DRAFTS, 1), n - DRAFTS).expand(b)], lambda b, h, i, j, x: x[0].sees(b, i, j)),
    "matrix": (lambda b, h, n: [bits(matrix(n)).expand(b, h)], lambda b, h, i, j, x: x[0].sees((b, h), i, j)),
    "matrix_u8": (lambda b, h, n: [matrix(n)[None, None].expand(b, h, n, n)], lambda b, h, i, j, x: x[0][b, h, i, j] != 0),
}


# Programs that do not ship. starts: documents as what is solved for bounds, where each query's begins. drafts: the tree of the last queries
# after a cache.
TEXTS = {"starts": 'start = i32 "b sq"\nfunction mask(b, h, i, j) return j <= i and j >= start[b][i] end'}
NAMES = {"drafts": "tree"}
SHIPPED = [name for name in MASKS if name not in TEXTS]


def text_of(name):
    return TEXTS.get(name) or scores.text_of(NAMES.get(name, name))


def queries_of(name, n):
    """How many queries there are beside n keys."""
    return DRAFTS if name == "drafts" else n


def starts(n):
    """Where the document of each query begins."""
    import torch
    return torch.searchsorted(documents(n), documents(n)).int()


def tree(n, own):
    """Queries in branches of `own`, a binary tree of them: who sees the branches above and, of its own, what lies before."""
    import torch
    branch, i = torch.arange(n, device="cuda") // own, torch.arange(n, device="cuda")
    seen = torch.zeros(n, n, device="cuda", dtype=torch.bool)
    above = branch
    while (above >= 0).any():
        seen |= above[:, None] == branch
        above = torch.where(above > 0, (above - 1).div(2, rounding_mode="floor"), -1)
    return seen & (i <= i[:, None])


def of_sequences(b, number):
    import torch
    return torch.full((b,), number, device="cuda", dtype=torch.int32)


def matrix(n):
    """A causal matrix of documents, as bytes."""
    import torch
    of, i = documents(n), torch.arange(n, device="cuda")
    return ((i <= i[:, None]) & (of == of[:, None])).to(torch.uint8)


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lengths", default="4096,16384")
    p.add_argument("--head-dims", default="64,128")
    p.add_argument("--masks", default=",".join(SHIPPED))
    p.add_argument("--backward", action="store_true", help="gradients of Q, K and V")
    p.add_argument("--flex", action="store_true", help="beside FlexAttention")
    p.add_argument("--alone", action="store_true", help="also each call by itself")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("-o", "--json", help="all samples")
    o = p.parse_args(argv)
    for name in o.masks.split(","):
        if name not in MASKS:
            p.error(f"the mask is \"{name}\"; accepted: {', '.join(MASKS)}")
    return o


def seen_of(name, values, at, rows, n):
    """Whether queries `rows` see each key, in head `at` of the first sequence."""
    import torch
    i, j = rows[:, None], torch.arange(n, device="cuda")[None]
    return MASKS[name][1](0, at, i, j, values)


def apart(name, values, q, k, v, out):
    """256 rows of all, of the first and the last head, as far from those of fp64 as their norm goes."""
    import torch
    n, h = k.shape[1], k.shape[2]
    rows, worst = torch.linspace(0, q.shape[1] - 1, 256, device="cuda").long(), 0
    for at in (0, h - 1):
        s = q[0, rows, at].double() @ k[0, :, at].double().T / math.sqrt(q.shape[-1])
        s = s.masked_fill(~seen_of(name, values, at, rows, n), -math.inf)
        right = s.softmax(1).nan_to_num(0) @ v[0, :, at].double()
        worst = max(worst, ((out[0, rows, at].double() - right).norm() / right.norm()).item())
    return worst


def share_of_tiles(name, values, h, n, br, bc):
    """Of the tiles of br x bc pairs those with one that is seen, in the first sequence."""
    import torch
    met, heads, queries = 0, range(h) if name == "blocks" else (0,), queries_of(name, n)
    for at in heads:
        for first in range(0, queries, br):
            row = seen_of(name, values, at, torch.arange(first, min(first + br, queries), device="cuda"), n).any(0)
            met = met + torch.nn.functional.pad(row, (0, -n % bc)).view(-1, bc).any(1).sum()
    return int(met) / (len(heads) * -(-queries // br) * -(-n // bc))


def flex(name, values, q, k, v, grad_out=None):
    """A call of FlexAttention's kernel and the seconds that its block mask takes, or why there is none. grad_out: of the backward, a
    contender of its own."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    b, n, h = k.shape[0], k.shape[1], k.shape[2]
    torch._dynamo.reset()

    def mod(b, h, i, j):
        return MASKS[name][1](b, h, i, j, values)
    by_head = h if name == "blocks" else None
    try:
        make = torch.compile(create_block_mask)
        mask = make(mod, b, by_head, q.shape[1], n, device="cuda")
        torch.cuda.synchronize()
        begun = time.perf_counter()
        mask = make(mod, b, by_head, q.shape[1], n, device="cuda")
        torch.cuda.synchronize()
        took = time.perf_counter() - begun
        if grad_out is not None:
            from common import gradients
            return gradients.flex(q, k, v, grad_out, block_mask=mask), took
        run, (q, k, v) = torch.compile(flex_attention, dynamic=False), (t.transpose(1, 2) for t in (q, k, v))
        run(q, k, v, block_mask=mask)
        return lambda _: run(q, k, v, block_mask=mask), took
    except Exception as e:  # whatever the compiler raises
        torch._dynamo.reset()
        return str(e).strip().splitlines()[0][:200], 0


def gradients_apart(name, values, q, k, v, grad_out, made):
    from common import gradients
    return gradients.apart(None, lambda h, i, j: MASKS[name][1](0, h, i, j, values), q, k, v, grad_out, *made)


def cell(fa, fagen, d, s, name, o):
    from common import gradients
    from common import graphs
    import torch
    h, b = scores.WIDTH // d, max(1, scores.TOKENS // s)
    q, k, v, grad_out = (torch.randn(b, queries_of(name, s) if of in "qg" else s, h, d, device="cuda", dtype=torch.bfloat16)
                         for of in "qkvg")
    kept, calls, values = [], {}, MASKS[name][0](b, h, s)
    row = {"d": d, "s": s, "mask": name}

    def ours(called, **more):
        if o.backward:
            calls[called] = gradients.contender(fa, fagen, q, k, v, grad_out, fagen.NONE, kept, **more)
            return calls[called](0)
        out = torch.empty_like(q)
        args = fa.args(q, k, v, out, fagen.MASKS["none"], **more)
        kept.append((fa.give_workspace(args), args, out, more))
        fa.launch(args)
        torch.cuda.synchronize()
        calls[called] = lambda _, args=args, out=out: (fa.launch(args), out)[1]
        return out
    ours("plain")
    try:
        out = ours(name, score=fa.score(text_of(name)), values=values)
    except fagen.Error as e:
        return {**row, "why": str(e)[:300]}
    row["apart"] = gradients_apart(name, values, q, k, v, grad_out, out) if o.backward else apart(name, values, q, k, v, out)
    row["backward"] = o.backward
    row["config"] = next((line.split(None, 1)[1] for line in fa.explain(kept[-1][1]).splitlines() if line.startswith("config")), "")
    br, bc = tile_of(row["config"])
    row["tiles"] = share_of_tiles(name, values, h, s, br, bc)
    if o.flex:
        run, took = flex(name, values, q, k, v, grad_out if o.backward else None)
        if isinstance(run, str):
            row["no flex"] = run
        else:
            calls["flex"], row["flex mask"] = run, took
    made = {called: run if hasattr(run, "sample") else graphs.capture(run, lasts=4e-3) for called, run in calls.items()}
    samples = scores.race(made, list(calls), o.rounds)
    row["seconds"], row["plain"] = samples[name], samples["plain"]
    row["bound"] = statistics.median(row["plain"]) * row["tiles"] / 0.90 + 8e-6
    row["of bound"] = statistics.median(row["seconds"]) / row["bound"]
    if o.alone:
        row.update(alone(made, name, row["tiles"]))
    if "flex" in samples:
        row["flex"] = samples["flex"]
        row["over flex"] = statistics.median(f / t for f, t in zip(samples["flex"], samples[name]))
    return row


def alone(made, name, tiles, lasts=0.5):
    """Seconds of the plain call and of a mask's, each by itself for so long, and the second over its bound."""
    seconds = {}
    for called in ("plain", name):
        samples, until = [], time.monotonic() + lasts
        while time.monotonic() < until:
            samples.append(made[called].sample())
        seconds[called] = statistics.median(samples[len(samples) // 2:])
    return {"plain alone": seconds["plain"], "seconds alone": seconds[name],
            "of bound alone": seconds[name] / (seconds["plain"] * tiles / 0.90 + 8e-6)}


def tile_of(config):
    """Rows of Q and keys of a config's tile."""
    found = dict(re.findall(r"\b(br|bc|bk)=(\d+)", config))
    return int(found["br"]), int(found.get("bc") or found["bk"])


def told(row):
    if "why" in row:
        return row["why"]
    taken, plain = (statistics.median(row[side]) * 1e6 for side in ("seconds", "plain"))
    text = f"{taken:9.1f} us, plain {plain:9.1f}, tiles {row['tiles']:.3f}, {row['of bound']:.2f} of the bound, apart {row['apart']:.1e}"
    text += "" if row["apart"] < scores.APART else "  WRONG"
    if "of bound alone" in row:
        text += f", alone {row['seconds alone'] * 1e6:.1f} us, plain {row['plain alone'] * 1e6:.1f}, {row['of bound alone']:.2f}"
    if "over flex" in row:
        text += f", {row['over flex']:.2f} of flex, its mask {row['flex mask'] * 1e3:.1f} ms"
    return text + f"  {row['config'].split(',')[0]},{tile_of(row['config'])[1]} keys"


def main():
    o = parse()

    def rows_of(fa, fagen, d, s):
        for name in o.masks.split(","):
            yield cell(fa, fagen, d, s, name, o)
    return scores.report(o, rows_of, "mask", told)


if __name__ == "__main__":
    raise SystemExit(main())
