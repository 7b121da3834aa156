"""The section of decode.py on the host: what a hot launch takes there, and one captured graph whose lengths change in place."""
import json
import os
import random
import subprocess
import time

import torch

from sections import decode_cases
from sections import decode_oracle
from common import fagen
from common import graphs
from common import stats
from side_by_side import first_line

LAYERS, SEQUENCES, LONGEST, PAGE, HQ, HKV, D = 4, 16, 2048, 64, 32, 8, 128


def hot(seconds=120):
    """What `fagen-dev hot` tells: a list of rows, or why there is none."""
    command = os.path.join(os.path.dirname(fagen.library("fagen")), "..", "bin", "fagen-dev")
    try:
        run = subprocess.run([command, "hot", "--device", "cuda:0", "--json"], capture_output=True, text=True, timeout=seconds)
        return {"hot": json.loads(run.stdout)["hot"]}
    except (OSError, subprocess.TimeoutExpired) as e:
        return {"why": f"fagen-dev hot: {first_line(e)}"}
    except (ValueError, KeyError):
        return {"why": f"fagen-dev hot: exit {run.returncode}: {first_line(run.stderr or run.stdout)}"}


class Layer:
    """K and V of one layer as pages, or padded, and where its output goes."""

    def __init__(self, lab, q, table, in_pages):
        shape = (table.numel(), PAGE) if in_pages else (SEQUENCES, LONGEST)
        self.k, self.v = (lab.randn(*shape, HKV, D) for _ in "kv")
        self.q, self.table, self.out = q, table if in_pages else None, torch.empty_like(q)

    def args(self, fa, lengths):
        return fa.args(self.q, self.k, self.v, self.out, lengths=lengths, table=self.table, sk=LONGEST)

    def right(self, lengths):
        if self.table is not None:
            return decode_oracle.paged(self.q, self.k, self.v, lengths, self.table)
        return torch.stack([decode_oracle.attend(q, k[:n], v[:n]) for q, k, v, n in zip(self.q, self.k, self.v, lengths)])


def replays(lab, in_pages, count, checked, seconds=None):
    """One graph of a launch per layer, replayed with other lengths each time, copied before it on the device. Each of `checked`
    replays, evenly spaced and the borders among them, is held against the reference."""
    rng = random.Random(7)
    drawn = decode_cases.changing(count, SEQUENCES, LONGEST, PAGE, rng)
    every, lengths = lab.ints(drawn), lab.ints(drawn[0])
    table = lab.ints(decode_cases.tables([LONGEST] * SEQUENCES, PAGE, rng)[0])
    q = lab.randn(SEQUENCES, 1, HQ, D)
    layers = [Layer(lab, q, table, in_pages) for _ in range(LAYERS)]
    args = [layer.args(lab.fa, lengths) for layer in layers]
    space = [lab.fa.give_workspace(args[0])]  # the layers run one after the other
    for a in args[1:]:
        a.workspace, a.workspace_size = args[0].workspace, args[0].workspace_size

    def run(i):
        for a in args:
            lab.fa.launch(a)
        return layers[-1].out
    run(0)
    graph = graphs.Graph(run, 1, 1)
    look = set(range(min(8, count))) | set(range(0, count, max(1, count // checked)))
    row = {"form": "pages" if in_pages else "lengths", "layers": LAYERS, "sequences": SEQUENCES, "longest": LONGEST, "replays": 0,
           "checked": 0, "error": 0.0, "wrong": []}
    begun = time.monotonic()
    for i in range(count):
        if seconds is not None and time.monotonic() - begun > seconds:
            break
        if i in look:
            for layer in layers:
                layer.out.fill_(float("nan"))
        lengths.copy_(every[i])
        graph.replay()
        row["replays"] += 1
        if i not in look:
            continue
        row["checked"] += 1
        for n, layer in enumerate(layers):
            error, worst = decode_oracle.error(layer.out, layer.right(drawn[i]))
            row["error"] = max(row["error"], error)
            if not (error < stats.ACCURATE and worst < 10 * stats.ACCURATE):
                row["wrong"].append(f"replay {i}, layer {n}: relative error {error:.2e}, of a head {worst:.2e}")
    torch.cuda.synchronize()
    del space
    return row


def host(lab, count=1000, checked=40, seconds=None):
    out = {**hot(), "replays": []}
    for in_pages in (False, True):
        try:
            out["replays"].append(replays(lab, in_pages, count, checked, None if seconds is None else seconds / 2))
        except Exception as e:
            name = "pages" if in_pages else "lengths"
            out["replays"].append({"form": name, "why": first_line(e)})
            lab.alive(f"the replays with {name}")
        lab.tidy()
    return out
