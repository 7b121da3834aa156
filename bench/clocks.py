#!/usr/bin/env python3
"""Where the clocks of a Hopper kernel go: a trace of one block's warpgroups, step by step.

    python3 bench/clocks.py --problem 128,causal,1024 [--score documents] [--block 5] [--lse] [--json FILE] CONFIG ...

The kernel is rendered from a copy of the templates in which the first thread of each consumer warpgroup writes its clock at the points below, after
LSE, which itself is written only with --lse. That takes time of its own, and the compiler may lay out what is around the points
another way. --score: with the mask of that name of bench/masks.py. A row of a table is the way from one point to the next: how often, the median, and the clocks per tile. Needs a GPU and PyTorch, and checks nothing: what is traced is no longer what ships.
"""
import argparse
import collections
import json
import os
import shutil
import statistics
import sys
import tempfile

POINTS_MOST = 8000  # of a warpgroup
WARPGROUPS = 4

# (name, file, text of it that is there once, with a # where the point is)
PRODUCTS, CONSUMER = "wgmma/hopper_products.cu", "wgmma/hopper_consumer.cu"
PROLOGUE, LOOP, EPILOGUE = "wgmma/hopper_prologue.cu", "wgmma/hopper_main_loop.cu", "wgmma/hopper_epilogue.cu"
CUT = "wgmma/hopper_cut_loop.cu"  # in the place of LOOP, of rows that keep their maximum
STORE, WRITES_LSE = "wgmma/hopper_rows.cu", "if (p.lse != nullptr && t == 0"
POINTS = (
    ("tile", CONSUMER, "#    const KeyRange keys = tiles.keys(p, smem, wg);\n"),
    ("Q", PROLOGUE, "      $(to)mbarrier_wait(q_full(smem, q.at, wg), q.parity);\n//| end\n#"),
    ("Q of some", PROLOGUE, "\n      mbarrier_wait(q_full(smem, q.at, wg), q.parity);\n#      // From here on"),
    ("K", PROLOGUE, "mbarrier_wait(k_full(smem, k.at), k.parity);\n#//| if pr.scans then\n      $(to)code"),
    ("found", PROLOGUE, "#      // Q comes later than the first keys"),
    ("first S", PROLOGUE, "#      mask($(at));\n"),
    ("mask there", CONSUMER, "#        if (cuts && !hides)\n          hide_staged("),
    ("compared", CONSUMER, "#        release_mask();\n      }\n//|   else\n      if (!__any_sync(~0u, own"),
    ("edge", CONSUMER, "#      if ($(cuts)) {\n        // Of the rows"),
    ("cut", CONSUMER, "#    };\n//| else\n//| if not l.cuts then\n"),
    ("first P", LOOP, "#      // Main loop:"),
    ("K of next", LOOP, "        mbarrier_wait(k_full(smem, k.at), k.parity);\n#//| if pr.scans then\n        code ="),
    ("may issue", LOOP, "#        wgmma_fence(o, a);\n        issue_scores("),
    ("issued", LOOP, "#        wgmma_wait<1>(s);\n"),
    ("S", LOOP, "        wgmma_wait<1>(s);\n#"),
    ("maxima", LOOP, "#        wgmma_wait<0>(o);\n        release_v();\n//| end\n        next_probabilities("),
    ("P V", LOOP, "        wgmma_wait<0>(o);\n#        release_v();\n//| end\n        next_probabilities("),
    ("P", LOOP, "        next_probabilities(s, a, o, state, keep, moved, p$(more));\n#"),
    ("S of a cut", CUT, "#        cut_scores("),
    ("maxima of a cut", CUT, "#        exponentials<false, true>("),
    ("P of a cut", CUT, "        exponentials<false, true>(s, a, o, state, keep, shift, $(unit));\n#"),
    ("K of a whole", CUT, "          mbarrier_wait(k_full(smem, k.at), k.parity);\n#"),
    ("may issue a whole", CUT, '#          wgmma_fence($(l.fences_bare and "" or "o, a"));\n'),
    ("whole issued", CUT, "#          wgmma_wait<1>(s);\n"),
    ("S of a whole", CUT, "          wgmma_wait<1>(s);\n#"),
    ("half of P", CUT, "          early_exponentials(s, state, $(by));\n#"),
    ("P of a whole", CUT, "          other_exponentials(s, a, state, $(by));\n#"),
    ("last P", EPILOGUE, "#//| local over = "),
    ("last V", EPILOGUE, "      mbarrier_wait(v_full(smem, v.at), v.parity);\n#"),
    ("next tile", EPILOGUE, "#        mbarrier_wait(q_full(smem, q.at, wg), q.parity);\n"),
    ("ahead issued", EPILOGUE, "#        wgmma_wait<1>(o);\n"),
    ("last P V", EPILOGUE, "        wgmma_wait<1>(o);\n#"),
    ("stored", EPILOGUE, "#        hold_order(0, q_full(smem, q.at, wg), q.parity);\n"),
    ("next S", EPILOGUE, "        wgmma_wait<0>(s);\n#        release_k();\n        continue;\n"),
    ("P V alone", EPILOGUE, '      wgmma_wait<0>($(l.waits_bare and "" or "o"));\n#'),
    ("stored alone", CONSUMER, "    store(o, state$(l.o_in_q and \", keys.loaded_hi >= keys.loaded_lo\" or \"\"));\n#"),
)
WRITER = """struct Trace {
  u32 n, *to;
};
__device__ __forceinline__ void point(Trace &t, u32 id) {
  u32 clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
  if (t.to && t.n < POINTS_MOST) t.to[2 * t.n] = id + 1, t.to[2 * t.n + 1] = clock, t.n++;
}
"""
OPEN = """  Trace trace{0, blockIdx.x == BLOCK && threadIdx.x % 128 == 0 ? (u32 *)(p.lse + p.b * p.hq * p.sq) + 2 * POINTS_MOST * wg : nullptr};
"""


def place(file, text, part):
    """Where the # of part stands in text."""
    plain = part.replace("#", "", 1)
    if text.count(plain) != 1:
        raise ValueError(f"{file} has this {text.count(plain)} times, not once: {plain}")
    return text.index(plain) + part.index("#")


def instrument(file, text, block):
    """The text of a piece of the kernel, with a writer at every point of it."""
    more = [(PRODUCTS, "#// ---- the two products of a warpgroup", WRITER), (CONSUMER, "#  TileQueue tiles;\n  Tile where;\n", OPEN)]
    more = [(f, part, what.replace("POINTS_MOST", str(POINTS_MOST)).replace("BLOCK", str(block))) for f, part, what in more]
    more += [(f, part, f"point(trace, {i});\n") for i, (_, f, part) in enumerate(POINTS)]
    for at, what in sorted(((place(file, text, part), what) for f, part, what in more if f == file), reverse=True):
        text = text[:at] + what + text[at:]
    return text


def without_lse(text):
    """The text of STORE that writes none, though it has a place for it."""
    if WRITES_LSE not in text: # once for packed rows, once for others
        raise ValueError(f"{STORE} does not have this: {WRITES_LSE}")
    return text.replace(WRITES_LSE, "if (false")


def edit(path, change):
    with open(path) as f:
        text = change(f.read())
    with open(path, "w") as f:
        f.write(text)


def segments(events):
    """{(from, to): clocks of each} of one warpgroup's events, and how many tiles it began."""
    out = collections.OrderedDict()
    for (a, begun), (b, ended) in zip(events, events[1:]):
        out.setdefault((a, b), []).append((ended - begun) & 0xffffffff)
    return out, sum(i == 0 for i, _ in events)


def table(wg, events):
    ways, tiles = segments(events)
    begins = [c for i, c in events if i == 0]
    per_tile = [(b - a) & 0xffffffff for a, b in zip(begins, begins[1:])]
    lines = [f"  warpgroup {wg}: {tiles} tiles" + (f", {statistics.mean(per_tile):.0f} clocks each" if per_tile else "")]
    for (a, b), clocks in ways.items():
        lines.append(f"    {POINTS[a][0]:>12} -> {POINTS[b][0]:12} {len(clocks):5} x {statistics.median(clocks):6.0f}  {sum(clocks) / max(1, tiles):8.0f} per tile")
    return "\n".join(lines)


def trace(cell, text, score=None):
    """Per warpgroup [(point, clock)], and the seconds of a launch."""
    from common import fagen
    import torch
    fa = fagen.Fagen(lever=True)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[cell.dtype]
    q, k, v = (torch.randn(cell.b, s, h, d, device="cuda", dtype=kind)
               for s, h, d in ((cell.sq, cell.hq, cell.d), (cell.sk, cell.hkv, cell.d), (cell.sk, cell.hkv, cell.dv)))
    rows = cell.b * cell.hq * cell.sq
    lse, more = torch.zeros(rows + 2 * POINTS_MOST * WARPGROUPS, device="cuda"), {}
    if score:
        import masks
        more = {"score": fa.score(masks.text_of(score)), "values": masks.MASKS[score][0](cell.b, cell.hq, cell.sq)}
    args = fa.args(q, k, v, torch.empty(cell.b, cell.sq, cell.hq, cell.dv, device="cuda", dtype=kind), fagen.MASKS[cell.mask], lse=lse,
                   window=(cell.left, cell.right), diagonal=fagen.DIAGONALS[cell.diagonal], **more)
    problem = fa.problem_of(args)
    plan = fa.plan(problem, fa.pick(problem, text))
    space = fa.give_workspace(args, plan)  # kept while launches run
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(200):  # until the clock is what a load leaves it
        fa.launch(args, plan)
    begin.record()
    for _ in range(20):
        fa.launch(args, plan)
    end.record()
    lse.zero_()  # the trace is one launch's: another may have given the block more tiles
    fa.launch(args, plan)
    torch.cuda.synchronize()
    del space
    words = lse[rows:].view(torch.int32).cpu().tolist()
    out = []
    for wg in range(WARPGROUPS):
        mine = words[2 * POINTS_MOST * wg:2 * POINTS_MOST * (wg + 1)]
        out.append([(mine[i] - 1, mine[i + 1] & 0xffffffff) for i in range(0, len(mine), 2) if mine[i]])
    return out, begin.elapsed_time(end) / 20 * 1e-3


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("config", nargs="+", help="of flash_fwd_wgmma; it may leave tunables out")
    p.add_argument("--problem", required=True, help="D,MASK,S, or as fagen prints it")
    p.add_argument("--score", help="a mask of bench/masks.py")
    p.add_argument("--block", type=int, default=5, help="whose trace (default 5)")
    p.add_argument("--lse", action="store_true", help="write LSE too; benchmarks do without")
    p.add_argument("--json", help="write the events to this file")
    o = p.parse_args()
    from common import cells
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory(prefix="fagen-trace-") as folder:
        templates = os.path.join(folder, "templates")
        shutil.copytree(os.path.join(here, "..", "templates"), templates)
        os.chmod(templates, 0o700)
        for file in (PRODUCTS, CONSUMER, PROLOGUE, LOOP, CUT, EPILOGUE):
            edit(os.path.join(templates, file), lambda text: instrument(file, text, o.block))
        if not o.lse:
            edit(os.path.join(templates, STORE), without_lse)
        os.environ["FAGEN_TEMPLATE_DIR"], os.environ["FAGEN_CACHE_DIR"] = templates, os.path.join(folder, "cache")
        cell, found = cells.parse(o.problem), []
        for config in o.config:
            warpgroups, seconds = trace(cell, config, o.score)
            print(f"{config}\n  {seconds * 1e6:.1f} us a launch, {cell.flops() / seconds * 1e-12:.0f} TFLOP/s, traced")
            for wg, events in enumerate(warpgroups):
                if events:
                    print(table(wg, events))
            found.append({"config": config, "seconds": seconds, "events": warpgroups})
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"problem": cell.problem(), "points": [n for n, _, _ in POINTS], "traces": found}, f)
    return 0


if __name__ == "__main__":
    sys.exit(main())
