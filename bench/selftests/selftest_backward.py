#!/usr/bin/env python3
"""Gradients beside their peers, the same bits each time, compute-sanitizer: what of it needs no GPU. Cases, tables, options; and runs at
small sizes, where PyTorch is there.

    PYTHONPATH=bench python3 bench/selftests/selftest_backward.py [TEST ...]
"""
import contextlib
import importlib.util
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import backward
from sections import backward_cases
from sections import backward_report
from sections import prompts_cases
import repeat_backward
from sections.decode_report import wrong
from selftests.selftest_decode import document, run

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = {"kind": "ours", "config": "flash_bwd_mma:br=64", "origin": "model"}
ALL = backward_cases.cases(backward.SECTIONS, backward_cases.LENGTHS)


def row(name, **runs):
    case = next(c for _, c in ALL if c.name() == name)
    return {**case.dict(), "skipped": {}, "runs": runs}


def made_up():
    """Three cases with made-up times."""
    mha = [row("d=128,hq=16,hkv=16,b=1,s=16384,none", **{"ours": run(8000, **OURS), "ours, deterministic": run(8800, **OURS),
                                                         "named 1": run(10000, **OURS), "fa4": run(8800), "cudnn": run(12000),
                                                         "fa4, deterministic": run(11000, note="calls without a graph: why")}),
           row("d=64,hq=32,hkv=32,b=32,s=512,causal", **{"ours": run(300, **OURS), "fa4": run(240), "named 1": run(290, **OURS)})]
    gqa = [row("d=128,hq=16,hkv=4,b=8,s=2048,causal", **{"ours": run(900, **OURS), "fa2": run(1800)})]
    mha[1]["skipped"] = {"cudnn": "no | such op"}
    packed = [row("d=128,hq=16,hkv=16,equal,total=16384,seed=1,causal", **{"ours": run(1000, **OURS), "mma": run(2000, **OURS),
                                                                           "ours, dense": run(970, **OURS), "fa4": run(1100),
                                                                           "fa2": run(2100)}),
              row("d=64,hq=32,hkv=32,log-uniform,total=16384,seed=3,none", **{"ours": run(1600, **OURS), "fa2": run(2400)})]
    packed[1]["skipped"] = {"fa4": "no | varlen", "mma": "no kernel"}
    return {**document(), "sections": {"mha": mha, "gqa": gqa, "packed": packed}}


class Cases(unittest.TestCase):
    def test_the_grid_is_the_one_that_is_promised(self):
        self.assertEqual(len(ALL), 8 * 2 * 6 + 18)
        self.assertEqual(len({c.name() for _, c in ALL}), len(ALL))
        self.assertEqual({(c.d, c.hq, c.hkv) for s, c in ALL if s == "mha"},
                         {(64, 32, 32), (96, 21, 21), (128, 16, 16), (192, 10, 10), (256, 8, 8)})
        self.assertEqual({(c.d, c.hq, c.hkv) for s, c in ALL if s == "gqa"}, {(128, 64, 8), (128, 32, 4), (128, 16, 4)})
        dense = [c for s, c in ALL if s != "packed"]
        self.assertEqual({c.s for c in dense}, {512, 1024, 2048, 4096, 8192, 16384})
        self.assertTrue(all(c.b * c.s == 16384 for c in dense))

    def test_packed_sequences(self):
        packed = [c for s, c in ALL if s == "packed"]
        self.assertEqual({(c.d, c.hq, c.hkv, c.drawn, c.mask) for c in packed},
                         {(*heads, drawn, mask) for heads in ((128, 16, 16), (64, 32, 32), (128, 32, 8))
                          for drawn in ("equal", "uniform", "log-uniform") for mask in ("causal", "none")})
        lengths = {c.drawn: c.lengths() for c in packed}
        self.assertTrue(all(c.lengths() == lengths[c.drawn] and c.tokens == 16384 for c in packed), "one drawing for all heads and masks")
        self.assertEqual(lengths, {c.drawn: c.lengths() for c in prompts_cases.PACKED[:3]}, "those of prompts.py")
        self.assertEqual(lengths["equal"], [(2048, 2048)] * 8)
        for some in lengths.values():
            self.assertTrue(sum(q for q, _ in some) == 16384 and all(q == k > 1 for q, k in some))

    def test_flops(self):
        """10 d for each visible pair. Of dense batches half of the pairs under a causal mask, of packed ones those on the diagonal too."""
        rows = {c.name(): c.dict() for _, c in ALL}
        self.assertEqual(rows["d=128,hq=16,hkv=16,b=1,s=16384,none"]["flops"], 10 * 128 * 16 * 16384 ** 2)
        self.assertEqual(rows["d=64,hq=32,hkv=32,b=32,s=512,causal"]["flops"], 5 * 64 * 32 * 32 * 512 ** 2)
        self.assertEqual(rows["d=128,hq=16,hkv=4,b=8,s=2048,none"]["bytes"], 2 * 16384 * 128 * (4 * 16 + 4 * 4))
        one = rows["d=128,hq=32,hkv=8,equal,total=16384,seed=1,causal"]
        self.assertEqual((one["flops"], one["bytes"]), (10 * 128 * 32 * 8 * 2048 * 2049 // 2, 2 * 16384 * 128 * (4 * 32 + 4 * 8)))
        one = rows["d=64,hq=32,hkv=32,log-uniform,total=16384,seed=3,none"]
        self.assertEqual(one["flops"], 10 * 64 * 32 * sum(n * n for n, _ in prompts_cases.PACKED[2].lengths()))
        self.assertEqual((one["sequences"], one["longest"]), (11, 7595))


class Options(unittest.TestCase):
    def test_the_most_telling_cases_come_first(self):
        jobs = backward.jobs(backward.parse([]))
        self.assertEqual([s for s, _ in jobs[8 * 2 * 4:]], ["packed"] * 18)
        jobs = backward.jobs(backward.parse(["mha", "gqa"]))
        self.assertEqual(len(jobs), 8 * 2 * 4)
        self.assertEqual([c.name() for _, c in jobs[:3]], ["d=128,hq=16,hkv=16,b=1,s=16384,causal", "d=128,hq=16,hkv=16,b=1,s=16384,none",
                                                           "d=64,hq=32,hkv=32,b=1,s=16384,causal"])
        self.assertEqual(list(dict.fromkeys(c.s for _, c in jobs)), [16384, 8192, 2048, 512])
        self.assertEqual(list(dict.fromkeys(c.d for _, c in jobs)), [128, 64, 256, 192, 96])
        self.assertEqual(len(backward.jobs(backward.parse(["--all"]))), 96 + 18)

    def test_cases_are_selected(self):
        some = backward.jobs(backward.parse(["--cells", "d=128.*s=512,"]))
        self.assertEqual([s for s, _ in some], ["mha"] * 2 + ["gqa"] * 6)
        self.assertEqual([s for s, _ in backward.jobs(backward.parse(["gqa", "--only", "causal"]))], ["gqa"] * 12)
        some = [c for _, c in backward.jobs(backward.parse(["--cells", "d=128.*log-uniform"]))]
        self.assertEqual([(c.hq, c.hkv, c.mask) for c in some], [(16, 16, "causal"), (16, 16, "none"), (32, 8, "causal"), (32, 8, "none")])
        models = [c for _, c in backward.jobs(backward.parse(["--cells", "hq=(64,hkv=8|32,hkv=4),.*s=(16384|8192|2048),"]))]
        self.assertEqual({(c.hq, c.hkv, c.s, c.mask) for c in models},
                         {(*h, s, m) for h in ((64, 8), (32, 4)) for s in (16384, 8192, 2048) for m in ("causal", "none")})
        self.assertEqual(len(models), 12)
        o = backward.parse(["--config", "flash_bwd_mma:br=64", "--family", "naive_bwd"])
        self.assertEqual(o.config, ["naive_bwd", "flash_bwd_mma:br=64"])

    def test_a_library_that_names_configs_is_taken_where_one_is_named(self):
        for words, right in ((["mha"], False), (["packed"], True), (["packed", "--without", "mma"], False),
                             (["--cells", "s=512,"], False), (["mha", "--family", "naive_bwd"], True)):
            options = backward.parse(words)
            self.assertEqual(backward.lever(options, backward.jobs(options)), right, words)

    def test_what_is_wrong_is_named(self):
        for words, says in ((["mqa"], 'the section is "mqa"; accepted: mha, gqa, packed'), (["--cells", "("], '--cells is "("'),
                            (["--cells", "a", "--only", "b"], "--cells and --only are two ways"),
                            (["--simulator", "sm_80"], "--simulator is given without --dry-run")):
            told = io.StringIO()
            with contextlib.redirect_stderr(told), self.assertRaises(SystemExit):
                backward.parse(words)
            self.assertIn(says, told.getvalue())


class Report(unittest.TestCase):
    def test_numbers_arrive_in_the_tables(self):
        text = backward_report.markdown(made_up())
        self.assertIn("| 128 (16) | none | 16384 | 687 (1.100) | 625 (1.000) | 550 (0.880) | FlashAttention-4 | 625 | 458 | 500 |", text)
        self.assertIn("| 64 (32) | causal | 512 | 286 (0.800) | - (-) | 296 (0.828) | FlashAttention-4 | 358 | - | - |", text)
        self.assertIn("| 128 (16) | fagen | 1 | 1.100 | 1.100 | 1.500 | 1.375 | 1.100 |", text)
        self.assertIn("| all | fagen | 2 | 0.938 | 0.938 | 1.500 | 1.375 | 0.800 |", text)
        self.assertIn("| all | named 1 | 2 | 0.853 |", text)
        self.assertIn("| 128 (16/4) | causal | 2048 | 382 (2.000) | FlashAttention-2 | 191 |", text)
        self.assertIn("- FlashAttention-4, deterministic, 1 times: calls without a graph: why", text)
        self.assertIn("- Without cuDNN, 1 times: no | such op", text)
        self.assertIn("| 128 (16) | causal | equal | 8 | 2048 | 0.970 | 344 (1.100) | 172 (0.550) | FlashAttention-4 | 313 | 164 |", text)
        self.assertIn("| lengths | sequences | longest | of our dense rate | fagen TFLOP/s (ratio) | flash_bwd_mma TFLOP/s (ratio) |", text)
        speed = 10 * 64 * 32 * sum(n * n for n, _ in prompts_cases.PACKED[2].lengths()) / 1600e6
        self.assertIn("| 64 (32) | none | log-uniform | 11 | 7595 | - "
                      f"| {speed:.0f} (1.500) | - (-) | FlashAttention-2 | - | {speed / 1.5:.0f} |", text)
        self.assertIn("| all | flash_bwd_mma | 1 | 0.550 | 0.550 | 1.050 | 0.550 |", text)
        self.assertNotIn("fagen, dense TFLOP/s", text)
        self.assertIn("Equal lengths, of our dense rate: geometric mean of 1 ratios 0.970", text)
        self.assertIn("10 d FLOP for each visible pair", text)
        self.assertNotIn("Without a right result", text)

    def test_what_went_wrong_is_told(self):
        doc = made_up()
        doc["sections"]["mha"][0]["runs"]["ours"]["wrong"] = "relative error 1e-1"
        doc["sections"]["gqa"][0]["runs"].pop("ours")
        doc["sections"]["gqa"][0]["skipped"]["ours"] = "status -2"
        self.assertEqual([n for _, n, _ in wrong(doc)], ["ours", "ours"])
        text = backward_report.markdown(doc)
        self.assertIn("Without a right result of fagen", text)
        self.assertIn("| 128 (16) | none | 16384 | - (-) | 625 (1.000) |", text)

    def test_a_line_for_the_terminal(self):
        self.assertEqual(backward_report.line(made_up()["sections"]["mha"][1]),
                         "d=64,hq=32,hkv=32,b=32,s=512,causal  ours 286  fa4 358  named 1 296  = 0.800  [no cudnn: no | such op]")

    def test_replay_makes_them_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")
            with open(path, "w") as f:
                json.dump(made_up(), f)
            done = subprocess.run([sys.executable, os.path.join(HERE, "..", "backward.py"), "--replay", path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("| 687 (1.100) |", done.stdout)


class Repeats(unittest.TestCase):
    ROW = {"cell": "d=64", "order": "deterministic", "config": "c", "runs": 1000, "differ": 0, "dq": 0, "dk": 0, "dv": 0, "error": 3e-3,
           "took": 1}

    def test_cells(self):
        self.assertEqual({(c.d, c.mask) for c in repeat_backward.cells()}, {(d, m) for d in (64, 128, 256) for m in ("causal", "none")})
        self.assertTrue(all(c.hq == 4 * c.hkv for c in repeat_backward.cells()))
        self.assertEqual([c.d for c in repeat_backward.parse(["--cells", "d=128.*none"]).jobs], [128])

    def test_a_verdict_is_of_the_deterministic_order(self):
        self.assertIsNone(repeat_backward.wrong(self.ROW))
        self.assertIn("1 of 999 runs differ", repeat_backward.wrong({**self.ROW, "differ": 1}))
        self.assertIsNone(repeat_backward.wrong({**self.ROW, "order": "free", "differ": 999}))
        self.assertIn("relative error inf", repeat_backward.wrong({**self.ROW, "order": "free", "error": float("inf")}))

    def test_what_is_wrong_is_named(self):
        for words, says in ((["--runs", "1"], "--runs is 1"), (["--cells", "d=65"], "which finds no cell"),
                            (["--cells", "("], '--cells is "("')):
            told = io.StringIO()
            with contextlib.redirect_stderr(told), self.assertRaises(SystemExit):
                repeat_backward.parse(words)
            self.assertIn(says, told.getvalue())


class Sanitizer(unittest.TestCase):
    """sanitize_backward.sh with a fagen and a compute-sanitizer that say what they are told to."""
    RIGHT = {"verify": "$n of $n cases are right on a chip", "tool": "========= ERROR SUMMARY: 0 errors"}
    FAGEN = """#!/bin/bash
d=1 n=
while (($#)); do
    [[ $1 != --count ]] || n=$2
    [[ $1 != -d ]] || IFS=, read -ra d <<< "$2"
    shift
done
n=${n:-${#d[@]}}
echo "SAYS"
"""
    TOOL = """#!/bin/bash
[[ $1 == --tool && $3 == --error-exitcode ]] || exit 3
"${@:5}"
echo "SAYS"
exit CODE
"""

    def run_it(self, *words, verify="", tool="", code=0):
        """Of the run: its status and what it said. verify, tool: the last lines of the two, with $n for what was asked for."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "bin"))
            files = {"bin/fagen": self.FAGEN.replace("SAYS", verify), "tool": self.TOOL.replace("SAYS", tool).replace("CODE", str(code))}
            for name, text in files.items():
                with open(os.path.join(folder, name), "w") as f:
                    f.write(text)
                os.chmod(os.path.join(folder, name), 0o755)
            done = subprocess.run([os.path.join(HERE, "..", "sanitize_backward.sh"), "-b", folder, *words], capture_output=True, text=True,
                                  env={**os.environ, "COMPUTE_SANITIZER": os.path.join(folder, "tool")})
            return done.returncode, done.stdout + done.stderr

    def test_clean_runs(self):
        status, said = self.run_it(**self.RIGHT)
        self.assertEqual(status, 0, said)
        self.assertIn("8 of 8 runs are clean", said)
        status, said = self.run_it("-t", "racecheck", "naive_bwd", verify=self.RIGHT["verify"],
                                   tool="========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")
        self.assertEqual((status, "1 of 1 runs are clean" in said), (0, True), said)

    def test_what_is_not_clean_ends_with_1(self):
        for change in ({"tool": "========= ERROR SUMMARY: 2 errors", "code": 9}, {"tool": "no word of the tool"}, {"code": 4},
                       {"verify": "4 of $n cases are right on"}, {"verify": ""}):
            status, said = self.run_it("naive_bwd", **{**self.RIGHT, **change})
            self.assertEqual((status, "WRONG memcheck naive_bwd" in said), (1, True), said)

    def test_what_is_wrong_is_named(self):
        for words, says in ((("-t", "foo"), '-t is "foo"; accepted: memcheck'), (("-n", "x"), '-n is "x"; accepted: a number from 1 on'),
                            (("-b", "/nowhere"), '-b is "/nowhere"')):
            status, said = self.run_it(*words, **self.RIGHT)
            self.assertEqual(status, 2)
            self.assertIn(says, said)


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not there")
@unittest.skipIf(os.environ.get("FAGEN_SANITIZED"), "Python has no sanitizer's run-time")
class Rehearsal(unittest.TestCase):
    """All sections on the CPU."""

    def document(self, *words):
        options = backward.parse(["--dry-run", *words])
        options.json = None
        with contextlib.redirect_stdout(io.StringIO()):
            return backward.run(options)

    def test_dense_sections_run(self):
        doc = self.document("mha", "gqa", "--deterministic", "--cells", "d=(128|96),.*s=(512|16384),")
        self.assertEqual((doc["failed"], wrong(doc), set(doc["sections"])), ([], [], {"mha", "gqa"}))
        for rows in doc["sections"].values():
            for row in rows:
                self.assertEqual(row["skipped"], {})
                self.assertEqual(set(row["runs"]), {"ours", "ours, deterministic", "fa4", "fa4, deterministic"})
                self.assertTrue(all(len(r["seconds"]) == 3 for r in row["runs"].values()))
        names = [set(row["runs"]) for row in self.document("--cells", "d=(128|96),.*s=512,")["sections"]["mha"]]
        self.assertEqual(names, [{"ours", "fa4", "fa4, deterministic"}] * 2 + [{"ours", "fa4"}] * 2)

    def test_packed_sequences_run(self):
        doc = self.document("packed", "--deterministic", "--cells", "hq=32,hkv=8")
        self.assertEqual((doc["failed"], wrong(doc), len(doc["sections"]["packed"])), ([], [], 6))
        for row in doc["sections"]["packed"]:
            self.assertEqual(row["skipped"], {})
            self.assertEqual(set(row["runs"]), {"ours", "ours, deterministic", "mma", "fa4", "fa4, deterministic"}
                             | ({"ours, dense"} if row["drawn"] == "equal" else set()))
            self.assertEqual(row["runs"]["mma"]["config"], "flash_bwd_mma")
            self.assertTrue(all(len(r["seconds"]) == 3 for r in row["runs"].values()))
        row, = self.document("packed", "--cells", "d=64.*log-uniform.*none", "--without", "mma")["sections"]["packed"]
        self.assertEqual((set(row["runs"]), row["skipped"]), ({"ours", "fa4"}, {"mma": "named in --without"}))

    def test_faults_of_packed_sequences_are_noticed(self):
        """Of one sequence alone, the shortest, which the norm of all the others hides; of lengths that a launch gets; of a peer."""
        from sections import backward_rehearsal
        right, peer = backward_rehearsal.Fagen.launch, backward_rehearsal.Peer.packed

        def planted(before=None, behind=None):
            def launch(self, a, plan=None):
                before(a) if before and a.grad_out is not None and a.where else None
                right(self, a)
                behind(a) if behind and a.grad_out is not None and a.where else None
            return launch

        def one(a):
            lengths = a.where["first_q"].diff()
            at = int(a.where["first_q"][lengths.argmin()])
            a.written.tensors[1][at:at + int(lengths.min())].zero_()

        def most(a):
            a.where["sk"] -= 1

        def border(a):
            a.where["first_k"][1] += 1
        for fault in ({"behind": one}, {"before": most}, {"before": border}):
            with unittest.mock.patch.object(backward_rehearsal.Fagen, "launch", planted(**fault)):
                doc = self.document("packed", "--cells", "d=64.*uniform.*causal")
                self.assertEqual({n for _, n, _ in wrong(doc)} - {"mma"}, {"ours"}, fault)
                self.assertEqual(len(doc["sections"]["packed"]), 2)

        def refused(self, *given):
            raise RuntimeError("no lengths")

        def longer(self, q, k, v, grad_out, causal, first_q, *given):
            return peer(self, q, k, v, grad_out, causal, first_q[[0, -1]], first_q[[0, -1]], q.shape[0], q.shape[0])
        for fault, say in ((refused, lambda row: row["skipped"]["fa4"]), (longer, lambda row: row["runs"]["fa4"]["wrong"])):
            with unittest.mock.patch.object(backward_rehearsal.Peer, "packed", fault):
                doc = self.document("packed", "--cells", "d=64.*log-uniform.*causal")
                self.assertIn("no lengths" if fault is refused else "relative error", say(doc["sections"]["packed"][0]))
                self.assertEqual(wrong(doc), [])

    def test_a_reference_of_packed_sequences_sees_each_of_them(self):
        """Many heads, of which a sequence has but some; and the same errors as a dense batch of the same sequences."""
        from sections import backward_oracle
        import torch
        case = backward_cases.Packed(16, 24, 12, 96, "log-uniform", 3, shortest=4, longest=40)
        q, grad_out = torch.randn(2, 96, 24, 16)
        k, v = torch.randn(2, 96, 12, 16)
        right = backward_oracle.Packed(case, q, k, v, grad_out)
        self.assertEqual(right.share, "8 of 12 heads of keys, of every sequence")
        self.assertEqual(len(right.pieces), 8 * len(case.lengths()))
        begins = [0, *itertools.accumulate(n for n, _ in case.lengths())]
        self.assertEqual([len({h for rows, h in right.pieces if (rows.start, rows.stop) == ends}) for ends in zip(begins, begins[1:])],
                         [8] * len(case.lengths()))
        self.assertEqual({h for _, h in right.pieces}, set(range(12)))
        case = backward_cases.Packed(16, 4, 2, 96, "equal", 1, typical=32, mask="none")
        dense = backward_cases.Gradients(16, 4, 2, 3, 32, "none")
        q, k, v, grad_out = (torch.randn(96, h, 16) for h in (4, 2, 2, 4))
        wide = [t.unflatten(0, (3, 32)) for t in (q, k, v, grad_out)]
        got = [t + 0.01 * torch.randn(t.shape) for t in (q, k, v)]
        for some in (backward_oracle.Gradients(*got), backward_oracle.Gradients(q, k, torch.full_like(v, torch.nan))):
            same = backward_oracle.Gradients(*(t.unflatten(0, (3, 32)) for t in some.tensors))
            errors = (backward_oracle.Packed(case, q, k, v, grad_out).error(some), backward_oracle.Reference(dense, *wide).error(same))
            for x, y in zip(*errors):
                self.assertTrue(x == y or abs(x / y - 1) < 1e-5, errors)

    def test_faults_are_noticed(self):
        from sections import backward_rehearsal
        import torch
        right = backward_rehearsal.Fagen.launch

        def planted(fault):
            def launch(self, a, plan=None):
                right(self, a)
                fault(a) if a.grad_out is not None else None
            return launch

        def twice(a):
            a.written.tensors[1].mul_(1.05)

        def tile(a):
            a.written.tensors[2][:, 8:16, -1].zero_()

        def nan(a):
            a.written.tensors[0][-1, -1, -1, -1] = torch.nan

        def late(a):
            if a.flags == 1:
                a.written.tensors[0].zero_()
            a.flags = 1
        for fault in (twice, tile, nan, late):
            with unittest.mock.patch.object(backward_rehearsal.Fagen, "launch", planted(fault)):
                self.assertEqual(len(wrong(self.document("--cells", "d=64,.*s=512,causal"))), 1, fault.__name__)

        def without_forward(self, a, plan=None):
            a.o.zero_() if a.grad_out is None else right(self, a)
        with unittest.mock.patch.object(backward_rehearsal.Fagen, "launch", without_forward):
            self.assertEqual([n for _, n, _ in wrong(self.document("--cells", "d=64,.*s=512,causal"))], ["ours"], "no forward")

    def repeats(self, fault=None):
        """(status, what was said) of the cells of d = 64; fault(arguments, run) spoils a launch of gradients."""
        from sections import backward_rehearsal
        right, runs = backward_rehearsal.Fagen.launch, iter(range(100))

        def launch(fa, a, plan=None):
            right(fa, a)
            if fault and a.grad_out is not None:
                fault(a, next(runs))
        said = io.StringIO()
        with unittest.mock.patch.object(backward_rehearsal.Fagen, "launch", launch), contextlib.redirect_stdout(said):
            return repeat_backward.main(["--dry-run", "--cells", "d=64.*none"]), said.getvalue()

    def test_repeats_count_what_differs(self):
        status, said = self.repeats()
        self.assertEqual(status, 0, said)
        self.assertIn("1 of 1 cells have the same bits in 3 runs with FA_DETERMINISTIC; in the free order 0 of 1 differ", said)

        def bit(a, run):
            if run == 2:  # the last of the deterministic order
                a.written.tensors[1].view(torch.int16)[0, 3, 1, 5] ^= 1

        def free(a, run):
            if run == 4:
                a.written.tensors[0].view(torch.int16)[0, 3, 1, 5] ^= 1

        def nan(a, run):
            a.written.tensors[2][0, 0, 0, 0] = float("nan")
        import torch
        status, said = self.repeats(bit)
        self.assertEqual((status, "1 of 2 differ (dQ 0, dK 1, dV 0)" in said, "WRONG: d=64" in said), (1, True, True), said)
        status, said = self.repeats(free)
        self.assertEqual((status, "1 of 2 differ (dQ 1, dK 0, dV 0)" in said), (0, True), said)
        self.assertEqual(self.repeats(nan)[0], 1)

    def test_peers_call_what_pytorch_has(self):
        """Shapes alone: the operators are for GPUs."""
        from sections import backward_peers
        import torch
        for make in (backward_peers.Cudnn, backward_peers.Fa2):
            for hkv in (4, 2):
                q, grad_out = (torch.empty(2, 40, 4, 64, dtype=torch.bfloat16, device="meta") for _ in "qo")
                k, v = (torch.empty(2, 40, hkv, 64, dtype=torch.bfloat16, device="meta") for _ in "kv")
                found = make().backward(q, k, v, grad_out, True)(0)
                self.assertEqual([t.shape for t in found.tensors], [q.shape, k.shape, v.shape])
        first = torch.empty(3, dtype=torch.int32, device="meta")
        for hkv in (4, 2):
            q, grad_out = (torch.empty(80, 4, 64, dtype=torch.bfloat16, device="meta") for _ in "qo")
            k, v = (torch.empty(80, hkv, 64, dtype=torch.bfloat16, device="meta") for _ in "kv")
            found = backward_peers.Fa2().packed(q, k, v, grad_out, True, first, first, 50, 50)(0)
            self.assertEqual([t.shape for t in found.tensors], [q.shape, k.shape, v.shape])
        self.assertFalse(hasattr(backward_peers.Cudnn, "packed"))

    def test_a_peer_without_groups_gets_all_heads(self):
        from sections import backward_peers
        import torch
        calls = []

        def grouped(k, v):
            if k.shape[1] != 4:
                raise RuntimeError("as many heads")
            calls.append(k)
            return lambda i: backward_peers.Gradients(torch.zeros(9, 4, 8), torch.arange(4.)[:, None].expand(9, 4, 8), torch.ones(9, 4, 8))
        k = torch.randn(9, 2, 8)
        run = backward_peers.Fa2.shared(grouped, 2, k, k)
        _, of_k, of_v = run(0).tensors
        self.assertEqual((of_k[:, :, 0].tolist(), of_v.shape, of_v.unique().tolist()), ([[1, 5]] * 9, k.shape, [2]))
        self.assertTrue("expanded" in run.note and torch.equal(calls[0][:, 1], k[:, 0]) and torch.equal(calls[0][:, 2], k[:, 1]))
        with self.assertRaises(RuntimeError):
            backward_peers.Fa2.shared(grouped, 1, k, k)

    def test_fa4_gets_the_lengths(self):
        """Its interface as of 4.0.0b36, by stand-ins."""
        from sections import backward_oracle
        from sections import backward_peers
        from sections import backward_rehearsal
        import torch
        compute, seen = backward_rehearsal.computed, []

        def forward(q, k, v, *, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal, return_lse, deterministic=False):
            _, out, lse = compute(q, k, v, q, causal, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
            return out, lse

        def backward(q, k, v, out, dout, lse, softmax_scale, causal, *, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                     deterministic=False):
            seen.append((softmax_scale, deterministic, lse.shape))
            return (*compute(q, k, v, dout, causal, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)[0].tensors, None)
        peer = backward_peers.Fa4()
        peer.module = types.SimpleNamespace(flash_attn_varlen_func=forward, _flash_attn_bwd=backward)
        case = backward_rehearsal.cut(backward_cases.packed()[-2])
        first = torch.tensor([0, *itertools.accumulate(n for n, _ in case.lengths())], dtype=torch.int32)
        q, k, v, grad_out = (torch.randn(case.tokens, h, case.d) for h in (case.hq, case.hkv, case.hkv, case.hq))
        right, longest = backward_oracle.Packed(case, q, k, v, grad_out), max(n for n, _ in case.lengths())
        for entry in (peer.packed, peer.packed_deterministic):
            self.assertLess(right.error(entry(q, k, v, grad_out, True, first, first, longest, longest)(0))[1], 1e-5)
        self.assertEqual(seen, [(128 ** -0.5, flag, (case.hq, case.tokens)) for flag in (False, True)])


if __name__ == "__main__":
    unittest.main()
