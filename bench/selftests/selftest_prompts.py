#!/usr/bin/env python3
"""Prompts beside their peers: what of it needs no GPU. Cases, tables, options; and all sections at small sizes, where PyTorch is there.

    PYTHONPATH=bench python3 bench/selftests/selftest_prompts.py [TEST ...]
"""
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import prompts
from sections import prompts_cases
from sections import prompts_report
from common import stats
from sections.decode_report import wrong
from selftests.selftest_decode import document, run

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = {"kind": "ours", "config": "flash_fwd_wgmma:br=128", "origin": "shipped"}


def made_up():
    """A case or two of each section, with made-up times."""
    packed = [{**prompts_cases.PACKED[0].dict(), "skipped": {"fa2": "no | such op"},
               "runs": {"ours": run(100, **OURS), "ours, dense": run(90, **OURS), "fa3": run(110), "fa3split": run(120)}},
              {**prompts_cases.PACKED[1].dict(), "skipped": {}, "runs": {"ours": run(100, **OURS), "fa3": run(95)}}]
    chunks = [{**prompts_cases.CHUNKS[0].dict(), "forms": ["", ", page 16", ", page 64"], "skipped": {"fa3kv, page 16": "no pages"},
               "runs": {"ours": run(50, **OURS), "fa3": run(60), "fa3kv": run(55), "ours, page 16": run(52, **OURS),
                        "ours, page 64": run(51, **OURS), "fa3kv, page 64": run(102)}}]
    mixed = [{**prompts_cases.MIXED[0].dict(), "forms": ["", ", page 16"], "skipped": {},
              "runs": {"ours": run(80, **OURS), "ours, apart": run(100, **OURS), "fa3split": run(96),
                       "ours, page 16": run(110, **OURS), "ours, apart, page 16": run(100, **OURS)}}]
    dense = [{**prompts_cases.DENSE[0].dict(), "skipped": {}, "runs": {"ours": run(20, **OURS), "fa3": run(25), "cudnn": run(22)}},
             {**prompts_cases.DENSE[1].dict(), "skipped": {}, "runs": {"ours": run(20, **OURS), "fa3": run(19)}}]
    watched = prompts_cases.WATCHED[0]
    bits = [{**watched.dict(), "batches": 200, "different": [], "skipped": {}, "runs": {"ours": {"error": 1e-3, "worst": 2e-3, **OURS}}}]
    invariant = [{**document()["sections"]["table"][0], "runs": {"ours": run(10, **OURS), "ours, invariant": run(10.5, **OURS)},
                  "skipped": {}}]
    return {**document(), "sections": {"packed": packed, "chunks": chunks, "mixed": mixed, "dense": dense, "bits": bits,
                                       "invariant": invariant}}


class Cases(unittest.TestCase):
    def test_names_are_told_apart(self):
        for cases in (prompts_cases.PACKED, prompts_cases.CHUNKS, prompts_cases.MIXED, prompts_cases.DENSE, prompts_cases.WATCHED):
            self.assertEqual(len({c.name() for c in cases}), len(cases))
            for c in cases:
                self.assertGreater(c.dict()["flops"], 0)

    def test_prompts_fill_their_tokens(self):
        self.assertEqual(len(prompts_cases.PACKED), 18)
        for c in prompts_cases.PACKED:
            self.assertEqual(sum(q for q, _ in c.lengths()), c.tokens)
            self.assertTrue(all(q == k > 0 for q, k in c.lengths()))
            self.assertEqual(len({q for q, _ in c.lengths()}) == 1, c.drawn == "equal")
            self.assertEqual((c.hq, c.hkv), (16, 16) if c.d == 256 else (32, 8))
        self.assertEqual([len(c.lengths()) for c in prompts_cases.PACKED[:6]], [8, 8, 11, 32, 29, 33])

    def test_visible_pairs(self):
        for sq, sk in ((1, 1), (1, 9), (5, 5), (4, 11)):
            self.assertEqual(prompts_cases.pairs(sq, sk), sum(sk - sq + i + 1 for i in range(sq)))
        self.assertEqual(prompts_cases.CHUNKS[0].lengths(), [(512, 8192 + 512)])

    def test_mixed_batches_have_tokens_first(self):
        for c in prompts_cases.MIXED:
            n = c.lengths()
            self.assertEqual([q for q, _ in n], [1] * c.users + [c.new] * c.chunks)
            self.assertTrue(all(q < k <= c.longest for q, k in n), c.name())
            self.assertEqual(n, c.lengths())

    def test_the_dense_grid_is_the_one_that_is_promised(self):
        grid = [c.cell for c in prompts_cases.DENSE]
        self.assertEqual(len(grid), 48)
        self.assertTrue(all(300 <= c.sq <= 14000 and c.sq == c.sk and 1 <= c.b <= 3 and c.hq * c.d in (2048, 4096) for c in grid))
        self.assertEqual(len({(c.d, c.mask, c.hq * c.d) for c in grid}), 12)
        self.assertEqual([(c.b, c.sq) for c in grid[:3]], [(2, 2230), (2, 12028), (3, 587)])

    def test_batches_around_a_sequence(self):
        for c in prompts_cases.WATCHED:
            some = c.batches(200)
            self.assertEqual((len(some), some[0]), (200, (0, [])))
            self.assertEqual(some, c.batches(200))
            self.assertTrue(all(0 <= at <= len(others) <= c.others for at, others in some))
            flat = [n for _, others in some for n in others]
            self.assertTrue(all(q <= k <= c.longest for q, k in flat))
            self.assertTrue({0, 1, 2, 4} < {q for q, _ in flat})
            self.assertGreater(max(q for q, _ in flat), 100)


class Options(unittest.TestCase):
    def test_cases_are_selected(self):
        self.assertEqual(len(prompts.jobs(prompts.parse([]))), 18 + 18 + 12 + 48 + 10 + 25)
        o = prompts.parse(["mixed", "chunks", "--only", "d=64", "--page", "32"])
        self.assertEqual([s for s, _ in prompts.jobs(o)], ["chunks"] * 9 + ["mixed"] * 5)
        self.assertEqual(o.page, (32,))

    def test_what_is_wrong_is_named(self):
        for words, says in ((["pakced"], 'the section is "pakced"; accepted: packed, chunks'),
                            (["--batches", "1"], "--batches is 1; accepted: 2"), (["--page", ""], "--page is ()"),
                            (["--simulator", "sm_80"], "--simulator is given without --dry-run")):
            told = io.StringIO()
            with contextlib.redirect_stderr(told), self.assertRaises(SystemExit):
                prompts.parse(words)
            self.assertIn(says, told.getvalue())


class Report(unittest.TestCase):
    def test_numbers_arrive_in_the_tables(self):
        text, rows = prompts_report.markdown(made_up()), made_up()["sections"]
        self.assertIn("| 8 | 100.0 | %.1f | fa3 | 1.100 | 0.900 | 110.0 | 120.0 |" % (rows["packed"][0]["flops"] / 1e8), text)
        self.assertIn("fagen beside the best peer: geometric mean of 2 ratios 1.022, least 0.950", text)
        self.assertIn("Equal lengths, of our dense rate: geometric mean of 1 ratios 0.900", text)
        self.assertIn("| page 16 | 52.0 | %.1f | FlashAttention-3 kvcache | 55.0 | 1.058 |" % (rows["chunks"][0]["flops"] / 5.2e7), text,
                      "no peer took pages of 16: the best without them is beside it")
        self.assertIn("FlashAttention-3 kvcache, page 64 | 102.0 | 2.000 |", text)
        self.assertIn("| packed | 80.0 | 100.0 | 0.800 | FlashAttention-3 with splits | 1.200 |", text)
        self.assertIn("| page 16 | 110.0 | 100.0 | 1.100 | FlashAttention-3 with splits | 0.873 |", text)
        self.assertIn("Time of two launches over that of one: geometric mean of 2 ratios 1.066, least 0.909", text)
        self.assertIn("| cudnn | 1.100 | 1.100 to 1.100 |", text)
        self.assertIn(f"Cells whose 95 % interval lies below 1.00: {prompts_cases.DENSE[1].name()} (0.950).", text)
        self.assertIn("| 200 | 0 | 1.0e-03 |  |", text)
        self.assertIn("Rate of the invariant schedule over the free one: geometric mean of 1 ratios 0.952", text)
        self.assertIn("bf16, causal but for dense", text)
        self.assertNotIn("Without a right result", text)

    def test_what_went_wrong_is_told(self):
        doc = made_up()
        doc["sections"]["bits"][0]["runs"]["ours"]["wrong"] = "other bits in 3 of 200 batches"
        doc["sections"]["mixed"][0]["skipped"]["ours, apart"] = "status -2"
        self.assertEqual([n for _, n, _ in wrong(doc)], ["ours, apart", "ours"])
        self.assertIn("other bits in 3 of 200 batches", prompts_report.markdown(doc))

    def test_intervals(self):
        for freedom, right in ((8, 2.306), (24, 2.0639), (100, 1.984)):
            self.assertAlmostEqual(stats.student(freedom), right, delta=1e-3)
        row = {"runs": {"a": {"seconds": [1.0] * 9}, "b": {"seconds": [1.1, 0.9] * 4 + [1.0]}}}
        low, high = stats.interval(row, "a", "b")
        self.assertTrue(0.9 < low < 1 < high < 1.1, f"{low} {high}")
        self.assertIsNone(stats.interval(row, "a", "c"))

    def test_replay_makes_them_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")
            with open(path, "w") as f:
                json.dump(made_up(), f)
            done = subprocess.run([sys.executable, os.path.join(HERE, "..", "prompts.py"), "--replay", path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("| 200 | 0 | 1.0e-03 |  |", done.stdout)


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not there")
@unittest.skipIf(os.environ.get("FAGEN_SANITIZED"), "Python has no sanitizer's run-time")
class Rehearsal(unittest.TestCase):
    """All sections on the CPU. A launch or a peer that gets a wrong length, first row or page gives a wrong result."""

    def document(self, *words):
        options = prompts.parse(["--dry-run", "--batches", "6", *words])
        options.json = None
        with contextlib.redirect_stdout(io.StringIO()):
            return prompts.run(options)

    def test_all_sections_run(self):
        doc = self.document("--only", "d=64|b=1,.*sk=1024")
        self.assertEqual((doc["failed"], wrong(doc), set(doc["sections"])), ([], [], set(prompts.SECTIONS)))
        for name, rows in doc["sections"].items():
            for row in rows:
                self.assertEqual(row["skipped"], {}, name)
                self.assertTrue(name == "bits" or all(len(r["seconds"]) == 3 for r in row["runs"].values()))
        names = set(doc["sections"]["mixed"][0]["runs"])
        self.assertEqual(names, {n + f for n in ("ours", "ours, apart") for f in ("", ", page 16", ", page 64")}
                         | {"fa3", "fa3, page 16", "fa3, page 64"})

    def test_faults_are_noticed(self):
        from sections import prompts_rehearsal
        import torch
        right = prompts_rehearsal.Fagen.launch

        def shifted(self, a, plan=None):
            right(self, a)
            a.o.view(torch.int16)[-1, -1].bitwise_xor_(a.q.shape[0] & 1)

        def shorter(self, a, plan=None):
            a.where.update(lengths=a.where["lengths"] - 1) if "lengths" in a.where else None
            right(self, a)
        with unittest.mock.patch.object(prompts_rehearsal.Fagen, "launch", shifted):
            row, = self.document("bits", "--only", "new=1,keys=777.*d=64")["sections"]["bits"]
            self.assertTrue(row["different"] and "other bits in" in row["runs"]["ours"]["wrong"], row)
        with unittest.mock.patch.object(prompts_rehearsal.Fagen, "launch", shorter):
            doc = self.document("mixed", "--only", "users=32.*d=64")
            self.assertTrue({"ours, page 16", "ours, apart, page 64"} <= {n for _, n, _ in wrong(doc)}, wrong(doc))


if __name__ == "__main__":
    unittest.main()
