#!/usr/bin/env python3
"""Decoding beside its peers: what of it needs neither PyTorch nor a GPU. Cases, tables, options, and the structs of fagen.h.

    PYTHONPATH=bench python3 bench/selftests/selftest_decode.py [TEST ...]
"""
import contextlib
import ctypes
import importlib
import io
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import decode
from sections import decode_cases
from sections import decode_report
from common import fagen
from sections import section_run
from common import stats

HERE = os.path.dirname(os.path.abspath(__file__))


def run(us, kind="peer", **more):
    return {"kind": kind, "error": 2e-3, "worst": 4e-3, "calls": 40, "seconds": [us * 1e-6 * f for f in (1, 1.01, 0.99)], **more}


def document():
    """Two cases of the table, one of pages, one ragged and the host's part, with made-up times."""
    first, second = decode_cases.TABLE[:2]
    ours = {"kind": "ours", "config": "decode_mma:rows=16", "origin": "shipped"}
    table = [{**first.dict(), "skipped": {"fa2": "no | such module"}, "runs": {"ours": run(5, **ours), "cudnn": run(6), "fa3kv": run(10)}},
             {**second.dict(), "skipped": {},
              "runs": {"ours": run(10, **ours), "cudnn": run(9), "fa2": run(12), "named 1": run(8, **ours)}}]
    pages = [{**decode_cases.PAGED[0].dict(), "skipped": {"fa3kv, page 16": "refused"},
              "runs": {"ours": run(10, **ours), "ours, page 16": run(10.4, **ours), "ours, page 64": run(10.2, **ours),
                       "fa3kv, page 64": run(15)}}]
    ragged = [{**decode_cases.RAGGED[0].dict(), "skipped": {}, "runs": {"ours": run(250, **ours), "fa3kv, padded": run(300)}}]
    host = {"hot": [{"form": "dense", "layers": 80, "seconds": 3.1e-7, "spread": 0.01, "samples": 45},
                    {"form": "pages", "layers": 80, "why": "no kernel"}],
            "replays": [{"form": "pages", "layers": 4, "sequences": 16, "longest": 2048, "replays": 1000, "checked": 40, "error": 1e-3,
                         "wrong": []}]}
    return {"schema": 1, "host": {"device": "Example GPU", "driver": "1.2", "torch": "2", "date": "2026-01-02 03:04 UTC"}, "fagen": {},
            "peers": {"cudnn": {"version": "9"}, "fa2": {"missing": "no | such module"}, "fa3kv": {"version": "3"}},
            "protocol": {"rounds": 3, "lasts": 0.001, "seconds": None, "seed": 1, "configs": ["decode_mma:rows=32"]},
            "clocks": {"before": {"clocks.sm": "1980 MHz"}}, "left": [], "failed": [], "took": 6.5,
            "sections": {"table": table, "pages": pages, "ragged": ragged, "host": host}}


class Cases(unittest.TestCase):
    def test_the_table_is_the_one_that_is_promised(self):
        self.assertEqual(len(decode_cases.TABLE), 25)
        self.assertEqual(len({c.name() for c in decode_cases.TABLE}), 25)
        mb = {c.name(): c.bytes() / 1e6 for c in decode_cases.TABLE}
        self.assertAlmostEqual(mb["b=1,hq=32,hkv=8,sq=1,sk=8192,d=128"], 33.6, delta=0.06)
        self.assertAlmostEqual(mb["b=64,hq=32,hkv=8,sq=1,sk=8192,d=128"], 2147, delta=1)
        self.assertNotIn("b=1,hq=32,hkv=8,sq=1,sk=131072,d=64", mb)
        self.assertEqual([round(c.bytes() / 1e6) for c in decode_cases.PAGED], [8, 34, 67, 134, 537])

    def test_enough_sets_for_a_cold_cache(self):
        for c in decode_cases.TABLE:
            n = decode_cases.sets_of(c, True)
            self.assertGreaterEqual(n, 3)
            self.assertGreater(n * c.bytes(), 200e6)
            self.assertTrue(n == 3 or (n - 1) * c.bytes() <= 200e6, "and no more")
            self.assertEqual(decode_cases.sets_of(c, False), 1)

    def test_lengths_follow_from_the_seed(self):
        self.assertEqual([sum(r.lengths()) for r in decode_cases.RAGGED], [244251, 1179437, 1166438, 4200943])
        for r in decode_cases.RAGGED:
            n = r.lengths()
            self.assertEqual((len(n), min(n) >= 16, max(n) <= 32768), (r.sequences, True, True))
            self.assertEqual(r.dict()["bytes"], 2 * sum(n) * 8 * 128 * 2)
        logs = sorted(math.log(x) for x in decode_cases.RAGGED[2].lengths())
        self.assertAlmostEqual(logs[128], math.log(16 * 32768) / 2, delta=0.5, msg="half of them are below the geometric middle")

    def test_every_page_is_named_once(self):
        lengths, page = [5, 0, 16, 33], 16
        rows, pages = decode_cases.tables(lengths, page, random.Random(3))
        self.assertEqual(pages, 1 + 0 + 1 + 3)
        self.assertEqual({len(r) for r in rows}, {3})
        used = [p for r, n in zip(rows, lengths) for p in r[:-(-n // page)]]
        self.assertEqual(sorted(used), list(range(pages)))
        order = [p for r in decode_cases.tables([1600], 16, random.Random(3))[0] for p in r]
        self.assertNotEqual(order, sorted(order))

    def test_changing_lengths_meet_the_borders(self):
        some = decode_cases.changing(200, 5, 100, 16, random.Random(1))
        self.assertEqual((len(some), {len(x) for x in some}), (200, {5}))
        flat = {n for x in some for n in x}
        self.assertTrue({0, 1, 15, 16, 17, 99, 100} <= flat)
        self.assertEqual((min(flat), max(flat)), (0, 100))
        self.assertIn([0] * 5, some)

    def test_graphs_hold_whole_turns(self):
        self.assertEqual(stats.calls_that_fill(1e-3, 5e-6, 1), 200)
        self.assertEqual(stats.calls_that_fill(1e-3, 5e-6, 96), 288)
        self.assertEqual(stats.calls_that_fill(1e-3, 5e-3, 3), 3)
        self.assertEqual(stats.calls_that_fill(1e-3, 0, 1), 512)
        self.assertEqual(stats.calls_that_fill(1e-3, 1e-7, 600), 600)


class Options(unittest.TestCase):
    def refused(self, *words):
        told = io.StringIO()
        with contextlib.redirect_stderr(told), self.assertRaises(SystemExit):
            decode.parse(words)
        return told.getvalue()

    def test_cases_are_selected(self):
        self.assertEqual(len(decode.jobs(decode.parse([]))), 25 + 25 + 5 + 4 + 1)
        o = decode.parse(["host", "table", "--only", "b=1,.*sk=8192,d=128"])
        self.assertEqual([(s, c and c.sq, c and c.hkv) for s, c in decode.jobs(o)],
                         [("table", 1, 8), ("table", 1, 32), ("table", 16, 8), ("host", None, None)])

    def test_what_is_wrong_is_named(self):
        self.assertIn('the section is "tabel"; accepted: table, cold', self.refused("tabel"))
        self.assertIn("accepted: a regular expression", self.refused("--only", "("))
        self.assertIn("--rounds is 0; accepted: 1", self.refused("--rounds", "0"))
        self.assertIn("--page is (16, 0)", self.refused("--page", "16,0"))


class Report(unittest.TestCase):
    def test_numbers_arrive_in_the_tables(self):
        text = decode_report.markdown(document())
        self.assertIn("| b=1,hq=32,hkv=8,sq=1,sk=1024,d=64 | 2.1 | 5.0 | 0.42 | cudnn | 1.200 | 1.0 | 6.0 | 10.0 | - | - (-) |", text)
        self.assertIn("| 9.0 | - | 12.0 | 8.0 (1.125) |", text, "the named config beside")
        self.assertIn("fagen: geometric mean of 2 ratios 1.039, least 0.900 (b=1,hq=32,hkv=8,sq=1,sk=1024,d=128), 1 of them 1.00 or more; "
                      "below 0.95: b=1,hq=32,hkv=8,sq=1,sk=1024,d=128 (0.900).", text)
        self.assertIn("| 8 | b=1,hq=32,hkv=8,sq=1,sk=2048,d=128 | fagen | 10.0 | 1.040 | 1.020 |", text)
        self.assertIn("| FlashAttention-3 kvcache | 10.0 | - | 1.500 |", text)
        self.assertIn("- Without FlashAttention-3 kvcache, 1 times: refused", text)
        self.assertIn("| 244251 | 1000 | fagen | 250.0 | 4.00 | 0.878 |", text)
        self.assertIn("| dense | 80 | 310 | 1.0 |", text)
        self.assertIn("| pages: no kernel | 80 | - | - |", text)
        self.assertIn("1000 of one graph of 4 layers", text)
        self.assertNotIn("Without a right result", text)
        for line in text.splitlines():  # every table is as wide as its head
            if line.startswith("| ---"):
                width = line.count("|")
            elif line.startswith("| ") and prior.startswith("|"):
                self.assertEqual(line.count("|"), width, line)
            prior = line

    def test_what_went_wrong_is_told(self):
        doc = document()
        doc["sections"]["table"][0]["runs"]["ours"]["wrong"] = "relative error 5.00e-01"
        doc["sections"]["table"][1]["runs"]["cudnn"]["wrong"] = "relative error 5.00e-01"
        doc["sections"]["pages"][0]["skipped"]["ours, page 32"] = "status -2"
        doc["sections"]["pages"][0]["skipped"]["named 1, page 32"] = "status -2"
        doc["sections"]["host"]["replays"][0]["wrong"] = ["replay 3, layer 1: relative error 1"]
        doc["left"], doc["broken"] = ["cold: all"], "after fa3"
        text = decode_report.markdown(doc)
        self.assertEqual([(case.partition(":")[0], n) for case, n, _ in decode_report.wrong(doc)],
                         [("table", "ours"), ("pages", "ours, page 32"), ("host", "replays, pages")])
        self.assertIn("fagen: geometric mean of 1 ratios 1.200", text, "a wrong peer is no measure, fa2 is")
        self.assertIn("Without a ratio: b=1,hq=32,hkv=8,sq=1,sk=1024,d=64.", text)
        self.assertIn("Left out, since the time was over: cold: all.", text)
        self.assertIn("The run ended early: after fa3", text)

    def test_replay_makes_them_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")
            for left, code in (([], 0), (["cold"], 1)):
                with open(path, "w") as f:
                    json.dump({**document(), "left": left}, f)
                done = subprocess.run([sys.executable, os.path.join(HERE, "..", "decode.py"), "--replay", path], capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn("| dense | 80 | 310 | 1.0 |", done.stdout)


class Output:
    """Stands for a tensor: how wrong it is."""

    def __init__(self, wrong=2e-3):
        self.wrong = wrong

    def fill_(self, x):
        self.wrong = math.inf


class Graph:
    """Stands for graphs.Graph: replaying writes the output again."""

    def __init__(self, run, sets, lasts):
        self.run, self.out, self.calls = run, run(0), 40
        if getattr(run, "uncapturable", False):
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

    def replay(self):
        self.out.wrong = getattr(self.run, "later", 2e-3)


@contextlib.contextmanager
def imported(stand_ins, *names):
    """Modules that are imported again over stand-ins, by their full names, and forgotten after. What stands in for a module of a room is an
    attribute of the room as well."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(unittest.mock.patch.dict(sys.modules, stand_ins))
        for name, module in stand_ins.items():
            room, _, own = name.rpartition(".")
            if room:
                stack.enter_context(unittest.mock.patch.object(importlib.import_module(room), own, module, create=True))
        for name in names:
            sys.modules.pop(name, None)
        yield [importlib.import_module(name) for name in names]
        for name in names:
            room, _, own = name.rpartition(".")
            delattr(importlib.import_module(room), own)


class Lab(unittest.TestCase):
    """The one way to measure, over stand-ins for PyTorch, for graphs and for the contenders."""

    def lab(self, lost=lambda: None, **given):
        stand_ins = {n: types.ModuleType(n) for n in ("torch", "sections.decode_peers", "sections.decode_oracle", "common.graphs",
                                                      "common.tournament")}
        stand_ins["torch"].cuda = types.SimpleNamespace(synchronize=lost)
        stand_ins["sections.decode_peers"].PEERS = {}
        stand_ins["sections.decode_oracle"].error = lambda out, right: (out.wrong, 2 * out.wrong)
        stand_ins["common.graphs"].capture = Graph
        stand_ins["common.graphs"].race = lambda graphs, rng, most, seconds: {n: [1e-5] * most for n in graphs}
        with imported(stand_ins, "sections.decode_lab") as (module,), unittest.mock.patch.object(fagen, "Fagen", lambda lever: None):
            return module, module.Lab(**given)

    @staticmethod
    def contender(name, kind="peer", refused=None, wrong=2e-3, **more):
        def make():
            if refused:
                raise RuntimeError(refused)

            def run(i):
                return Output(wrong)
            run.__dict__.update(more)
            return run, lambda: {"config": f"of {name}"}
        return name, kind, make

    def test_only_what_is_right_is_timed(self):
        _, lab = self.lab(without=["left out"], rounds=7)
        row = lab.measure({}, [self.contender("ours", "ours"), self.contender("good"), self.contender("refuses", refused="no\nmore"),
                               self.contender("wrong", wrong=0.5), self.contender("left out"),
                               self.contender("graphless", uncapturable=True), self.contender("forgets", later=math.inf)], None)
        self.assertEqual(row["skipped"], {"refuses": "no", "left out": "named in --without",
                                          "graphless": "under capture: operation not permitted when stream is capturing"})
        self.assertEqual({n: len(r.get("seconds", ())) for n, r in row["runs"].items()}, {"ours": 7, "good": 7, "wrong": 0, "forgets": 7})
        self.assertEqual({n for n, r in row["runs"].items() if "wrong" in r}, {"wrong", "forgets"})
        self.assertIn("after its replays", row["runs"]["forgets"]["wrong"])
        self.assertEqual(row["runs"]["ours"]["config"], "of ours")
        self.assertEqual(stats.peers(row), ["good"])

    def test_a_case_without_a_runner_is_a_row_too(self):
        _, lab = self.lab()
        row = lab.measure({}, [self.contender("ours", "ours", refused="status -2")], None)
        self.assertEqual((row["runs"], row["skipped"]), ({}, {"ours": "status -2"}))

    def test_a_lost_device_ends_the_run(self):
        def lost():
            raise RuntimeError("an illegal memory access was encountered")
        module, lab = self.lab(lost=lost)
        with self.assertRaisesRegex(module.Broken, "after fa3: an illegal memory access.*--without 'fa3'"):
            lab.measure({}, [self.contender("fa3", refused="an illegal memory access was encountered")], None)


class Run(unittest.TestCase):
    """A run over sections, whose document on disk is what a later --replay makes tables of."""

    def test_cases_that_time_did_not_reach_are_in_the_file(self):
        stand_ins = {n: types.ModuleType(n) for n in ("torch", "sections.decode_lab")}
        stand_ins["torch"].manual_seed = lambda seed: None
        stand_ins["torch"].no_grad = contextlib.nullcontext
        stand_ins["sections.decode_lab"].Broken = type("Broken", (RuntimeError,), {})
        machine = types.SimpleNamespace(described=dict, clocks=dict)
        lab = types.SimpleNamespace(machine=machine, fa=types.SimpleNamespace(version=str, path=""), about={}, warm_up=lambda: None,
                                    tidy=lambda: None)
        first, second = decode_cases.TABLE[:2]
        spent = iter((0, 0, 5, 11, 11))  # begun; before and after the first case; before the second
        with tempfile.TemporaryDirectory() as folder, imported(stand_ins), \
                unittest.mock.patch.object(section_run.time, "monotonic", lambda: next(spent)):
            options = types.SimpleNamespace(rounds=1, lasts=1, seconds=10, seed=1, config=[], json=os.path.join(folder, "run.json"))
            row = {**first.dict(), "runs": {}, "skipped": {}}
            with contextlib.redirect_stdout(io.StringIO()):
                section_run.Run(options, lab, lambda *given: row).all([("table", first), ("table", second)])
            with open(options.json) as f:
                doc = json.load(f)
        self.assertEqual([r["name"] for r in doc["sections"]["table"]], [first.name()])
        self.assertEqual(doc["left"], [f"table: {second.name()}"])


class Structs(unittest.TestCase):
    """fagen.py's structs are those of fagen.h: names, order and types."""
    TYPES = {"uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "float": ctypes.c_float,
             "size_t": ctypes.c_size_t, "fa_tensor": fagen.Tensor, "fa_scale": fagen.abi.Scale}

    def fields(self, name):
        with open(os.path.join(HERE, "..", "..", "runtime", "fagen.h")) as f:
            body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (name, name), re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S), re.S)[1]
        out = []
        for line in body.split(";"):
            kind, *names = re.match(r"\s*(?:const )?(\w+)\s+(.*)", line, re.S).groups() if line.strip() else (None,)
            for n in names[0].split(",") if names else ():
                out.append((n.strip(" *\n"), ctypes.c_void_p if "*" in n else self.TYPES[kind]))
        return out

    def test_they_are(self):
        for name, struct in (("fa_problem", fagen.Problem), ("fa_args", fagen.Args), ("fa_tensor", fagen.Tensor)):
            self.assertEqual(self.fields(name), list(struct._fields_), name)


if __name__ == "__main__":
    unittest.main()
