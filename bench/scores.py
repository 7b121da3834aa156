#!/usr/bin/env python3
"""Score programs on this GPU: what share of the rate of plain causal attention each keeps, and beside FlexAttention.

    python3 bench/scores.py [--lengths 16384] [--head-dims 64,128] [--programs softcap,alibi] [--backward] [--flex] [--fa4] [--rounds 9]
                            [-o scores.json]

The programs are those that ship, templates/pairs/programs, in bf16 with heads that are 2048 wide together and the causal mask; a dense bias
has a matrix for each head, in bf16, the same for each sequence; `bias_bf16:shared` has one for all heads. Calls are CUDA graphs, sampled in
turns, forward and back, each program with the plain call alone: at the power limit the clock is that of what ran in the last tens of
milliseconds, so that beside others a call has the clock of its neighbours. --together: all in one race. A share is the median over the rounds of the plain time over the program's of
the same round. Rows of the result are held against fp64 before anything is timed. --flex: the same function by
torch.compile(flex_attention), with a causal block mask. --backward: the gradients alone, beside those of plain causal attention;
FlexAttention's run outside of graphs.
"""
import argparse
import json
import math
import os
import statistics

HERE = os.path.dirname(os.path.abspath(__file__))
CAP = 50.0
WIDTH, TOKENS = 2048, 16384
CHECKED = 64  # rows that are held against fp64
APART = 0.02  # of the norm of those rows


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lengths", default="16384")
    p.add_argument("--head-dims", default="64,128")
    p.add_argument("--programs", default=",".join(PROGRAMS))
    p.add_argument("--backward", action="store_true", help="gradients of Q, K and V")
    p.add_argument("--flex", action="store_true", help="beside FlexAttention, which compiles for some ten seconds each")
    p.add_argument("--fa4", action="store_true", help="beside FlashAttention-4's plain causal kernel, which compiles for some ten seconds")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--together", action="store_true", help="all programs in one race")
    p.add_argument("-o", "--json", help="all samples")
    o = p.parse_args(argv)
    for name in o.programs.split(","):
        if name not in PROGRAMS:
            p.error(f"the program is \"{name}\"; accepted: {', '.join(PROGRAMS)}")
    return o


def slopes(h, s):
    import torch
    return [torch.tensor([2 ** (-8 * (i + 1) / h) for i in range(h)], device="cuda")]


def table(*extents):
    import torch
    return [torch.randn(*extents, device="cuda")]


def bias(h, s):
    import torch
    return [torch.randn(h, s, s, device="cuda", dtype=torch.bfloat16)[None]]


# name: (operands of h heads and s keys, the score of FlexAttention and of fp64; None: it has no such thing). Of those functions s is the
# scaled product, h, i and j are tensors of indices, x the operands.
PROGRAMS = {
    "softcap": (lambda h, s: [CAP], lambda s, h, i, j, n, x: CAP * (s / CAP).tanh()),
    "softcap_exact": (lambda h, s: [CAP], lambda s, h, i, j, n, x: CAP * (s / CAP).tanh()),
    "alibi": (slopes, lambda s, h, i, j, n, x: s + x[0][h] * (j - i)),
    "relative": (lambda h, s: table(h, 2 * s - 1), lambda s, h, i, j, n, x: s + x[0][h, j - i + n - 1]),
    "t5_decoder": (lambda h, s: table(h, 32), lambda s, h, i, j, n, x: s + x[0][h, bucket(i - j)]),
    "bias_bf16": (bias, lambda s, h, i, j, n, x: s + x[0][0, h, i, j]),
    "bias_bf16:shared": (lambda h, s: [bias(1, s)[0]], lambda s, h, i, j, n, x: s + x[0][0, 0, i, j]),
    "temperature": (lambda h, s: [1 + 0.1 * table(h)[0]], lambda s, h, i, j, n, x: s * x[0][h]),
    "sink": (lambda h, s: table(h), None),
    "softcap_sink": (lambda h, s: [CAP, *table(h)], lambda s, h, i, j, n, x: CAP * (s / CAP).tanh()),
}


SINKS = ("sink", "softcap_sink")  # of which FlexAttention has none; the sinks are the last operand


def bucket(n):
    """T5's bucket of a key n places before the query: 16 of their own, then wider and wider ones."""
    import torch
    n = n.clamp(min=0)
    far = 16 + ((n.clamp(min=1) / 16).log() / math.log(8) * 16).floor().int()
    return torch.where(n < 16, n, far.clamp(max=31))


def values_of(name, b, h, s):
    """The operands, of h heads and s keys; b sequences share a bias."""
    if name.endswith(":shared"):
        return [x.expand(b, h, s, s) for x in PROGRAMS[name][0](h, s)]
    return [x.expand(b, *x.shape[1:]) if hasattr(x, "dim") and x.dim() == 4 else x for x in PROGRAMS[name][0](h, s)]


def text_of(name):
    with open(os.path.join(HERE, "..", "templates", "pairs", "programs", f"{name.split(':')[0]}.lua")) as f:
        return f.read()


def apart(name, values, q, k, v, out):
    """The last CHECKED rows of the first and the last head, as far from those of fp64 as their norm goes."""
    import torch
    n, h = q.shape[1], q.shape[2]
    i, j = torch.arange(n - CHECKED, n, device="cuda")[:, None], torch.arange(n, device="cuda")
    worst = 0
    for at in (0, h - 1):
        s = q[0, -CHECKED:, at].double() @ k[0, :, at].double().T / math.sqrt(q.shape[-1])
        score = PROGRAMS[name][1]
        if score:
            s = score(s, torch.tensor(at, device="cuda"), i, j, n,
                      [x.double() if hasattr(x, "double") and x.dim() < 3 else x for x in values])
        s = s.double().masked_fill(j > i, -math.inf)
        if name in SINKS:
            s = torch.cat([s, values[-1][at].double().expand(CHECKED, 1)], 1)
        right = s.softmax(1)[:, :n] @ v[0, :, at].double()
        worst = max(worst, ((out[0, -CHECKED:, at].double() - right).norm() / right.norm()).item())
    return worst


def flex(name, values, q, k, v, grad_out=None):
    """A call of FlexAttention's kernel, or why there is none. grad_out: of the backward, a contender of its own."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    score, n = PROGRAMS[name][1], q.shape[1]
    if name in SINKS:
        return "flex has no sink"
    values = [x[:1, :1 if name.endswith(":shared") else None] if hasattr(x, "dim") and x.dim() == 4 else x for x in values]
    if any(hasattr(x, "numel") and x.numel() > 2 ** 31 for x in values):
        return "flex ends in an illegal address where an operand has more than 2^31 elements"  # by itself, in a process of its own
    torch._dynamo.reset()
    mask = create_block_mask(lambda b, h, i, j: j <= i, None, None, n, n, device="cuda")

    def mod(s, b, h, i, j):
        return score(s, h, i, j, n, values)
    if grad_out is not None:
        from common import gradients
        return gradients.flex(q, k, v, grad_out, score_mod=mod, block_mask=mask)
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    why = ""
    for options in ({}, {"num_stages": 2}, {"num_stages": 1}):  # its own choice may not fit into shared memory
        run = torch.compile(flex_attention, dynamic=False)
        try:
            run(q, k, v, score_mod=mod, block_mask=mask, kernel_options=options)
            return lambda _: run(q, k, v, score_mod=mod, block_mask=mask, kernel_options=options)
        except Exception as e:  # whatever the compiler raises
            why = str(e).strip().splitlines()[0][:200]
            torch._dynamo.reset()
    return why


def race(made, names, rounds):
    """Times of calls in turns, forward and back, without those of the first round, and of the round before it, which brings the clock."""
    samples = {name: [] for name in names}
    for n in range(rounds + 2):
        for name in names[::-1 if n % 2 else 1]:
            samples[name].append(made[name].sample())
    return {name: times[2:] for name, times in samples.items()}


def gradients_apart(name, values, q, k, v, grad_out, made):
    from common import gradients
    score, n = PROGRAMS[name][1], q.shape[1]
    numbers = [x.double() if hasattr(x, "double") and x.dim() < 3 else x for x in values]
    return gradients.apart(score and (lambda s, h, i, j: score(s, h, i, j, n, numbers)), lambda h, i, j: j <= i, q, k, v, grad_out, *made)


def cell(fa, fagen, d, s, names, o):
    from common import gradients
    from common import graphs
    import torch
    h, b = WIDTH // d, max(1, TOKENS // s)
    q, k, v, grad_out = (torch.randn(b, s, h, d, device="cuda", dtype=torch.bfloat16) for _ in "qkvg")
    calls, kept, rows = {}, [], {}

    def ours(name, **more):
        if o.backward:
            calls[name] = gradients.contender(fa, fagen, q, k, v, grad_out, fagen.CAUSAL, kept, **more)
            return calls[name](0)
        out = torch.empty_like(q)
        args = fa.args(q, k, v, out, fagen.CAUSAL, **more)
        kept.append((fa.give_workspace(args), args, out, more))
        fa.launch(args)
        torch.cuda.synchronize()
        calls[name] = lambda _, args=args, out=out: (fa.launch(args), out)[1]
        return out
    ours("plain")
    if o.fa4:
        from sections import backward_peers
        peer = backward_peers.Fa4()
        if peer.module is None:
            raise SystemExit(f"--fa4: {peer.why}")
        if o.backward:
            calls["fa4"] = peer.backward(q, k, v, grad_out, True)
        else:
            calls["fa4"] = lambda _: peer.module.flash_attn_func(q, k, v, causal=True)[0]
        calls["fa4"](0)
    for name in names:
        values = values_of(name, b, h, s)
        rows[name] = {"d": d, "s": s, "program": name}
        try:
            out = ours(name, score=fa.score(text_of(name)), values=values)
        except fagen.Error as e:
            rows[name]["why"] = str(e)[:300]
            continue
        told_apart = gradients_apart(name, values, q, k, v, grad_out, out) if o.backward else apart(name, values, q, k, v, out)
        rows[name]["apart"], rows[name]["backward"] = told_apart, o.backward
        told_config = (line.split(None, 1)[1] for line in fa.explain(kept[-1][1]).splitlines() if line.startswith("config"))
        rows[name]["config"] = next(told_config, "")
        if o.flex:
            run = flex(name, values, q, k, v, grad_out if o.backward else None)
            if isinstance(run, str):
                rows[name]["no flex"] = run
            else:
                calls[f"flex {name}"] = run
    made = {name: run if hasattr(run, "sample") else graphs.capture(run, lasts=4e-3) for name, run in calls.items()}
    raced = [name for name in rows if name in made]
    samples = race(made, list(made), o.rounds) if o.together else {}
    for name in raced:
        row = rows[name]
        if not o.together:
            samples = race(made, [call for call in ("plain", name, f"flex {name}", "fa4") if call in made], o.rounds)
        if name in samples:
            row["seconds"], row["plain"] = samples[name], samples["plain"]
            row["share"] = statistics.median(p / t for p, t in zip(samples["plain"], samples[name]))
            if "fa4" in samples:
                row["over fa4"] = statistics.median(f / t for f, t in zip(samples["fa4"], samples[name]))
            if f"flex {name}" in samples:
                row["flex"] = samples[f"flex {name}"]
                row["over flex"] = statistics.median(f / t for f, t in zip(row["flex"], samples[name]))
    return list(rows.values())


def told(row):
    if "why" in row:
        return f"{row['why']}"
    text = f"{statistics.median(row['seconds']) * 1e6:9.1f} us, {row['share']:.3f} of plain causal, apart {row['apart']:.1e}"
    text += "  WRONG" if not row["apart"] < APART else ""
    text += f", {row['over fa4']:.3f} of FlashAttention-4's" if "over fa4" in row else ""
    return text + (f", {row['over flex']:.2f} of flex" if "over flex" in row else "")


def report(o, rows_of, title, told):
    """The rows of each length and head_dim as rows_of(fa, fagen, d, s) makes them, a line each; all of them to o.json after each cell.
    Whether a result is wrong."""
    from common import fagen
    import torch
    from common import tournament
    fa, rows = fagen.Fagen(), []
    tournament.warm_up()
    print(torch.cuda.get_device_name())
    for s in map(int, o.lengths.split(",")):
        for d in map(int, o.head_dims.split(",")):
            for row in rows_of(fa, fagen, d, s):
                rows.append(row)
                print(f"d={d:3} s={s:5} {row[title]:14} {told(row)}", flush=True)
                torch.cuda.empty_cache()
            if o.json:
                with open(o.json, "w") as f:
                    json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, f)
    return any(not row.get("apart", 0) < APART for row in rows)


def main():
    o = parse()
    return report(o, lambda fa, fagen, d, s: cell(fa, fagen, d, s, o.programs.split(","), o), "program", told)


if __name__ == "__main__":
    raise SystemExit(main())
