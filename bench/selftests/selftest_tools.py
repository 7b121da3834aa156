#!/usr/bin/env python3
"""The scripts that race, tune, trace and profile: what of them needs neither PyTorch nor a GPU.

    PYTHONPATH=bench python3 bench/selftests/selftest_tools.py [TEST ...]
"""
import contextlib
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from common import batches
from common import cells
import choice
import choice_report
import clocks
from common import config_text
import limits
import model
from common import ncu
import reference
import twice
import variants
import winners

HERE = os.path.dirname(os.path.abspath(__file__))


class FewRows(unittest.TestCase):
    """What bench/races/lowbits_race.py draws: the same by every count of a seed, and rows of a KV head as asked."""

    def test_cells(self):
        from races import lowbits_race
        def cells_of(*more):
            return lowbits_race.cells_of(lowbits_race.parse(["--kv", "q8_0,s8", "--rows", "9-16", *more]))
        six = cells_of("--seed", "5", "--count", "6")
        self.assertEqual(cells_of("--seed", "5", "--count", "2"), six[:4])
        self.assertTrue(all(9 <= c.sq * (c.hq // c.hkv) <= 16 for _, c in six))
        self.assertTrue(all(c.sq == 4 and c.bytes() >= lowbits_race.LEAST for _, c in cells_of("--cells", "--only", "sq=4")))


class Batches(unittest.TestCase):
    """What bench/races/serving_race.py draws: the same by every count of a seed, and as its kind says."""

    def test_a_seed_has_an_order(self):
        for kind in batches.KINDS:
            four = batches.draw(kind, 5, 4)
            self.assertEqual(batches.draw(kind, 5, 2), four[:2])
            self.assertNotEqual(batches.draw(kind, 6, 2), four[:2])

    def test_batches_are_as_their_kinds_say(self):
        def drawn(kind):
            return batches.draw(kind, 7, 12)
        for b in drawn("packed"):
            self.assertTrue(all(q == k for q, k in b.lens) and len(b.lens) > 1, b.name())
        for b in drawn("fewrows"):
            rows = b.sq * (b.hq // b.hkv)
            self.assertTrue(57 <= rows <= 256 and all(k >= 750 + q for q, k in b.lens), b.name())
        for b in drawn("mixed"):
            self.assertTrue(sum(q == 1 for q, _ in b.lens) >= 4 and len({q for q, _ in b.lens}) <= 2, b.name())
        for b in drawn("paged"):
            self.assertTrue({q for q, _ in b.lens} == {b.sq} and b.sq <= 16, b.name())

    def test_a_batch_as_a_problem(self):
        b = batches.Batch("mixed", 0, "bf16", 96, 8, 2, "causal", "pages", 256, ((1, 40), (70, 90)), False)
        self.assertEqual(b.fields(), dict(dtype="bf16", mask="causal", d=96, dv=96, b=2, hq=8, hkv=2, sq=70, sk=90, page=128))


class Choice(unittest.TestCase):
    """bench/choice.py draws from files in turns; its report sorts shapes into classes and compares with the best peer."""

    def test_kinds_of_shapes(self):
        for words, kind in (("hq=8,hkv=8,sq=512,sk=512", "sq = sk"), ("hq=8,hkv=2,sq=512,sk=512", "sq = sk, groups"),
                            ("hq=8,hkv=2,sq=4,sk=512", "1 to 16 rows of a KV group"), ("hq=8,hkv=2,sq=5,sk=512", "17 to 64 rows of a KV group"),
                            ("hq=8,hkv=8,sq=256,sk=512", "129 to 256 rows of a KV group"), ("hq=8,hkv=8,sq=257,sk=512", "above 256 rows of a KV group"),
                            ("hq=8,hkv=8,sq=600,sk=512", "sq > sk")):
            self.assertEqual(choice_report.kind_of(cells.parse("bf16,d=64,mask=none,b=1," + words)), kind)

    def test_a_shape_beside_its_peers(self):
        entry = {"problem": "bf16,d=64,mask=none,b=1,hq=8,hkv=8,sq=512,sk=512", "variants": [
            {"config": "x", "why": "does not fit"}, {"config": "a", "seconds": [2.0, 2.2, 9.0]}, {"config": "b", "seconds": [1.0]},
            {"peer": "fa3", "seconds": [3.0]}, {"peer": "fa2", "seconds": [1.5]}, {"peer": "cudnn", "why": "no"}], "chosen": "a"}
        s = choice_report.Shape(entry)
        self.assertEqual((s.best, s.seconds, s.peer, s.peer_seconds, s.chosen), ("b", 1.0, "fa2", 1.5, 2.2))
        entry["chosen"] = "x"  # it did not run
        self.assertIsNone(choice_report.Shape(entry).chosen)

    def test_classes_are_in_the_order_of_their_rows(self):
        kinds = ["sq > sk", "129 to 256 rows", "above 256 rows", "1 to 16 rows", "sq = sk", "17 to 64 rows"]
        self.assertEqual(sorted(kinds, key=choice_report.order_of),
                         ["1 to 16 rows", "17 to 64 rows", "129 to 256 rows", "above 256 rows", "sq = sk", "sq > sk"])

    def test_a_lent_workspace_beside_an_own_one(self):
        entry = {"problem": "bf16,d=64,mask=none,b=1,hq=8,hkv=8,sq=64,sk=512", "chosen": "a", "variants": [
            {"config": "a", "workspace": "own", "bytes": 1, "seconds": [2.0, 2.0, 9.0]},
            {"config": "a", "workspace": "lent", "bytes": 1, "seconds": [2.1, 2.1, 1.0]}]}
        s = choice_report.Shape(entry)
        self.assertEqual(list(s.beside), ["lent"])
        self.assertAlmostEqual(s.beside["lent"], 1.05)
        self.assertTrue(s.takes)
        self.assertEqual((s.seconds, s.chosen), (2.0, 2.0), "the time with a workspace")
        self.assertIn("lent 1.050 times", choice.told_lent("p", entry["variants"]))
        entry["variants"].append({"config": "a", "workspace": "none", "bytes": 1, "seconds": [6.0]})
        s = choice_report.Shape(entry)
        self.assertEqual((s.beside["none"], s.seconds), (3.0, 2.0))
        self.assertIn("none 3.000 times", choice.told_lent("p", entry["variants"]))
        del entry["variants"][1:]
        self.assertEqual(choice_report.Shape(entry).beside, {})

    def test_kinds_come_in_turns(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, n in (("few", 1), ("gqa", 2)):
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "w") as f:
                    json.dump({"shapes": [{"problem": f"{name}{i}", "candidates": ["a", "b", "c"], "random": ["b", "d"]} for i in range(n)]}, f)
            o = choice.parse([*paths, "-o", "x", "--candidates", "2", "--random", "2"])
            self.assertEqual(choice.shapes_of(o), [("few0", ["a", "b", "d"]), ("gqa0", ["a", "b", "d"]), ("gqa1", ["a", "b", "d"])])


class Variants(unittest.TestCase):
    def test_choices_are_expanded(self):
        self.assertEqual(config_text.expand("f:a=1|2,b=3,c=4|5"), ["f:a=1,b=3,c=4", "f:a=1,b=3,c=5", "f:a=2,b=3,c=4", "f:a=2,b=3,c=5"])
        self.assertEqual(config_text.expand("f"), ["f"])

    def test_the_chosen_is_varied(self):
        self.assertEqual(config_text.varied("f:a=1,b=2,c=3", "b=2|5,a=1|4"),
                         ["f:a=1,b=2,c=3", "f:a=4,b=2,c=3", "f:a=1,b=5,c=3", "f:a=4,b=5,c=3"])
        self.assertEqual(config_text.varied("f:a=1", "x=1|2"), ["f:a=1"], "of another family")

    def test_parts_and_neighbours(self):
        self.assertTrue(config_text.is_part("f:a=1", "f:a=1,b=2"))
        self.assertFalse(config_text.is_part("f:a=1", "f:a=12,b=2"))
        self.assertFalse(config_text.is_part("f:a=1", "g:a=1,b=2"))
        others = ("f:a=1,b=2", "f:a=1,b=3", "f:a=2,b=3", "g:a=1,b=2")
        self.assertEqual([config_text.distance("f:a=1,b=2", c) for c in others], [0, 1, 2, math.inf])

    def test_what_is_common_is_told_once(self):
        short, common = variants.varying(["f:a=1,b=2", "f:a=3,b=2"])
        self.assertEqual((short, common), ({"f:a=1,b=2": "a=1", "f:a=3,b=2": "a=3"}, "f:b=2"))
        short, common = variants.varying(["f:a=1", "g:a=1"])
        self.assertEqual((short, common), ({"f:a=1": "f:", "g:a=1": "g:"}, "a=1"))

    def test_one_reason_is_told_once(self):
        """Though a message names the config."""
        some = [{"config": f"f:a={i}", "why": f"f:a={i} on sm_90a: constraint smem"} for i in (1, 2)] + [{"config": "f:a=3", "why": "wrong"}]
        text = variants.tables([{"problem": "p", "flops": 1, "variants": some}], 5)
        self.assertIn("2 x it on sm_90a: constraint smem", text)
        self.assertIn("1 x wrong", text)

    def drive(self, configs, problems, **given):
        """The parent over a worker that hangs in f:hang, dies in f:die and times the others."""
        with tempfile.TemporaryDirectory() as folder:
            worker = os.path.join(folder, "worker.py")
            with open(worker, "w") as f:
                f.write("""
import json, os, sys, threading
job = json.load(sys.stdin)
print("chatter of a library", flush=True)
print(12, flush=True)
for c in job["cells"]:
    problem = f"{c['dtype']},d={c['d']},dv={c['dv']},mask={c['mask']},b={c['b']},hq={c['hq']},hkv={c['hkv']},sq={c['sq']},sk={c['sk']}"
    out = []
    for config in job["configs"]:
        v = {"config": config}
        out.append(v)
        if config in job["dead"].get(problem, {}):
            v["why"] = job["dead"][problem][config]
            continue
        print(json.dumps({"at": [problem, config]}), flush=True)
        if config == "f:hang": threading.Event().wait()
        if config == "f:die": os._exit(3)
        v.update(seconds=[1e-3 * len(config)], error=1e-3)
    print(json.dumps({"at": None, "result": {"problem": problem, "flops": 1e9, "variants": out}}), flush=True)
""")
            o = variants.parse([x for p in problems for x in ("--problem", p)] + ["--hang", "2"] + configs)
            for k, v in given.items():
                setattr(o, k, v)
            with contextlib.redirect_stdout(io.StringIO()):
                return variants.Parent(o, (sys.executable, worker)).go()

    def test_a_kernel_that_hangs_or_dies_takes_only_itself_along(self):
        results = self.drive(["f:a=1", "f:hang", "f:die", "f:longer=1"], ["64,none,512", "64,none,1024"])
        self.assertEqual(len(results), 2)
        for r in results:
            by = {v["config"]: v for v in r["variants"]}
            self.assertEqual([c for c, v in by.items() if v.get("seconds")], ["f:a=1", "f:longer=1"])
            self.assertIn("hangs", by["f:hang"]["why"])
            self.assertIn("ended with 3", by["f:die"]["why"])
        self.assertIn(", at bf16,d=64", results[1]["variants"][1]["why"], "the same kernel was not tried again")
        text = variants.tables(results, 10)
        self.assertLess(text.index("a=1"), text.index("longer=1"))

    def test_too_many_casualties_end_it_with_what_there_is(self):
        results = self.drive(["f:a=1", "f:die"], ["64,none,512", "128,none,512", "256,none,512"], casualties=2)
        self.assertEqual([r["problem"].split(",")[1] for r in results], ["d=64"])

    def test_winners_become_rows(self):
        race = [{"problem": "bf16,d=64,dv=64,mask=none,b=4,hq=4,hkv=4,sq=512,sk=512", "flops": 1, "variants": [
            {"config": "f:a=1", "seconds": [3, 3, 3]}, {"config": "f:a=2", "seconds": [2, 2, 2]},
            {"config": "cudnn", "peer": True, "seconds": [1]}, {"config": "f:a=3", "why": "wrong"}]}]
        tuned = {"problems": [{"problem": "fp16,d=72,dv=72,mask=causal,o=fp16,align=16,b=1,hq=2,hkv=2,sq=9,sk=9", "source": "measured",
                               "winner": {"config": "g:b=1", "seconds": 1.0}},
                              {"problem": "fp16,d=8,dv=8,mask=none,o=fp16,align=16", "source": "model",
                               "winner": {"config": "g:b=2", "seconds": 1.0}}]}
        best = winners.read([race, tuned])
        first = "bf16,d=64,dv=64,mask=none,o=bf16,align=16,b=4,hq=4,hkv=4,sq=512,sk=512"
        self.assertEqual({k: v[1] for k, v in best.items()}, {first: "f:a=2", tuned["problems"][0]["problem"]: "g:b=1"})
        self.assertIn("align=8", winners.full("bf16,d=68"))
        of_gradients = "bf16,d=64,dv=64,mask=none,o=bf16,align=16,op=backward,features=deterministic,b=1,hq=2,hkv=1,sq=9,sk=9,grad=fp32"
        self.assertEqual(winners.full(of_gradients), of_gradients)
        self.assertTrue(winners.full("bf16,d=64,op=backward,sq=9,sk=9").endswith(",op=backward,sq=9,sk=9,grad=bf16"))
        old = f'/* head */\nDEFAULT_ALONE("Chip", "{first}",\n        "f:old=1")\nDEFAULT("Other", "{first}",\n        "f:old=2")\n'
        new = winners.merge(old, "Chip", best)
        self.assertTrue(new.startswith("/* head */\n"))
        self.assertEqual([(m[0], m[3]) for m in winners.ROW.findall(new)],
                         [("DEFAULT_ALONE", "f:a=2"), ("DEFAULT", "f:old=2"), ("DEFAULT", "g:b=1")])


ACTIVE = ".avg.pct_of_peak_sustained_active"
PROFILE = {  # metric: (unit, value) of a made-up launch
    "gpu__time_duration.sum": ("us", "820.50"), "sm__pipe_tensor_cycles_active" + ACTIVE: ("%", "83.2"),
    "sm__inst_executed_pipe_xu" + ACTIVE: ("%", "38.5"), "smsp__issue_active" + ACTIVE: ("%", "35.1"),
    "launch__registers_per_thread": ("register/thread", "168"), "launch__shared_mem_per_block_dynamic": ("Kbyte/block", "200.70"),
    "launch__grid_size": ("", "2,048"), "launch__block_size": ("", "384"), "sm__cycles_elapsed.avg.per_second": ("Ghz", "1.50"),
    "sm__cycles_elapsed.max": ("cycle", "1,230,000"), "sm__cycles_active.avg": ("cycle", "1,000,000"),
    "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio": ("inst", "2.00"),
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": ("inst", "1.00"),
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": ("inst", "1.00"), "dram__bytes_read.sum": ("Mbyte", "201.5")}


def raw_page(metrics):
    quoted = [",".join(f'"{x}"' for x in row) for row in (
        ["ID", "Kernel Name", "Block Size"] + list(metrics), ["", "", ""] + [u for u, _ in metrics.values()],
        ["0", "fa_fwd", "(384, 1, 1)"] + [v for _, v in metrics.values()])]
    return "==PROF== Connected to process 1 (fagen)\n" + "\n".join(quoted) + "\n==PROF== Disconnected\n"


class Model(unittest.TestCase):
    def test_correlation_is_of_ranks_and_ties_share_theirs(self):
        self.assertAlmostEqual(model.correlation([1, 2, 3, 4], [10, 20, 30, 1000]), 1)
        self.assertAlmostEqual(model.correlation([1, 2, 3], [3, 2, 1]), -1)
        self.assertEqual(model.ranks([5, 1, 5, 0]), [3.5, 2, 3.5, 1])
        self.assertAlmostEqual(model.correlation([1, 1, 2, 2], [1, 2, 3, 4]), 0.8944, 3)
        self.assertIsNone(model.correlation([1, 1, 1], [1, 2, 3]))

    def test_what_is_measured_is_what_ran_often_enough(self):
        race = [{"problem": "p", "flops": 1, "variants": [
            {"config": "f:a=1", "seconds": [1, 3, 2], "told": {}}, {"config": "f:a=2", "seconds": [1], "told": {}},
            {"config": "f:a=3", "seconds": [1, 1], "told": {"serialized": 1}}, {"config": "f:a=4", "seconds": [1, 1], "told": {"spills": 8}},
            {"config": "cudnn", "seconds": [1, 1], "peer": True}, {"config": "g:a=1", "seconds": [8, 8]}, {"config": "f:a=5", "why": "x"}]}]
        again = [{"problem": "p", "flops": 1, "variants": [{"config": "f:a=1", "seconds": [8, 8], "told": {}}]}]
        self.assertEqual({c: round(t, 9) for c, t in model.measured([race], "f", 2)["p"].items()}, {"f:a=1": 2})
        self.assertEqual({c: round(t, 9) for c, t in model.measured([race], least=2)["p"].items()}, {"f:a=1": 2, "g:a=1": 8})
        self.assertAlmostEqual(model.measured([race, again], "f", 2)["p"]["f:a=1"], 4)

    def test_a_pick_costs_what_it_takes_over_the_winner(self):
        r = model.compare({"a": 4.0, "b": 2.0, "c": 3.0, "gone": 1.0}, {"new": 1.0, "c": 2.0, "b": 2.5, "a": 5.0})
        self.assertEqual((r["n"], r["best"], r["place"], r["overall"]), (3, "b", 2, 3))
        self.assertAlmostEqual(r["regret"], 1.5)
        self.assertAlmostEqual(r["rho"], 0.5)
        self.assertAlmostEqual(r["rms"], math.sqrt((math.log(5 / 4) ** 2 + math.log(2.5 / 2) ** 2 + math.log(2 / 3) ** 2) / 3))
        self.assertIsNone(model.compare({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0}))

    def test_errors_are_told_by_tunable_with_the_problem_mean_apart(self):
        results = {"bf16,d=64,mask=none": {"logs": {"f:br=64,bc=32": 0.3, "f:br=128,bc=32": 0.1, "f:br=64,bc=64": 0.2}}}
        self.assertEqual(model.residuals(results, ["br"]), ["  d=64 br=64: +5.0 % (2)", "  d=64 br=128: -10.0 % (1)"])


class Profiles(unittest.TestCase):
    def test_both_pages_are_read_in_base_units(self):
        k, = ncu.parse(raw_page(PROFILE))
        self.assertEqual(k["kernel"], "fa_fwd")
        self.assertAlmostEqual(k["metrics"]["gpu__time_duration.sum"], 820.5e-6)
        self.assertAlmostEqual(k["metrics"]["launch__shared_mem_per_block_dynamic"], 200700)
        self.assertEqual(k["metrics"]["launch__grid_size"], 2048)
        rows = [f'"0","fa_fwd","Some","{n}","{u}","{v}"' for n, (u, v) in PROFILE.items()]
        details, = ncu.parse('"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"\n' + "\n".join(rows))
        self.assertEqual(details["metrics"], k["metrics"])
        with self.assertRaisesRegex(ncu.Error, "ERR_NVGPUCTRPERM"):
            ncu.parse("==ERROR== ERR_NVGPUCTRPERM\n")

    def says(self, **changed):
        profile = {**PROFILE, **{n: ("%", str(v)) for n, v in changed.items()}}
        return limits.analyse(ncu.parse(raw_page(profile))[0], cells.parse("128,none,4096"))

    def test_the_limit_is_named(self):
        a = self.says()
        self.assertEqual(a["says"][0], "Limited by the matrix units: 83 % of their peak.")
        text = "\n".join(a["says"])
        self.assertIn("670 TFLOP/s at 1.50 GHz", text)
        self.assertIn("Useful products are 83 % of the matrix peak", text)
        self.assertIn("stood idle 19 %", text)
        self.assertIn("168 registers", text)
        tensor, xu = "sm__pipe_tensor_cycles_active" + ACTIVE, "sm__inst_executed_pipe_xu" + ACTIVE
        self.assertIn("most likely limited by the special-function units", self.says(**{tensor: 30, xu: 75})["says"][0].lower())
        latency = self.says(**{tensor: 40})["says"][0]
        self.assertIn("Limited by latency", latency)
        self.assertIn("wgmma to end (67 %)", latency)
        self.assertIn("they take turns", "\n".join(self.says(**{tensor: 55, xu: 45})["says"]))

    def test_what_is_missing_is_named(self):
        a = self.says()
        self.assertTrue(any(m.startswith("l2 (lts__t_sectors") for m in a["missing"]), a["missing"])
        self.assertFalse(any(m.startswith("matrix") for m in a["missing"]))
        self.assertIn("Without a metric in this profile: ", limits.shown(a))
        self.assertEqual(limits.analyse({"kernel": "k", "metrics": {}})["says"], ["Nothing tells how busy the units are."])

    def test_a_saved_profile_is_enough(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
            f.write(raw_page(PROFILE))
            f.flush()
            done = subprocess.run([sys.executable, os.path.join(HERE, "..", "limits.py"), "--csv", f.name, "--problem", "128,none,4096"],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Limited by the matrix units", done.stdout)


@unittest.skipUnless(os.environ.get("FAGEN_LIBRARY"), "FAGEN_LIBRARY is not set")


class Clocks(unittest.TestCase):
    def test_every_point_is_in_the_kernel(self):
        text = ""
        for piece in sorted({file for _, file, _ in clocks.POINTS}):
            with open(os.path.join(HERE, "..", "..", "templates", piece)) as f:
                text += clocks.instrument(piece, f.read(), 3)
        for i in range(len(clocks.POINTS)):
            self.assertEqual(text.count(f"point(trace, {i});"), 1)
        self.assertIn("blockIdx.x == 3", text)
        with self.assertRaisesRegex(ValueError, "0 times, not once"):
            clocks.instrument(clocks.CONSUMER, "", 0)
        with open(os.path.join(HERE, "..", "..", "templates", clocks.STORE)) as f:
            self.assertIn("if (false && row < $(l.runs and", clocks.without_lse(f.read()))
        with self.assertRaises(ValueError):
            clocks.without_lse("")

    def test_segments(self):
        ways, tiles = clocks.segments([(0, 0xfffffff0), (1, 0x10), (2, 0x20), (0, 0x50), (1, 0x90)])
        self.assertEqual(tiles, 2)
        self.assertEqual(ways[0, 1], [0x20, 0x40], "clocks wrap around")
        self.assertIn("48 per tile", clocks.table(0, [(0, 0xfffffff0), (1, 0x10), (0, 0x50), (1, 0x90)]))


class Twice(unittest.TestCase):
    def race(self, **took):
        return {"problems": [{"problem": "P", "candidates": [{"config": c, "outcome": "ok", "seconds": t} for c, t in took.items()]
                              + [{"config": "w", "outcome": "wrong", "seconds": 1e-9}]}]}

    def test_verdicts(self):
        race = self.race(a=1.0e-3, b=1.009e-3, c=1.02e-3, e=0.985e-3)
        def judged(first, second, thorough=None):
            rows = twice.verdicts(race, {"P": first}, {"P": second}, {"P": thorough} if thorough else {})
            self.assertEqual(len(rows), 1)
            return rows, twice.holds(rows, 1 if thorough else 0)
        self.assertTrue(judged("a", "a")[1])
        self.assertTrue(judged("a", "b")[1])
        self.assertTrue(judged("b", "a")[1])
        self.assertFalse(judged("a", "c")[1])
        self.assertFalse(judged("a", "w")[1], "a winner that is wrong in the race is no winner")
        self.assertFalse(judged("a", "gone")[1])
        self.assertFalse(judged("a", "a", "e")[1], "1.5 % behind what a thorough search found")
        self.assertTrue(judged("a", "b", "b")[1], "ahead of it is fine")
        self.assertAlmostEqual(judged("a", "b", "e")[0][0]["apart"], 0.009)
        self.assertIn("1 of 1 pairs within 1 %, 0 the same config", twice.table(judged("a", "b", "e")[0]))
        self.assertFalse(twice.holds([], 0), "nothing was raced")
        self.assertFalse(twice.holds(judged("a", "a")[0], 12), "too few were searched thoroughly")

    def test_unraced_by_the_same_default(self):
        def tuned(config, gain, default="d"):
            return {"problems": [{"problem": "P", "source": "measured", "winner": {"config": config}, "baseline": {"config": default}, "gain": gain}]}
        rows = twice.verdicts(twice.unraced(tuned("a", 0.03), tuned("b", 0.01)), {"P": "a"}, {"P": "b"}, {})
        self.assertAlmostEqual(rows[0]["apart"], 1.03 / 1.01 - 1)
        self.assertFalse(twice.holds(rows, 0))
        rows = twice.verdicts(twice.unraced(tuned("a", 0.03), tuned("a", 0.01)), {"P": "a"}, {"P": "a"}, {})
        self.assertEqual(rows[0]["apart"], 0, "the same config, however it was measured")
        rows = twice.verdicts(twice.unraced(tuned("a", 0.03), tuned("b", 0.01, "another")), {"P": "a"}, {"P": "b"}, {})
        self.assertIsNone(rows[0]["apart"], "nothing in common to be held against")
        rows = twice.verdicts(twice.unraced(tuned("a", 0.03), tuned("a", 0.03), tuned("e", 0.05)), {"P": "a"}, {"P": "a"}, {"P": "e"})
        self.assertAlmostEqual(rows[0]["behind"], 1.05 / 1.03 - 1)
        row = {"apart": 0.004, "thorough": None, "behind": None}
        self.assertFalse(twice.is_far(row))
        for other in ({"apart": -0.006}, {"apart": None}, {"thorough": "e", "behind": 0.02}, {"thorough": "e"}):
            self.assertTrue(twice.is_far({**row, **other}), f"{other} is for a race")

    def test_only_measured_winners(self):
        found = {"problems": [{"problem": "P", "source": "measured", "winner": {"config": "a"}}, {"problem": "Q", "source": "model", "winner": {"config": "a"}},
                              {"problem": "R", "source": "measured", "winner": None}]}
        self.assertEqual(twice.winners(found), {"P": "a"})

    def test_devices_share_the_work(self):
        used = twice.on_each(["0", "1"], lambda item, device: (item, device), range(20))
        self.assertEqual([item for item, _ in used], list(range(20)))
        self.assertLessEqual({device for _, device in used}, {"0", "1"})
        self.assertEqual(twice.on_each([], lambda item, device: (item, device), "ab"), [("a", None), ("b", None)])
        with unittest.mock.patch.object(twice.subprocess, "run") as run:
            twice.race(["P"], ({"P": "a"}, {"P": "b"}), ["7"])
            self.assertEqual(run.call_args.kwargs["env"]["CUDA_VISIBLE_DEVICES"], "7")

    def test_a_race_is_of_winners_that_differ(self):
        with unittest.mock.patch.object(twice.subprocess, "run") as run:
            self.assertEqual(twice.race(["P"], ({"P": "a"}, {"P": "a"}, {})), {"problems": []})
            run.assert_not_called()
            rows = twice.verdicts(twice.race(["P"], ({"P": "a"}, {"P": "b"}, {})), {"P": "a"}, {"P": "b"}, {})
            run.assert_called_once()
        self.assertFalse(twice.holds(rows, 0), "a race that gave nothing")
        rows = twice.verdicts({"problems": [twice.raced_problem("P", [{"problem": "p", "variants": [
            {"config": "a", "seconds": [2.0, 3.0, 9.0]}, {"config": "b", "seconds": [3.06, 1.0, 4.0]}, {"config": "c", "error": "x"},
            {"config": "cudnn", "peer": True, "seconds": [1.0]}]}])]}, {"P": "a"}, {"P": "b"}, {})
        self.assertAlmostEqual(rows[0]["apart"], 0.02)


class Reference(unittest.TestCase):
    def record(self, config, seconds, **more):
        return dict({"problem": "bf16,d=64", "config": config, "outcome": "ok", "how": "measured", "verified": True, "seconds": seconds, "spread": 0.01, "count": 3,
                     "regs": 128, "chip": "NVIDIA A", "arch": "sm_80", "version": "0", "compiler": "c", "driver": "d", "date": "2026-01-01"}, **more)

    def test_the_place_of_the_first_and_the_level_of_the_report(self):
        lines = [self.record("f:a=1", 9e-6), self.record("f:a=2", 8e-6), self.record("f:a=1", 7e-6, quality="steady"), self.record("f:a=3", 1e-6, verified=False),
                 self.record("f:a=4", 1e-6)]
        report = {"problems": [{"problem": "bf16,d=64", "candidates": [{"config": f"f:a={k}", "recorded": f"f:a={k}", "verified": True, "level": 1e-6 * (10 + k)} for k in (1, 2, 3)]}]}
        rows = list(reference.table("Box", reference.read([json.dumps(r) for r in lines], report)))
        self.assertEqual([r.split("\t")[:2] for r in rows if r[0].isdigit()], [["1", "11"], ["2", "12"]], "a=3 is not verified, a=4 is in no report")
        self.assertEqual(rows[1:3], ["product\tBox", "chip\tNVIDIA A"])
        self.assertIn("family\tf\ta", rows)
        self.assertEqual([r.split("\t")[-1] for r in rows if r[0].isdigit()], ["1", "0"], "quality counts from 1; 0 is none")

    def test_records_of_two_chips_are_refused(self):
        two = {"p": {"f:a=1": self.record("f:a=1", 1), "f:a=2": self.record("f:a=2", 1, chip="NVIDIA B")}}
        with self.assertRaises(SystemExit):
            list(reference.table("Box", two))


if __name__ == "__main__":
    unittest.main()
