#!/usr/bin/env python3
"""Attention over caches of few bits beside fagen's own 16-bit caches, in one run: the 25 cases of decode.py, in CUDA graphs, interleaved.

Sections, all of them where none is named:
    warm     every call of a graph reads the same tensors
    cold     with so many K and V in turn that the L2 holds none of them
    pages    warm, in pages of 64 tokens in shuffled order
    prompts  warm, cases of many query rows in the place of the 25
Both caches hold the same numbers: the 16-bit one has what the codes mean. Every output is held against attention in fp32 over these before
its contender is timed, and once more after it.

    python3 bench/lowbits.py --kv e4m3 --seconds 400 -o lowbits.json
    python3 bench/lowbits.py warm --kv e4m3,e5m2 --only 'sk=8192'
    python3 bench/lowbits.py prompts --kv e4m3,q8_0,q4_0 --only d=128
"""
import argparse
import statistics
import sys
from dataclasses import dataclass

from sections import decode_cases
from sections import section_run

SECTIONS = ("warm", "cold", "pages", "prompts")
LARGE = 67e6  # bytes of 16 bits from which the fixed part of a launch hardly counts
PAGE = 64


@dataclass(frozen=True)
class Prompt(decode_cases.Case):
    causal: bool = True

    def name(self):
        return super().name() + (",causal" if self.causal else "")


# b, hq, hkv, sq, sk, d
PROMPTS = [Prompt(4, 32, 8, 4096, 4096, 128), Prompt(1, 32, 8, 16384, 16384, 128), Prompt(16, 32, 8, 1024, 1024, 128),
           Prompt(1, 32, 8, 512, 32768, 128), Prompt(4, 32, 32, 4096, 4096, 128, False), Prompt(4, 16, 16, 4096, 4096, 64),
           Prompt(2, 16, 4, 4096, 4096, 256)]


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    section_run.add_options(p, SECTIONS, "lowbits")
    p.add_argument("--kv", default="e4m3", help="formats, as e4m3,e5m2 (default e4m3)")
    return section_run.read_options(p, argv, SECTIONS, "lowbits")


def measure(lab, options, section, case, seconds):
    import torch

    from sections import decode_oracle
    from sections import decode_sections
    from common import fagen
    from sections.lowbits_codes import encoded
    formats = options.kv.split(",")
    n = decode_cases.sets_of(case, section == "cold")
    q = lab.randn(case.b, case.sq, case.hq, case.d)
    row = {**case.dict(), "sets": n}
    outs = [torch.empty_like(q) for _ in range(n)]
    table, lengths = None, None
    if section == "pages":
        table, lengths = lab.ints(decode_cases.tables([case.sk] * case.b, PAGE, lab.rng)[0]), lab.ints([case.sk] * case.b)
    shape = (case.b, case.sk, case.hkv, case.d)
    ends = {}
    for kv in formats:
        ends[kv] = [tuple(encoded(kv, lab.randn(*shape)) for _ in "kv") for _ in range(n)]
    causal = getattr(case, "causal", False)
    right = {kv: torch.stack([decode_oracle.attend(*one, causal) for one in zip(q, *(x[2] for x in ends[kv][0]))]) for kv in formats}
    mask = fagen.CAUSAL if causal else fagen.NONE

    def laid(t):
        return t if table is None else decode_sections.paged_as(t, table, PAGE)

    def twin(kv):
        made = [[laid(x[2]) for x in both] for both in ends[kv]]
        return lambda: [lab.fa.args(q, *made[i], outs[i], lengths=lengths, table=table, sk=case.sk, mask=mask) for i in range(n)], made

    def low(kv):
        made = [[laid(x[0]) for x in both] for both in ends[kv]]
        scales = [[None if x[1] is None else laid(x[1].unsqueeze(-1)).squeeze(-1) if x[1].dim() == 3 else x[1] for x in both]
                  for both in ends[kv]]
        return lambda: [lab.fa.args(q, *made[i], outs[i], lengths=lengths, table=table, sk=case.sk, mask=mask, kv=kv,
                                    k_scale=scales[i][0], v_scale=scales[i][1]) for i in range(n)], (made, scales)

    out = {}
    for kv in formats:
        args16, keep16 = twin(kv)
        args, keep = low(kv)

        def contenders(args16=args16, args=args, kv=kv):
            yield from lab.ours("", args16, outs)
            yield from lab.ours(f", {kv}", args, outs)
        found = lab.measure(dict(row), contenders(), right[kv], n, None if seconds is None else seconds / len(formats))
        del keep16, keep
        out = {**found, "runs": {**out.get("runs", {}), **{k + f" beside {kv}" * (k == "ours"): r for k, r in found["runs"].items()}},
               "skipped": {**out.get("skipped", {}), **found["skipped"]}, "took": out.get("took", 0) + found["took"]}
    return out


def us(row, name):
    r = row["runs"].get(name) or {}
    return 1e6 * statistics.median(r["seconds"]) if r.get("seconds") and not r.get("wrong") else None


def gains(rows):
    """{format: [(16-bit us, us, gain, row)]}."""
    out = {}
    for row in rows:
        for name in row["runs"]:
            if name.startswith("ours, "):
                kv = name[6:]
                a, b = us(row, f"ours beside {kv}"), us(row, name)
                if a and b:
                    out.setdefault(kv, []).append((a, b, a / b, row))
    return out


def tell(row):
    parts = [f"{kv}: {a:.1f} -> {b:.1f} us, {g:.3f}x" for kv, found in gains([row]).items() for a, b, g, _ in found]
    wrong = [f"{n} is wrong: {r['wrong']}" for n, r in row["runs"].items() if r.get("wrong")]
    skipped = [f"{n} left out: {why}" for n, why in row["skipped"].items()]
    return f"{row['name']}  {row['bytes'] / 1e6:.0f} MB  " + "; ".join(parts + wrong + skipped)


def markdown(doc):
    out = []
    for section, rows in doc["sections"].items():
        for kv, found in gains(rows).items():
            out += [f"## {section}, {kv}", "", "| case | MB of 16 bits | 16 bits, us | us | gain | config |", "|---|---|---|---|---|---|"]
            out += [f"| {row['name']} | {row['bytes'] / 1e6:.1f} | {a:.1f} | {b:.1f} | {g:.3f} | "
                    f"{row['runs'][f'ours, {kv}'].get('config', '')} |" for a, b, g, row in found]
            large = [g for _, _, g, row in found if row["bytes"] >= LARGE]
            small = [g for _, _, g, row in found if row["bytes"] < LARGE]
            out += ["", f"Mean of {len(found)}: {statistics.mean(g for _, _, g, _ in found):.3f}."
                    + (f" From 67 MB, {len(large)}: mean {statistics.mean(large):.3f}, least {min(large):.3f}." if large else "")
                    + (f" Below, {len(small)}: least {min(small):.3f}." if small else ""), ""]
    return "\n".join(out)


def wrong(doc):
    return [f"{section}, {row['name']}, {name}: {r['wrong']}" for section, rows in doc["sections"].items() for row in rows
            for name, r in row["runs"].items() if r.get("wrong")]


def jobs(options):
    return [(s, c) for s in options.sections for c in decode_cases.select(PROMPTS if s == "prompts" else decode_cases.TABLE, options.only)]


def run(options):
    from sections import decode_lab
    lab = decode_lab.Lab(options.config, options.without, options.rounds, options.lasts, options.seed, peers={})
    return section_run.Run(options, lab, measure, tell).all(jobs(options))


def main():
    options = parse()
    return section_run.main(options, jobs(options), lambda: run(options), markdown, wrong)


if __name__ == "__main__":
    sys.exit(main())
