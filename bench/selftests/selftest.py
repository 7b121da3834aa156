#!/usr/bin/env python3
"""fagen beside its peers: what of it needs neither PyTorch nor a GPU. Cells, statistics, tables, figures.

    PYTHONPATH=bench python3 bench/selftests/selftest.py [TEST ...]
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

from common import cells
from common import figure
from common import report
from common import stats

HERE = os.path.dirname(os.path.abspath(__file__))


def run(rate, work, kind="peer", error=2e-3, **more):
    """A runner's record: five samples around a rate in TFLOP/s."""
    t = work / rate / 1e12
    seconds = [t * f for f in (1, 1.01, 0.99, 1.02, 0.98)]
    return {"kind": kind, "error": error, "worst": 2 * error, "launches": 8, "seconds": seconds, **more}


def document():
    """Two grids with made-up rates: 8 cells of d 64 and 128, one window with our causal kernel beside it."""
    some = []
    for i, c in enumerate(cells.grid("main", d=(64, 128), s=(1024, 4096))):
        f = c.flops()
        some.append({**c.dict(), "flops": f, "skipped": {"fa3": "no <such> module"}, "took": 0.5, "runs": {
            "ours": run(500 + 10 * i, f, "ours", config="flash_fwd_mma:br=64", origin="shipped"),
            "cudnn": run(400 + 20 * i, f), "fa2": run(300, f)}})
    c = cells.grid("window", d=(64,), s=(4096,))[0]
    f = 4 * c.b * c.hq * c.d * sum(min(i, 1024) + 1 for i in range(4096))
    some.append({**c.dict(), "flops": f, "skipped": {}, "took": 2.5, "runs": {
        "ours": run(350, f, "ours", config="flash_fwd_mma:br=64", origin="model"), "flex": run(250, f),
        "ours, causal": run(400, c.beside("causal").flops(), "ours", mask="causal", flops=c.beside("causal").flops())}})
    return {"schema": 2, "host": {"device": "Example GPU", "driver": "1.2", "torch": "2", "date": "2026-01-02 03:04 UTC"}, "fagen": {},
            "peers": {"cudnn": {"version": "9"}, "fa2": {"version": "2"}, "fa3": {"missing": "no <such> module"}, "flex": {"version": "2"}},
            "protocol": {"rounds": 5, "sample": 0.003, "seconds": None, "buffers": 2, "seed": 1},
            "clocks": {"before": {"clocks.sm": "1980 MHz"}, "after": {"clocks.sm": "1700 MHz"}}, "cells": some, "took": 6.5}


class Cells(unittest.TestCase):
    def test_grids_have_the_cells_that_are_promised(self):
        self.assertEqual({n: len(cells.grid(n)) for n in cells.GRIDS},
                         {"main": 60, "fp16": 36, "odd": 24, "window": 4, "gqa": 10, "quick": 12})
        for name in cells.GRIDS:
            for c in cells.grid(name):
                self.assertEqual(c.hq % c.hkv, 0, c)
                if name not in ("gqa",):
                    self.assertEqual(c.b * c.sq, cells.TOKENS, c)
                    self.assertEqual(c.hq, cells.WIDTH // c.d, c)

    def test_flops_follow_the_convention(self):
        full = cells.parse("bf16,d=64,b=2,hq=3,sq=128,sk=256")
        self.assertEqual(full.flops(), 4 * 2 * 3 * 128 * 256 * 64)
        self.assertEqual(cells.parse("bf16,d=64,mask=causal,b=2,hq=3,sq=128,sk=256").flops(), full.flops() / 2)
        self.assertEqual(cells.parse("bf16,d=64,dv=32,b=2,hq=3,sq=128,sk=256").flops(), 2 * 2 * 3 * 128 * 256 * 96)

    def test_texts_of_problems_are_read(self):
        self.assertEqual(cells.parse("128,causal,4096").problem(), "bf16,d=128,dv=128,mask=causal,b=4,hq=16,hkv=16,sq=4096,sk=4096")
        self.assertEqual(cells.parse("fp16,64,none,1024").dtype, "fp16")
        self.assertEqual((cells.parse("64,window,4096,window=100:3").left, cells.parse("64,window,4096,window=100:3").right), (100, 3))
        for c in cells.grid("main") + cells.grid("gqa"):
            again = cells.parse(c.problem())
            self.assertEqual((again.problem(), again.flops()), (c.problem(), c.flops()))
        for wrong in ("128", "128,causal", "128,round,512", "bf16,d=64,colour=3", "bf16,mask=none"):
            with self.assertRaises(ValueError, msg=wrong):
                cells.parse(wrong)
        with self.assertRaises(ValueError):
            cells.grid("mian")


class Stats(unittest.TestCase):
    def test_means_and_spreads(self):
        self.assertAlmostEqual(stats.geomean([1, 4]), 2)
        self.assertTrue(math.isnan(stats.geomean([])))
        self.assertAlmostEqual(stats.spread([10, 11, 12, 9, 8]), 0.1)
        self.assertEqual([stats.rounds_that_fit(*x) for x in ((None, 1, 3, 9), (5, 1, 3, 9), (0.1, 1, 3, 9), (99, 1, 3, 9))], [9, 5, 3, 9])

    def judged(self, **errors):
        runs = {n: {"kind": "ours" if n.startswith("ours") else "peer", "error": e, "worst": w} for n, (e, w) in errors.items()}
        return set(stats.judge(runs))

    def test_a_wrong_output_is_seen(self):
        self.assertEqual(self.judged(ours=(2e-3, 4e-3), cudnn=(2e-3, 4e-3)), set())
        self.assertEqual(self.judged(ours=(1e-2, 1e-2), cudnn=(2e-3, 4e-3)), {"ours"})
        self.assertEqual(self.judged(ours=(math.inf, math.inf), cudnn=(2e-3, 4e-3)), {"ours"})
        self.assertEqual(self.judged(ours=(3e-3, 0.9), cudnn=(2e-3, 4e-3)), {"ours"}, "one tile that is off")
        self.assertEqual(self.judged(ours=(4.1e-3, 5e-3), cudnn=(2e-3, 4e-3), fa2=(3e-3, 4e-3)), {"ours"}, "over twice the best peer's")
        self.assertEqual(self.judged(ours=(4.1e-3, 5e-3), cudnn=(0.5, 0.5)), {"cudnn"}, "a wrong peer is no measure")

    def test_the_best_peer_is_the_fastest_right_one(self):
        c = document()["cells"][0]
        self.assertEqual(stats.best_peer(c), "cudnn")
        self.assertAlmostEqual(stats.ratio(c), 500 / 400)
        self.assertAlmostEqual(stats.ratio(c, "fa2"), 500 / 300)
        c["runs"]["cudnn"]["wrong"] = "yes"
        self.assertEqual(stats.best_peer(c), "fa2")
        self.assertAlmostEqual(stats.ratio(c), 500 / 300)
        c["runs"]["ours"]["wrong"] = "yes"
        self.assertIsNone(stats.ratio(c))


    def test_a_ratio_is_of_pairs(self):
        """Where the clock falls by a fifth in the middle of a run, in our samples a round before the peer's."""
        took = {"ours": [1, 1, 1.2, 1.2, 1.2], "cudnn": [1.1, 1.1, 1.32, 1.32, 1.32], "fa3": [1.15, 1.15, 1.15, 1.38, 1.38]}
        cell = {"flops": 1e12, "runs": {n: {"kind": "ours" if n == "ours" else "peer", "seconds": s} for n, s in took.items()}}
        self.assertAlmostEqual(stats.ratio(cell), 1.1)
        self.assertAlmostEqual(stats.paired(cell, "ours", "fa3"), 1.15)
        self.assertLess(stats.rate(cell, "ours") / stats.rate(cell, "fa3"), 1, "what the medians alone would say")
        self.assertEqual(stats.best_peer(cell), "cudnn")
        self.assertIsNone(stats.paired(cell, "ours", "fa2"))


class Tables(unittest.TestCase):
    def test_numbers_arrive_in_the_tables(self):
        text = report.markdown(document())
        self.assertIn("| 64 | none | 500 / 400 cudnn = 1.25 (1.0) | 510 / 420 cudnn = 1.21 (1.0) |", text)
        self.assertIn("Geometric mean of the 8 ratios to the best peer", text)
        self.assertIn("From there to below 1.10: 2 of 8: bf16 d=128 causal s=4096: 1.056 of cudnn", text)
        self.assertIn("| 64 | 4096 | 350 | 400 | 0.88 |", text, "the window beside our causal kernel")
        self.assertIn("Without FlashAttention-3 in some cells: no <such> module", text)
        self.assertNotIn("Without a right result", text)
        for line in text.splitlines():  # every table is as wide as its head
            if line.startswith("| ---"):
                width = line.count("|")
            elif line.startswith("| ") and "width" in locals() and prior.startswith("|"):
                self.assertEqual(line.count("|"), width, line)
            prior = line

    def test_what_went_wrong_is_told(self):
        doc = document()
        doc["cells"][1]["runs"]["ours"] = {"kind": "ours", "error": 0.5, "worst": 1, "wrong": "relative error 5.00e-01"}
        doc["cells"][2]["skipped"]["ours"] = "status -7"
        del doc["cells"][2]["runs"]["ours"]
        text = report.markdown(doc)
        self.assertEqual(len(report.failures(doc)), 2)
        self.assertIn("### Without a right result of ours", text)
        self.assertIn("| 64 | none | 500 / 400 cudnn = 1.25 (1.0) | wrong |", text)

    def test_a_figure_is_well_formed_and_stands_alone(self):
        pictures = figure.of(document())
        self.assertEqual(list(pictures), ["main", "window"])
        for text in pictures.values():
            self.assertNotIn("href", text)
            self.assertIn("prefers-color-scheme: dark", text)
        root = xml.fromstring(pictures["main"])
        names = [e.tag.split("}")[1] for e in root.iter()]
        self.assertEqual(names.count("polyline"), 4 * 3, "panels times runners")
        told = [e.text for e in root.iter() if e.tag.endswith("title")]
        self.assertIn("fagen, s = 1024: 500 TFLOP/s", told)
        width, height = float(root.get("width")), float(root.get("height"))
        for e in root.iter():
            for name in ("x", "x1", "x2", "cx"):
                if e.get(name):
                    self.assertTrue(0 <= float(e.get(name)) <= width, e.attrib)
            for name in ("y", "y1", "y2", "cy"):
                if e.get(name):
                    self.assertTrue(0 <= float(e.get(name)) <= height, e.attrib)
            for point in (e.get("points") or "").split():
                x, y = (float(v) for v in point.split(","))
                self.assertTrue(0 <= x <= width and 0 <= y <= height, point)

    def test_replay_makes_them_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = {n: os.path.join(folder, n) for n in ("r.json", "r.md", "r.svg", "r-window.svg")}
            for wrong, code in ((False, 0), (True, 1)):
                doc = document()
                if wrong:
                    doc["cells"][0]["runs"]["ours"]["wrong"] = "yes"
                with open(path["r.json"], "w") as f:
                    json.dump(doc, f)
                done = subprocess.run([sys.executable, os.path.join(HERE, "..", "side_by_side.py"), "--replay", path["r.json"], "--markdown",
                                       path["r.md"], "--svg", path["r.svg"]], capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                with open(path["r.md"]) as f:
                    self.assertEqual(f.read().strip(), done.stdout.strip())
                for name in ("r.svg", "r-window.svg"):
                    xml.parse(path[name])


if __name__ == "__main__":
    unittest.main()
