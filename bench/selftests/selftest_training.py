#!/usr/bin/env python3
"""A training step beside its peers: what of it needs no GPU. The tables and the verdict; and the whole run at small sizes, where PyTorch is
there.

    PYTHONPATH=bench python3 bench/selftests/selftest_training.py [TEST ...]
"""
import contextlib
import importlib.util
import io
import json
import os
import tempfile
import unittest
import unittest.mock

from training import training_report
import training_step

TENSORS = ("input", "layers.0.q.weight", "layers.1.q.weight", "norm.weight")


def made_up():
    """Three rounds of two contenders, with made-up times and errors."""
    shape = {"layers": 12, "hidden": 4096, "d": 128, "hkv": 8, "inner": 11008, "tokens": 8192, "hq": 32}

    def step(*ms):
        return {"version": "1", "note": "", "seconds": [1e-3 * x for x in ms], "marked": [0.25], "attention": [0.05]}
    return {"host": {"device": "a chip", "torch": "2"}, "shape": shape, "accuracy": shape, "flops": {"step": 1e14, "attention": 2e13},
            "steps": {"fagen": step(200, 210, 190), "flash": step(220, 210, 228)}, "skipped": {"cudnn": "no plan"},
            "ways": {"model": "the whole model in bf16"}, "took": 50,
            "errors": {"model": {"fagen": dict(zip(TENSORS, (0.01, 0.02, 0.03, 0.01))),
                                 "flash": dict(zip(TENSORS, (0.01, 0.02, 0.025, 0.01)))}}}


class Report(unittest.TestCase):
    def test_numbers_arrive_in_the_tables(self):
        text = training_report.text(made_up())
        self.assertIn("| fagen | 200.00 | 1.000 | 500 | 50.00 | 20.0 |", text)
        self.assertIn("| PyTorch, FlashAttention-2 | 220.00 | 1.100 | 455 |", text)
        self.assertIn("| q | 3.000e-02 | 2.500e-02 |", text)
        self.assertIn("- Without PyTorch, cuDNN: no plan", text)
        self.assertIn("as close as PyTorch, FlashAttention-2: at most 1.200 times its error (layers.1.q.weight)", text)
        self.assertEqual(training_report.failures(made_up()), [])

    def test_what_is_wrong_is_told(self):
        def told(change):
            doc = made_up()
            change(doc)
            return training_report.failures(doc)

        def error(tensor, value):
            return lambda doc: doc["errors"]["model"]["fagen"].update({tensor: value})
        self.assertIn("NOT AS CLOSE as PyTorch, FlashAttention-2: at most 1.400", told(error("norm.weight", 0.014))[0])
        self.assertIn("WRONG: relative error inf of the gradient of input", told(error("input", float("inf")))[0])
        self.assertIn("fagen did not run: why", told(lambda doc: doc["skipped"].update(fagen="why"))[0])
        self.assertEqual(told(lambda doc: doc["steps"].pop("flash")), ["no peer ran"])

    def test_replay_makes_them_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            with open(path, "w") as f:
                json.dump(made_up(), f)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertEqual(training_step.main(["--replay", path]), 0)
            self.assertEqual(said.getvalue().strip(), training_report.text(made_up()))


class Options(unittest.TestCase):
    def test_what_is_wrong_is_named(self):
        for words, says in ((["--without", "fa9"], '--without is "fa9"; accepted: sdpa, flash, cudnn'),
                            (["--layers", "0"], "--layers is 0"),
                            (["--simulator", "sm_80"], "--simulator is given without --dry-run")):
            told = io.StringIO()
            with contextlib.redirect_stderr(told), self.assertRaises(SystemExit):
                training_step.parse(words)
            self.assertIn(says, told.getvalue())


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not there")
class Rehearsal(unittest.TestCase):
    """The whole run on the CPU."""

    @staticmethod
    def document(*words):
        with contextlib.redirect_stdout(io.StringIO()):
            return training_step.measured(training_step.parse(["--dry-run", *words]))

    def test_the_run_is_whole(self):
        doc = self.document()
        self.assertEqual(training_report.failures(doc), [])
        self.assertEqual(set(doc["steps"]), {"fagen", "sdpa", "flash"})
        self.assertEqual(set(doc["skipped"]), {"cudnn"})
        self.assertEqual(set(doc["errors"]), {"model", "attention"})
        for r in doc["steps"].values():
            self.assertEqual((len(r["seconds"]), len(r["marked"]), len(r["attention"])), (4, 2, 2))
            self.assertTrue(all(0 < a < w for a, w in zip(r["attention"], r["marked"])))
        for errors in doc["errors"].values():
            self.assertEqual(len(errors["fagen"]), 2 + 2 * 9)  # hidden state, last norm, nine tensors of a layer
            self.assertTrue(all(e > 0 for e in errors["fagen"].values()))

    def test_faults_are_noticed(self):
        from training import training_contenders
        right = training_contenders.Eager.attend

        def of_gradients(fault):
            def attend(self, q, k, v):
                k.register_hook(fault)
                return right(self, q, k, v)
            return attend

        def twice(grad):
            return grad * 1.05

        def tile(grad):
            grad = grad.clone()
            grad[:, 8:16] = 0
            return grad

        def nan(grad):
            return grad * float("nan")
        for fault in (of_gradients(twice), of_gradients(tile), of_gradients(nan), lambda self, q, k, v: right(self, q, k.roll(1, 1), v)):
            with unittest.mock.patch.object(training_contenders.Eager, "attend", fault):
                self.assertTrue(any("NOT AS CLOSE" in w for w in training_report.failures(self.document())))

    def test_spans_hold_attention_alone(self):
        """Events are numbers here: of two layers each begins and ends once, forward and backward, and nothing lies between."""
        import itertools

        import torch
        from training import training_contenders
        from training import training_model
        count = itertools.count()
        spans = training_contenders.Spans(lambda: next(count))
        model, state, grad = training_model.made(training_model.Shape(2, 128, 32, 2, 64, 8), "cpu", 1)
        model(state, spans.around(training_contenders.eager)).backward(grad)
        self.assertEqual((spans.begun, spans.ended), ([0, 2, 4, 6], [1, 3, 5, 7]))
        plain = training_model.gradients(model, state, grad, training_contenders.eager)
        self.assertTrue(torch.equal(plain["input"], state.grad))


if __name__ == "__main__":
    unittest.main()
