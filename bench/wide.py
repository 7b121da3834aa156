#!/usr/bin/env python3
"""Heads wider than 256: MLA's absorbed decode, prompts of d = 320 and 512 beside 256, and gradients. In CUDA graphs, in turns.

Sections, all of them where none is named:
    mla         d = 576, dv = 512, V in K, one key head, caches in pages of 64: TFLOP/s, TB/s of the cache's bytes, and what is asked.
                Launches in turn have caches of their own, some 400 MB in all, so that keys come from memory and not from the L2
    prompts     8 heads, d = 256, 320 and 512 with 8k and 2k tokens: a rate, and its share of the rate at 256
    gradients   the same, backward
Each output is held against attention in fp32 over some of its rows before it is timed.

    python3 bench/wide.py mla -o mla.json
    python3 bench/wide.py mla --only 'b=16,' --config 'parts=2' --config 'bc=32,stages_k=4,stages_v=4' --templates old/templates
    python3 bench/winners.py --chip 'NVIDIA H200' --merge runtime/choose/defaults.inc mla.json
"""
import argparse
import itertools
import json
import math
import random
import re
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

PAGE, D, DV = 64, 576, 512
SECTIONS = ("mla", "prompts", "gradients")


@dataclass(frozen=True)
class Case:
    section: str
    b: int
    hq: int
    hkv: int
    sq: int
    sk: int
    d: int
    dv: int
    causal: bool = False

    def name(self):
        return f"d={self.d} b={self.b},hq={self.hq},sq={self.sq},sk={self.sk},{'causal' if self.causal else 'none'}"

    def flops(self):
        seen = self.sq * self.sk if not self.causal else sum(max(0, self.sk - self.sq + 1 + i) for i in range(self.sq))
        pairs = self.b * self.hq * seen
        return 2 * pairs * (self.d + self.dv) if self.section != "gradients" else 2 * pairs * (3 * self.d + 2 * self.dv)

    def bytes(self):
        """Of one read of K, which V lies in, of Q and of O."""
        return 2 * (self.b * self.sk * self.hkv * self.d + self.b * self.hq * self.sq * (self.d + self.dv))


def mla(hq, sq, b, sk):
    return Case("mla", b, hq, 1, sq, sk, D, DV, sq > 1)


MLA = [mla(*x) for x in (
    (128, 1, 16, 4096), (128, 1, 66, 4096), (128, 1, 64, 16384), (128, 1, 32, 4096), (128, 2, 16, 4096), (16, 1, 128, 8192),
    (32, 1, 32, 8192), (64, 1, 32, 4096), (128, 1, 16, 16384), (128, 2, 64, 4096), (64, 1, 128, 8192), (16, 1, 32, 4096),
    (32, 1, 128, 4096), (128, 1, 16, 1024), (128, 1, 2, 65536), (16, 1, 4, 65536), (64, 1, 16, 16384), (128, 1, 132, 4096))]
PROMPTS = [Case("prompts", b, 8, 8, s, s, d, d, causal)
           for b, s in ((1, 8192), (4, 2048)) for causal in (False, True) for d in (256, 320, 512)]
GRADIENTS = [Case("gradients", 1, 8, 8, s, s, d, d, causal) for s in (2048,) for causal in (False, True) for d in (256, 320, 512)]
CASES = {"mla": MLA, "prompts": PROMPTS, "gradients": GRADIENTS}


def prompt(d, dv, b, hq, hkv, n, mask):
    return Case("prompts", int(b), int(hq), int(hkv), int(n), int(n), int(d), int(dv), mask == "causal")


def drawn(section, count, seed):
    """So many cases by chance: caches of at most 1.5 GB, prompts of at most 2 TFLOP."""
    rng, out = random.Random(f"{section} {seed}"), []
    while len(out) < count:
        def about(least, most):
            return round(math.exp(rng.uniform(math.log(least), math.log(most))))
        if section == "mla":
            case = mla(rng.choice((16, 32, 64, 128, 128)), rng.choice((1, 1, 1, 2)), about(2, 140), about(512, 40000))
            small = case.b * case.sk * D * 2 < 1.5e9
        else:
            hkv, n = rng.choice((1, 2, 4, 8)), about(300, 8192)
            d, dv = rng.choice(((320, 320), (512, 512), (288, 288), (320, 256), (384, 384), (448, 448), (576, 512)))
            dv = min(dv, d)
            case = Case(section, about(1, 8), hkv * rng.choice((1, 1, 2, 4)), hkv, n, n, d, dv, rng.random() < .5)
            small = case.flops() < 2e12 and section == "prompts" or case.flops() < 5e11 and d <= 512
        if small:
            out.append(case)
    return out


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("section", nargs="*", help="mla, prompts, gradients")
    p.add_argument("--only", help="cases whose name this regular expression finds")
    p.add_argument("--draw", type=int, default=0, help="in place of a section's cases so many of random shapes")
    p.add_argument("--seed", type=int, default=1, help="of those (default 1)")
    p.add_argument("--case", action="append", default=[], metavar="HEADS,QUERIES,B,KEYS",
                   help="of mla, in place of its cases; each may be a choice, as 16|128,1|2,16,4096; repeat")
    p.add_argument("--prompt", action="append", default=[], metavar="D,DV,B,HEADS,KVHEADS,TOKENS,MASK",
                   help="of prompts, in place of its cases; repeat")
    p.add_argument("--lengths", choices=("full", "uniform", "few", "zipf"), default="full",
                   help="of mla's sequences: all as long as the cache; 1 to that by chance; one of eight as long, the others an eighth; "
                   "the n-th an n-th of it")
    p.add_argument("--sets", type=int, default=0, help="caches of mla in turns (default: as many as are 400 MB, eight at most)")
    p.add_argument("--config", action="append", default=[],
                   help="values that go in the place of the chosen config's, as parts=4,bc=32|64, or a whole config; repeat")
    p.add_argument("--templates", action="append", default=[], help="a folder of templates that goes before the library's; repeat")
    p.add_argument("--top", type=int, default=0, help="also so many configs that the model ranks first")
    p.add_argument("--peers", action="store_true", help="FlashAttention-3, FlashMLA and FlashInfer, where they are there")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--seconds", type=float, default=200, help="what does not begin before is left out and named (default 200)")
    p.add_argument("-o", "--output", help="a JSON file, which winners.py reads")
    o = p.parse_args(argv)
    for s in o.section:
        if s not in SECTIONS:
            p.error(f"the section is \"{s}\"; accepted: {', '.join(SECTIONS)}")
    return o


def expand(text):
    """All that values with choices stand for: bc=32|48,cluster=2."""
    pairs = [v.split("=", 1) for v in text.split(",")]
    return [",".join(f"{k}={v}" for (k, _), v in zip(pairs, values)) for values in itertools.product(*(v.split("|") for _, v in pairs))]


def asked(case, chip):
    """What issue 41 asks of the case on an H200, as (number, unit), on other chips with their bandwidth; None where it asks for nothing."""
    tb = 4.56 if "H200" in chip else 2.95
    cache = 2 * case.b * case.sk * case.d
    if case.section != "mla" or cache < 67e6:
        return None
    if case.hq == 128 and case.b >= 16:
        return 600.0, "TFLOP/s"
    if case.hq in (16, 32) and case.sq == 1:
        return 0.85 * tb, "TB/s"
    if case.hq == 64 and case.sq == 1:  # of both limits the lesser: bytes, or 750 TFLOP/s that products reach
        return 0.8 / max(case.bytes() / (tb * 1e12), case.flops() / 989e12) * case.flops() / 1e12, "TFLOP/s"
    return None


SETS_BYTES = 400e6  # of all caches in turns: six times the largest L2


def lengths_of(how, case, seed):
    """Keys of each sequence of a case; none has fewer than queries."""
    rng = random.Random(f"{how} {seed} {case.name()}")
    of = {"full": lambda i: case.sk, "uniform": lambda i: rng.randint(1, case.sk), "few": lambda i: case.sk if i % 8 == 0 else case.sk // 8,
          "zipf": lambda i: case.sk // (i + 1)}
    return [max(case.sq, of[how](i)) for i in range(case.b)]


class Data:
    """Tensors of a case, and attention in fp32 of some of its rows. Of sets of caches each call may take the next. share: keys that there
    are of those of full caches."""

    def __init__(self, case, options):
        import torch
        self.case, c, self.share, self.sets = case, case, 1.0, 1
        make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        self.q, self.o = make(c.b, c.sq, c.hq, c.d), torch.empty(c.b, c.sq, c.hq, c.dv, device="cuda", dtype=torch.bfloat16)
        self.table = self.lengths = None
        if c.section == "mla":
            n = (c.sk + PAGE - 1) // PAGE
            self.k = make(c.b * n, PAGE, 1, c.d)
            self.table = torch.randperm(c.b * n, device="cuda").to(torch.int32).view(c.b, n)
            some = lengths_of(options.lengths, c, options.seed)
            self.lengths, self.share = torch.tensor(some, dtype=torch.int32, device="cuda"), sum(some) / (c.b * c.sk)
            self.sets = options.sets or max(1, min(8, math.ceil(SETS_BYTES / (self.k.nbytes * self.share))))
            self.caches = [self.k, *(self.k.clone() for _ in range(self.sets - 1))]
        else:
            self.k, self.v = make(c.b, c.sk, c.hkv, c.d), make(c.b, c.sk, c.hkv, c.dv)

    def error(self, out):
        """The relative error of the last sequence's rows of some heads."""
        import torch
        c, worst = self.case, 0.0
        for head in {0, c.hq - 1}:
            seen = c.sk if self.lengths is None else int(self.lengths[-1])
            k = self.k[self.table[-1].long()].reshape(-1, c.d)[:seen] if c.section == "mla" else self.k[-1, :, head * c.hkv // c.hq]
            v = k[:, :c.dv] if c.section == "mla" else self.v[-1, :, head * c.hkv // c.hq]
            rows = torch.arange(max(0, c.sq - 64), c.sq, device="cuda")
            s = self.q[-1, rows, head].float() @ k.float().T * c.d ** -0.5
            if c.causal:
                s = s.masked_fill(torch.arange(seen, device="cuda")[None] > rows[:, None] + seen - c.sq, float("-inf"))
            right = s.softmax(-1) @ v.float()
            worst = max(worst, float((out[-1, rows, head].float() - right).norm() / right.norm()))
        return worst


class Side:
    """fagen with some templates, and calls of it."""

    def __init__(self, templates=None):
        from common import fagen
        self.fagen, self.label = fagen, templates or "tree"
        self.fa = fagen.Fagen(lever=True, template_dir=templates)

    def problem(self, case):
        f = self.fagen
        fields = dict(dtype="bf16", mask="causal" if case.causal else "none", d=case.d, dv=case.dv, b=case.b, hq=case.hq, hkv=case.hkv,
                      sq=case.sq, sk=case.sk)
        if case.section == "mla":
            fields.update(features=f.LENGTHS | f.PAGES | f.abi.FA_FEATURE_V_IN_K, page=PAGE)
        return self.fa.problem(**fields, op=f.BACKWARD if case.section == "gradients" else f.FORWARD)

    def configs(self, case, changes, top):
        """{config: where it is from}: the chosen one, it with changes, and the model's first."""
        p = self.problem(case)
        told = self.fagen.explained(self.fa.explain(problem=p))
        out = {told["config"]: "chosen"}
        for text in (t for change in changes for t in expand(change) if case.d > 256):
            values = dict(v.split("=", 1) for v in text.split(","))
            if ":" in text:
                out.setdefault(text, "named")
                continue
            family, _, rest = told["config"].partition(":")
            merged = [f"{k}={values.pop(k, v)}" for k, v in (x.split("=", 1) for x in rest.split(","))]
            if values:
                continue  # of another family
            out.setdefault(family + ":" + ",".join(merged), text)
        for config in self.fa.rank(p, top, None) if top else ():
            out.setdefault(config, "model")
        return told["problem"], out

    def calls(self, data, plan):
        """Arguments of a call with each set of caches; they share a workspace, as launches in one stream may."""
        c, f = data.case, self.fagen
        mask, out, space = f.MASKS["causal" if c.causal else "none"], [], None
        for k in data.caches if c.section == "mla" else [data.k]:
            v = k[..., :c.dv] if c.section == "mla" else data.v
            a = self.fa.args(data.q, k, v, data.o, mask, lengths=data.lengths, table=data.table, sk=c.sk)
            if c.section == "mla":
                a.layout_flags = f.abi.FA_V_IN_K
            if space is None:
                space = self.fa.give_workspace(a, plan)
            else:
                a.workspace, a.workspace_size = out[0].workspace, out[0].workspace_size
            out.append(a)
        return out, [space, data]

    def gradient(self, data):
        import torch
        c, f = data.case, self.fagen
        mask = f.MASKS["causal" if c.causal else "none"]
        lse = torch.empty(c.b, c.hq, c.sq, device="cuda")
        a = self.fa.args(data.q, data.k, data.v, data.o, mask, lse=lse)
        keep = [self.fa.give_workspace(a), lse]
        self.fa.launch(a)
        grad = torch.randn_like(data.o)
        outs = [torch.empty_like(t) for t in (data.q, data.k, data.v)]
        a = self.fa.gradient_args(data.q, data.k, data.v, data.o, lse, grad, *outs, mask=mask)
        keep += [self.fa.give_workspace(a), grad, outs]
        return a, keep, grad, outs


def gradient_error(data, grad, outs):
    """The larger relative error of dQ, dK and dV of the last head, beside autograd in fp32."""
    import torch
    c = data.case
    q, k, v = (t[-1, :, -1].float().requires_grad_() for t in (data.q, data.k, data.v))
    s = q @ k.T * c.d ** -0.5
    if c.causal:
        s = s.masked_fill(torch.ones_like(s).triu(1).bool(), float("-inf"))
    right = torch.autograd.grad(s.softmax(-1) @ v, (q, k, v), grad[-1, :, -1].float())
    return max(float((got[-1, :, -1].float() - x).norm() / x.norm()) for got, x in zip(outs, right))


def peers(data):
    """{name: a call with one of the caches} of FlashAttention-3, FlashMLA and FlashInfer, where they run here; why not is told."""
    import torch
    c, out = data.case, {}
    if c.section != "mla":
        return out
    try:
        from sections.decode_peers import PEERS
        fa3 = PEERS["fa3kv"]().module
        q_rope, q_latent = data.q[..., c.dv:], data.q[..., :c.dv]

        def run(k):
            out = fa3.flash_attn_with_kvcache(q_rope, k[..., c.dv:], k[..., :c.dv], qv=q_latent, cache_seqlens=data.lengths,
                                              page_table=data.table, softmax_scale=c.d ** -0.5, causal=c.causal, num_splits=0)
            return out[0] if isinstance(out, tuple) else out
        out["fa3 qv"] = run
    except Exception as e:
        print(f"  fa3: {str(e).splitlines()[0][:100]}", file=sys.stderr)
    try:
        from flash_mla import flash_mla_with_kvcache, get_mla_metadata
        meta = get_mla_metadata(data.lengths, c.sq * c.hq, 1)
        out["flash_mla"] = lambda k: flash_mla_with_kvcache(data.q, k, data.table, data.lengths, c.dv, *meta, c.d ** -0.5, c.causal)[0]
    except Exception as e:  # it is not there, or does not take this
        print(f"  flash_mla: {str(e).splitlines()[0][:100]}", file=sys.stderr)
    try:
        import flashinfer
        w = flashinfer.mla.BatchMLAPagedAttentionWrapper(torch.empty(128 << 20, dtype=torch.uint8, device="cuda"), backend="auto")
        n = data.table.shape[1]
        w.plan(torch.arange(c.b + 1, dtype=torch.int32, device="cuda") * c.sq, torch.arange(c.b + 1, dtype=torch.int32, device="cuda") * n,
               data.table.flatten(), data.lengths, c.hq, c.dv, c.d - c.dv, PAGE, c.causal, c.d ** -0.5, torch.bfloat16, torch.bfloat16)
        q = data.q.view(-1, c.hq, c.d)
        def run_paged(k):
            kv = k.view(-1, PAGE, c.d)
            return w.run(q[..., :c.dv], q[..., c.dv:], kv[..., :c.dv], kv[..., c.dv:]).view(c.b, c.sq, c.hq, c.dv)
        out["flashinfer"] = run_paged
    except Exception as e:
        print(f"  flashinfer: {str(e).splitlines()[0][:100]}", file=sys.stderr)
    return out


def measure(case, sides, options, plans):
    from common import graphs
    data, calls, variants, keep = Data(case, options), {}, {}, []
    for side in sides:
        if case.section == "gradients":
            a, kept, grad, outs = side.gradient(data)
            keep.append(kept)
            side.fa.launch(a)
            error = gradient_error(data, grad, outs)
            config = side.fagen.explained(side.fa.explain(args=a))["config"]
            name = (side.label, config, "chosen")
            calls[name] = lambda i, s=side, a=a: s.fa.launch(a)
            variants[name] = {"error": error, "config": config}
            continue
        for config, (plan, origin) in plans[side.label].items():
            name = (side.label, config, origin)
            if isinstance(plan, str):
                variants[name] = {"why": plan, "config": config}
                continue
            some, kept = side.calls(data, plan)
            keep.append(kept)
            data.o.fill_(float("nan"))
            side.fa.launch(some[-1], plan)
            error = data.error(data.o)
            variants[name] = {"error": error, "config": config}
            if not error < 2e-2:
                variants[name]["why"] = f"wrong: relative error {error:.2e}"
                continue
            calls[name] = lambda i, s=side, some=some, plan=plan: s.fa.launch(some[i % len(some)], plan)
    for name, call in (peers(data) if options.peers else {}).items():
        key = (name, "", "peer")
        try:
            variants[key] = {"error": data.error(call(data.k)), "config": name, "peer": True}
            calls[key] = lambda i, call=call: call(data.caches[i % data.sets])
        except Exception as e:  # a shape that it does not take raises its own kinds
            variants[key] = {"why": str(e).splitlines()[0][:120], "config": name, "peer": True}
    made = {name: graphs.capture(call, sets=data.sets, lasts=2e-3) for name, call in calls.items()}
    for name, seconds in graphs.race(made, random.Random(1), options.rounds).items():
        variants[name]["seconds"] = seconds
    del keep
    return variants, data.share


def differing(config, base):
    """Where it differs from another config."""
    a, b = (set(x.replace(":", ",").split(",")) for x in (config, base))
    return ",".join(sorted(a - b)) or "as chosen"


def main(argv=None):
    options = parse(argv)
    import torch
    torch.manual_seed(1)
    chip = torch.cuda.get_device_name()
    print(chip, flush=True)
    sides = [Side(), *map(Side, options.templates)]
    of = {s: drawn(s, options.draw, options.seed) if options.draw else CASES[s] for s in options.section or SECTIONS}
    if options.case:
        of["mla"] = [mla(*map(int, x)) for text in options.case for x in itertools.product(*(v.split("|") for v in text.split(",")))]
    if options.prompt:
        of["prompts"] = [prompt(*text.split(",")) for text in options.prompt]
    cases = [c for some in of.values() for c in some if not options.only or re.search(options.only, c.name())]
    begun, documents, problems = time.monotonic(), [], {}
    plans = {c: {s.label: {} for s in sides} for c in cases}

    def compile_one(job):
        case, side, config, origin = job
        try:
            if case.section == "gradients":
                side.fa.prepare(side.problem(case))
                return
            plan = side.fa.plan(side.problem(case), side.fa.pick(side.problem(case), config))
        except side.fagen.Error as e:
            plan = str(e)
        plans[case][side.label][config] = plan, origin
    jobs = []
    for case in cases:
        for side in sides:
            problems[case], configs = side.configs(case, options.config, options.top)
            jobs += [(case, side, config, origin) for config, origin in configs.items()]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(compile_one, jobs))
    print(f"{len(jobs)} kernels in {time.monotonic() - begun:.0f} s", flush=True)
    begun, rates, left_out, over, regrets = time.monotonic(), {}, [], {}, []
    for case in cases:
        if time.monotonic() - begun > options.seconds:
            left_out.append(case.name())
            continue
        try:
            variants, share = measure(case, sides, options, plans[case])
        except (RuntimeError, torch.OutOfMemoryError) as e:
            print(f"{case.section} {case.name()}: {str(e).splitlines()[0][:150]}", flush=True)
            continue
        want = asked(case, chip)
        print(f"{case.section} {case.name()}" + (f"   asked {want[0]:.2f} {want[1]}" if want else ""), flush=True)
        base = next((name[1] for name in variants if name[2] == "chosen"), "")
        for name, v in sorted(variants.items(), key=lambda x: statistics.median(x[1].get("seconds", [9]))):
            if "seconds" not in v:
                print(f"    {v['why'][:130]}  {name[0]} {differing(name[1], base)}")
                continue
            t = statistics.median(v["seconds"])
            rate = share * case.flops() / t / 1e12
            more = f"{share * case.bytes() / t / 1e12:6.2f} TB/s" if case.section == "mla" else ""
            key = (case.section, case.b, case.sk, case.causal)
            if name[0] == "tree" and name[2] == "chosen":
                rates[key, case.d] = rate
                if case.d != 256 and (key, 256) in rates:
                    more = f"{rate / rates[key, 256]:6.3f} of d = 256"
            print(f"    {t * 1e6:9.1f} us {rate:7.1f} TFLOP/s {more}  error {v['error']:.1e}  {name[0]} {name[2]}",
                  differing(name[1], base), flush=True)
        times = {name[0]: statistics.median(v["seconds"]) for name, v in variants.items() if name[2] == "chosen" and "seconds" in v}
        for side in sides[1:]:
            if side.label in times and "tree" in times:
                over.setdefault(side.label, []).append(times[side.label] / times["tree"])
                print(f"    {side.label} over the tree, as each chooses: {over[side.label][-1]:.3f}", flush=True)
        fastest = min((statistics.median(v["seconds"]) for n, v in variants.items() if n[0] == "tree" and "seconds" in v), default=0)
        if "tree" in times:
            regrets.append(times["tree"] / fastest - 1)
        documents.append({"problem": problems[case], "flops": share * case.flops(), "case": case.name(),
                          "variants": [{**v, "side": n[0]} for n, v in variants.items()]})
    for label, ratios in over.items():
        print(f"{label} over the tree: mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f} of {len(ratios)}")
    if regrets:
        print(f"the chosen ones over the fastest raced: mean {statistics.mean(regrets):.1%}, most {max(regrets):.1%} of {len(regrets)}")
    if left_out:
        print(f"no time for {len(left_out)}: {'; '.join(left_out)}")
    if options.output:
        with open(options.output, "w") as f:
            json.dump(documents, f, indent=1)


if __name__ == "__main__":
    main()
