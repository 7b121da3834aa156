#!/usr/bin/env python3
"""Attention with dropout and its gradients on this GPU, beside FlashAttention-2 and cuDNN with the same probability, each with its own
generator; and, where one is named, beside a folder of templates of before.

    python3 bench/dropout_race.py [--old old/templates] [--rounds 7] [-o dropout.json]
    python3 bench/dropout_race.py --case 128,16,4,2048,causal --p 0.1

Calls are CUDA graphs, sampled in turns, forward and back; a time is the median over the rounds. Forward, backward, and the two together
are held beside the best peer. What the old and the new templates write is held beside each other: their generator is the same.
"""
import argparse
import json
import statistics

CASES = ((64, 16, 4, 2048, "causal"), (128, 16, 4, 2048, "causal"), (64, 12, 3, 1500, "none"), (128, 20, 2, 1100, "none"),
         (128, 16, 1, 8192, "causal"), (64, 32, 8, 512, "causal"))  # d, heads, batch, length, mask
SEED, OFFSET = 1234, 0


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--case", action="append", default=[], metavar="D,H,B,S,MASK", help="in the place of the six cases of this file")
    p.add_argument("--p", type=float, default=0.1, help="probability of a weight to be dropped (default 0.1)")
    p.add_argument("--old", help="a folder of templates of before")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("-o", "--json", help="all samples")
    return p.parse_args(argv)


def cases(o):
    for text in o.case:
        *numbers, mask = text.split(",")
        yield (*map(int, numbers), mask)
    if not o.case:
        yield from CASES


def ours(fa, fagen, x, mask, p):
    """Calls of the forward and of the backward, and the tensors that they write."""
    import torch
    q, k, v, grad_o = x
    o, lse = torch.empty_like(q), torch.empty(q.shape[0], q.shape[2], q.shape[1], device="cuda")
    grads = [torch.empty_like(t) for t in (q, k, v)]
    rng = torch.tensor([SEED, OFFSET], dtype=torch.int64, device="cuda")
    forward = fa.args(q, k, v, o, fagen.MASKS[mask], lse=lse)
    backward = fa.gradient_args(q, k, v, o, lse, grad_o, *grads, mask=fagen.MASKS[mask])
    for a in (forward, backward):
        a.rng, a.dropout = rng.data_ptr(), p
    kept = [rng, lse, *(fa.give_workspace(a) for a in (forward, backward))]

    def run(a, out, keep=kept):
        return lambda i: (fa.launch(a), out)[1]
    return {"forward": run(forward, [o]), "backward": run(backward, grads)}, [o, *grads]


def peer(name, x, causal, p):
    import torch
    aten = torch.ops.aten
    q, k, v, grad_o = (t.transpose(1, 2) for t in x)
    if name == "fa2":
        def forward(i):
            return aten._scaled_dot_product_flash_attention(q, k, v, p, causal, False)
        out, lse, first_q, first_k, sq, sk, seed, offset, _ = forward(0)
        saved = (out, lse, first_q, first_k, sq, sk, p, causal, seed, offset)
        return {"forward": lambda i: list(forward(i)[:1]),
                "backward": lambda i: list(aten._scaled_dot_product_flash_attention_backward(grad_o, q, k, v, *saved))}

    def forward(i):
        return aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, p, causal, False)
    out, lse, first_q, first_k, sq, sk, seed, offset, _ = forward(0)
    saved = (out, lse, seed, offset, None, first_q, first_k, sq, sk, p, causal)
    return {"forward": lambda i: list(forward(i)[:1]),
            "backward": lambda i: list(aten._scaled_dot_product_cudnn_attention_backward(grad_o, q, k, v, *saved))}


def race(sides, fagen, case, o):
    import torch
    from common import graphs
    d, heads, b, s, mask = case
    x = [torch.randn(b, s, heads, d, device="cuda", dtype=torch.bfloat16) for _ in range(4)]
    runs, written, notes = {}, {}, {}
    for name, fa in sides.items():
        runs[name], written[name] = ours(fa, fagen, x, mask, o.p)
    for name in ("fa2", "cudnn"):
        try:
            runs[name] = peer(name, x, mask == "causal", o.p)
        except RuntimeError as e:
            notes[name] = str(e).splitlines()[0][:120]
    made = {}
    for name, calls in runs.items():
        for way in ("forward", "backward"):  # the backward reads what the forward wrote
            calls[way](0)
            torch.cuda.synchronize()
            made[name, way] = graphs.capture(calls[way], lasts=3e-3)
    if len(written) == 2:
        notes["apart"] = max(((a.float() - b.float()).norm() / a.float().norm()).item() for a, b in zip(*written.values()))
    samples = {key: [] for key in made}
    for n in range(o.rounds + 1):
        for key in list(made)[::-1 if n % 2 else 1]:
            samples[key].append(made[key].sample())
    us = {f"{name} {way}": 1e6 * statistics.median(t[1:]) for (name, way), t in samples.items()}
    return {"case": f"d={d},h={heads},b={b},s={s},{mask}", "us": us, "notes": notes}


def told(row):
    us = row["us"]

    def together(name, ways):
        return sum(us[f"{name} {way}"] for way in ways)
    peers = {key.split()[0] for key in us} & {"fa2", "cudnn"}
    parts = [row["case"]]
    for ways in (("forward",), ("backward",), ("forward", "backward")):
        best = min((together(name, ways) for name in peers), default=float("nan"))
        text = f"{' and '.join(ways)} {together('ours', ways):.0f} us, {best / together('ours', ways):.3f} of the best peer"
        if "old forward" in us:
            text += f", {together('ours', ways) / together('old', ways):.3f} of the old one's time"
        parts.append(text)
    return "; ".join(parts) + (f"; {row['notes']}" if row["notes"] else "")


def main():
    o = parse()
    from common import fagen, tournament
    sides = {"ours": fagen.Fagen(), **({"old": fagen.Fagen(template_dir=o.old)} if o.old else {})}
    tournament.warm_up()
    rows = []
    for case in cases(o):
        rows.append(race(sides, fagen, case, o))
        print(told(rows[-1]), flush=True)
    ratios = []
    for row in rows:
        peers = {key.split()[0] for key in row["us"]} & {"fa2", "cudnn"}
        if peers:
            both = {name: row["us"][f"{name} forward"] + row["us"][f"{name} backward"] for name in (*peers, "ours")}
            ratios.append(min(both[name] for name in peers) / both["ours"])
    if ratios:
        print(f"forward and backward over the best peer: {len(ratios)} cases, mean {statistics.geometric_mean(ratios):.3f}, "
              f"least {min(ratios):.3f}")
    if o.json:
        import torch
        with open(o.json, "w") as f:
            json.dump({"device": torch.cuda.get_device_name(), "p": o.p, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
