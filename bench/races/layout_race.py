#!/usr/bin/env python3
"""Arrays of a score program with an element for each query and key, as they may lie: what each layout takes beside aligned rows.

    python3 bench/races/layout_race.py bias_bf16:odd,64,4096 matrix_u8:odd,128,4096 [--templates old=FOLDER] [--rounds 4] [-o race.json]
    python3 bench/races/layout_race.py --drawn 7 --count 20 --templates old=FOLDER

A cell is PROGRAM:LAYOUT, head_dim and length, in bf16 with heads that are 2048 wide together and 16,384 tokens; biases beside the causal
mask, a mask of bytes alone, with half of them 0. --drawn SEED: cells are drawn, of which most lengths are odd. With each --templates
NAME=FOLDER also by kernels of those, file by file in the place of the library's. All kernels of a cell, and that of aligned rows, are CUDA
graphs, sampled in turns, forward and back. The last rows are held against fp64 before.
"""
import argparse
import json
import math
import os
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

import scores

PROGRAMS = {"bias_bf16": "bfloat16", "bias": "float32", "matrix_u8": "uint8"}
# elements before the first, and between two rows beside those of the keys; "columns": queries lie side by side
LAYOUTS = {"aligned": (0, None), "at4": (0, 2), "odd": (0, 1), "middle": (3, 16), "columns": (0, 0), "one_row": (0, 0), "apart": (0, 0)}
ROWS = 16  # that are held against fp64


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cell", nargs="*", help="PROGRAM:LAYOUT,D,S")
    p.add_argument("--drawn", type=int, metavar="SEED")
    p.add_argument("--count", type=int, default=20)
    p.add_argument("--templates", action="append", default=[], help="NAME=FOLDER: also kernels of these")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--seconds", type=float, default=100, help="of all; cells that are left out then are counted")
    p.add_argument("-o", "--json", help="all samples")
    o = p.parse_args(argv)
    o.sides = {"own": None, **{name: os.path.abspath(folder) for name, _, folder in (x.partition("=") for x in o.templates)}}
    cells = list(o.cell)
    draw = random.Random(o.drawn)
    for _ in range(o.count if o.drawn is not None else 0):
        d, s = draw.choice((64, 64, 80, 96, 112, 128, 128)), draw.randrange(300, 6000)
        cells.append(f"{draw.choice(list(PROGRAMS))}:{draw.choice(('at4', 'odd', 'odd', 'middle', 'aligned'))},{d},{s}")
    o.cells = []
    for text in cells:
        name, d, s = (text.split(",") + ["", ""])[:3]
        program, _, layout = name.partition(":")
        if program not in PROGRAMS or layout not in LAYOUTS or not (d + s).isdigit():
            p.error(f"the cell is \"{text}\"; accepted: PROGRAM:LAYOUT,D,S, with {', '.join(PROGRAMS)} and {', '.join(LAYOUTS)}")
        o.cells.append((program, layout, int(d), int(s)))
    return o


def laid(program, layout, h, s, filled=True):
    """The array, [1, h, s, s]."""
    import torch
    lead, more = LAYOUTS[layout]
    row = (s + 15) // 16 * 16 if more is None else s + more
    of = {"device": "cuda", "dtype": getattr(torch, PROGRAMS[program])}
    make = torch.empty if not filled else torch.randn if program != "matrix_u8" else lambda n, **of: torch.randint(0, 2, (n,), **of)
    flat = make(lead + h * s * row + 64, **of)
    strides = {"columns": (s * row, 1, row), "one_row": (s, 0, 1), "apart": (0, row, 2)}.get(layout, (s * row, row, 1))
    return flat[lead:].as_strided((h, s, s), strides)[None]


class Call:
    read = {}  # the program of a library; it stays

    def __init__(self, fa, fagen, program, array, q, k, v):
        import torch
        self.fa, self.program, self.array, self.qkv, self.out = fa, program, array, (q, k, v), torch.empty_like(q)
        mask = {"mask": fagen.CAUSAL} if program != "matrix_u8" else {}
        score = self.read[fa, program] = self.read.get((fa, program)) or fa.score(scores.text_of(program))
        self.args = fa.args(q, k, v, self.out, score=score, values=[array], **mask)

    def graph(self):
        from common import graphs
        self.space = self.fa.give_workspace(self.args)
        return graphs.capture(lambda _: (self.fa.launch(self.args), self.out)[1], lasts=2e-3)

    def apart(self):
        """As far from fp64 as the norm of the last rows goes."""
        import torch
        q, k, v = self.qkv
        s, h = q.shape[1], q.shape[2] - 1
        i, j = torch.arange(s - ROWS, s, device="cuda")[:, None], torch.arange(s, device="cuda")
        x, rows = q[-1, -ROWS:, h].double() @ k[-1, :, h].double().T / math.sqrt(q.shape[-1]), self.array[-1, h, -ROWS:]
        x = x.masked_fill(rows == 0, -math.inf) if self.program == "matrix_u8" else (x + rows.double()).masked_fill(j > i, -math.inf)
        right = x.softmax(1) @ v[-1, :, h].double()
        return ((self.out[-1, -ROWS:, h].double() - right).norm() / right.norm()).item()


def calls_of(o, libraries, fagen, cell, filled=True):
    """The calls of a cell by each library, and that of aligned rows."""
    import torch
    program, layout, d, s = cell
    h, b = scores.WIDTH // d, max(1, scores.TOKENS // s)
    make = torch.randn if filled else torch.empty
    qkv = [make(b, s, h, d, device="cuda", dtype=torch.bfloat16) for _ in "qkv"]
    array = laid(program, layout, h, s, filled).expand(b, h, s, s)
    calls = {side: Call(fa, fagen, program, array, *qkv) for side, fa in libraries.items()}
    if layout != "aligned":
        calls["aligned"] = Call(libraries["own"], fagen, program, laid(program, "aligned", h, s, filled).expand(b, h, s, s), *qkv)
    return calls


def prepare(o, libraries, fagen):
    """All kernels are compiled before."""
    import torch
    problems = [(call.fa, call.fa.problem_of(call.args)) for cell in o.cells
                for call in calls_of(o, libraries, fagen, cell, False).values()]
    torch.cuda.empty_cache()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda of: of[0].prepare(of[1]), problems))


def main():
    o = parse()
    from common import fagen
    from common import tournament
    import torch
    begun, wrong, left, rows = time.monotonic(), False, 0, []
    tournament.warm_up()
    libraries = {side: fagen.Fagen(template_dir=folder) for side, folder in o.sides.items()}
    prepare(o, libraries, fagen)
    print(f"{torch.cuda.get_device_name()}, kernels are there after {time.monotonic() - begun:.0f} s", flush=True)
    for program, layout, d, s in o.cells:
        if time.monotonic() - begun > o.seconds:
            left += 1
            continue
        calls = calls_of(o, libraries, fagen, (program, layout, d, s))
        made = {side: call.graph() for side, call in calls.items()}
        samples = scores.race(made, list(made), o.rounds)
        text = f"{program}:{layout:8} d={d:3} s={s:5} {statistics.median(samples['own']) * 1e6:8.1f} us"
        for side in list(made)[1:]:
            ratio = statistics.median(x / y for x, y in zip(samples["own"], samples[side]))
            text += f", {ratio:.3f} of {side}"
        far = {side: call.apart() for side, call in calls.items()}
        bad = [side for side, x in far.items() if not x < scores.APART]
        wrong = wrong or bool(bad)
        print(text + "".join(f"  {side} WRONG {far[side]:.1e}" for side in bad), flush=True)
        rows.append({"program": program, "layout": layout, "d": d, "s": s, "seconds": samples, "apart": far})
        del calls, made
        torch.cuda.empty_cache()
    for side in ["aligned", *list(o.sides)[1:]]:
        of = [statistics.median(x / y for x, y in zip(row["seconds"]["own"], row["seconds"][side])) for row in rows if side in row["seconds"]]
        if of:
            print(f"of {side}: {len(of)} cells, mean {math.exp(statistics.fmean(map(math.log, of))):.3f}, {min(of):.3f} to {max(of):.3f}")
    if left:
        print(f"left out: {left} cells")
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, f)
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
