#!/usr/bin/env python3
"""A launch through the C ABI, as the scripts make it, on the simulator where FAGEN_LIBRARY is set.

    FAGEN_LIBRARY=build/lib/libfagen.so python3 bench/selftests/selftest_abi.py [TEST ...]
"""
import array
import ctypes
import importlib.util
import json
import math
import os
import struct
import subprocess
import types
import unittest
import unittest.mock
import weakref


class Abi(unittest.TestCase):
    """The struct layouts of fagen.py, and the lever, through a launch on the simulator."""

    def test_a_named_config_of_gradients_runs(self):
        """Q and K are 0, V and dO are 1: every query spreads evenly, dV is the number of heads, dQ and dK are 0."""
        from common import fagen
        fa = fagen.Fagen(lever=True, device="sim:sm_80")
        s, hq, hkv, d, one = 32, 2, 1, 64, 0x3F80
        p = fa.problem(dtype="bf16", op=fagen.BACKWARD, d=d, b=1, hq=hq, hkv=hkv, sq=s, sk=s)
        config = fa.pick(p, "flash_bwd_mma:br=64")
        self.assertTrue(config.startswith("flash_bwd_mma:br=64,"), config)
        plan = fa.plan(p, config)
        args = fagen.Args(size=ctypes.sizeof(fagen.Args), op=fagen.BACKWARD, dtype=fagen.BF16, d=d, dv=d, b=1, hq=hq, hkv=hkv, sq=s, sk=s)

        def there(data):
            at = ctypes.c_void_p()
            n = ctypes.c_size_t(len(data) * data.itemsize)
            fa.check(fa.lib.fa_alloc(fa.ctx, ctypes.byref(at), n))
            fa.check(fa.lib.fa_copy(fa.ctx, at, ctypes.c_void_p(data.buffer_info()[0]), n, 0))
            return at.value
        for name, heads, value in (("q", hq, 0), ("k", hkv, 0), ("v", hkv, one), ("o", hq, one), ("grad_o", hq, one), ("grad_q", hq, one),
                                   ("grad_k", hkv, one), ("grad_v", hkv, 0)):
            setattr(args, name, fagen.Tensor(there(array.array("H", [value] * (s * heads * d))), s * heads * d, heads * d, d))
        args.lse = there(array.array("f", [math.log(s)] * (hq * s)))
        need = fa.workspace(args, plan)
        self.assertGreater(need, 0)
        args.workspace, args.workspace_size = there(array.array("B", bytes(need))), need
        fa.check(fa.lib.fa_workspace_init(fa.ctx, ctypes.c_void_p(args.workspace), ctypes.c_size_t(need), None))
        fa.launch(args, plan, stream=0)
        for name, heads, value in (("grad_q", hq, 0), ("grad_k", hkv, 0), ("grad_v", hkv, 0x4000)):
            out = array.array("H", bytes(2 * s * heads * d))
            fa.check(fa.lib.fa_copy(fa.ctx, ctypes.c_void_p(out.buffer_info()[0]), ctypes.c_void_p(getattr(args, name).ptr),
                                    ctypes.c_size_t(2 * len(out)), 1))
            self.assertEqual({x & 0x7FFF for x in out}, {value}, name)

    def test_arguments_hold_their_tensors(self):
        """Memory of a tensor that nobody holds goes back to the driver when a graph is captured, and launches still use it."""
        from common import fagen

        class Tensor:
            def __init__(self, *shape):
                self.shape, self.dtype = shape, torch.bfloat16

            def dim(self):
                return len(self.shape)

            def stride(self):
                return tuple(math.prod(self.shape[i + 1:]) for i in range(len(self.shape)))

            def data_ptr(self):
                return 16
        torch = types.ModuleType("torch")
        torch.float16, torch.bfloat16, torch.float32 = "fp16", "bf16", "fp32"
        with unittest.mock.patch.dict("sys.modules", torch=torch):
            fa = fagen.Fagen(device="sim:sm_80")
            tensors = [Tensor(2, 16, 4, 64) for _ in range(4)] + [Tensor(2, 4, 16)] + [Tensor(2, 16, 4, 64) for _ in range(4)]
            alive = [weakref.ref(t) for t in tensors]
            args = fa.gradient_args(*tensors)
            del tensors
            self.assertEqual([i for i, t in enumerate(alive) if t() is None], [])
            del args
            self.assertEqual([i for i, t in enumerate(alive) if t() is not None], [])

    def test_a_named_config_runs(self):
        from common import fagen
        fa = fagen.Fagen(lever=True, device="sim:sm_80")
        b, s, h, d = 2, 40, 2, 64
        p = fa.problem(dtype="fp16", mask="causal", d=d, b=b, hq=h, hkv=h, sq=s, sk=s)
        ranked = fa.rank(p, 5)
        self.assertEqual(len(ranked), 5)
        config = fa.pick(p, "flash_fwd_mma:br=64,bc=64")
        self.assertTrue(config.startswith("flash_fwd_mma:br=64,bc=64,"), config)
        plan = fa.plan(p, config)
        self.assertEqual(plan.told["threads"] % 32, 0)
        self.assertGreater(plan.told["smem"], 0)
        with self.assertRaisesRegex(fagen.Error, "accepted"):
            fa.pick(p, "flash_fwd_mma:br=65")
        n = b * s * h * d
        values = array.array("H", [0x3C00 + (i // (h * d)) % s for i in range(n)])  # of V: by key; Q and K are 0, so that O is a mean
        memory = {}
        for name in "qkvo":
            memory[name] = ctypes.c_void_p()
            fa.check(fa.lib.fa_alloc(fa.ctx, ctypes.byref(memory[name]), ctypes.c_size_t(2 * n)))
            data = values if name == "v" else array.array("H", bytes(2 * n))
            fa.check(fa.lib.fa_copy(fa.ctx, memory[name], ctypes.c_void_p(data.buffer_info()[0]), ctypes.c_size_t(2 * n), 0))
        args = fagen.Args(size=ctypes.sizeof(fagen.Args), dtype=fagen.FP16, d=d, dv=d, b=b, hq=h, hkv=h, sq=s, sk=s, mask=fagen.CAUSAL)
        for name in "qkvo":
            setattr(args, name, fagen.Tensor(memory[name].value, s * h * d, h * d, d))
        self.assertEqual(fa.workspace(args, plan), 0)
        out = array.array("H", bytes(2 * n))
        for use in (plan, None):
            fa.launch(args, use, stream=0)
            fa.check(fa.lib.fa_copy(fa.ctx, ctypes.c_void_p(out.buffer_info()[0]), memory["o"], ctypes.c_size_t(2 * n), 1))
            self.assertEqual(out[0], 0x3C00, "the first query sees the first key")
            self.assertEqual(out[(s - 1) * h * d], 0x3C00 + round((s - 1) / 2 + 0.01), "the last sees all")
            self.assertEqual(out[n - 1], out[(s - 1) * h * d], "and so in the last batch and head")
        out = array.array("H", bytes(2 * n))
        for name in "kv":  # the first key's row for all: refused, unless the last field of the struct says that it is meant
            setattr(args, name, fagen.Tensor(memory[name].value, s * h * d, 0, d))
        with self.assertRaisesRegex(fagen.Error, "k.ss is 0"):
            fa.launch(args, stream=0)
        args.flags = fagen.BROADCAST
        fa.launch(args, stream=0)
        fa.check(fa.lib.fa_copy(fa.ctx, ctypes.c_void_p(out.buffer_info()[0]), memory["o"], ctypes.c_size_t(2 * n), 1))
        self.assertEqual(set(out), {0x3C00}, "V of the first key is 1")
        args.op = 9
        with self.assertRaisesRegex(fagen.Error, "op is 9"):
            fa.launch(args, stream=0)
        args.op = fagen.FORWARD
        for name in "kv":
            setattr(args, name, fagen.Tensor(memory[name].value, s * h * d, h * d, d))
        told = fagen.explained(fa.explain(args))
        self.assertIn(told["origin"], ("shipped", "model", "tuned", "modelled"))
        self.assertIn("decode_", told["config"])  # few rows: the context lends a workspace
        for name in "qkvo":
            fa.check(fa.lib.fa_free(fa.ctx, memory[name]))
        fa.close()

    def test_pairs_are_those_that_a_count_finds(self):
        from common import cells
        from common import fagen
        from common import pairs
        for sq, sk in ((7, 7), (5, 9), (9, 5), (0, 3), (3, 0)):
            for mask, left, right in (("none", -1, -1), ("causal", -1, -1), ("window", 2, 0), ("window", -1, 1), ("window", 3, -1),
                                      ("window", 0, 0), ("window", 20, 20)):
                for diagonal in ("bottom-right", "top-left"):
                    p = cells.Cell("x", "bf16", 8, 8, 1, 1, 1, sq, sk, mask, left, right, diagonal).seen()
                    off = sk - sq if diagonal == "bottom-right" else 0
                    lo, hi = {"none": (-1, -1), "causal": (-1, 0)}.get(mask, (left, right))
                    seen = [[(lo < 0 or -lo <= j - i - off) and (hi < 0 or j - i - off <= hi) for j in range(sk)] for i in range(sq)]
                    self.assertEqual([[p.first[i] <= j <= p.last[i] for j in range(sk)] for i in range(sq)], seen)
                    self.assertEqual([[(p.lo is None or i + p.lo <= j) and (p.hi is None or j <= i + p.hi) for j in range(sk)]
                                      for i in range(sq)], seen)
                    self.assertEqual(p.count, sum(map(sum, seen)))
        self.assertEqual((pairs.of(4, 8, "none").lo, pairs.of(4, 8, "none").hi, pairs.of(4, 8, "causal").hi), (None, None, 4))
        w = cells.grid("window", d=(128,), s=(4096,))[0]
        self.assertEqual(w.flops(), 4 * w.b * w.hq * 128 * sum(min(i, 1024) + 1 for i in range(4096)))
        with self.assertRaisesRegex(fagen.Error, "sq is -1"):
            pairs.of(-1, 8, "none")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not there")
    def test_scores_of_hidden_pairs_are_hidden(self):
        from common import pairs
        import torch
        scores = pairs.of(5, 7, "window", 1, 0).hide_(torch.zeros(2, 6, 6), 1, 2)  # queries 1 to 3, two rows each, and the first 6 keys
        seen = [[i + 1 <= j <= i + 2 for j in range(6)] for i in range(1, 4) for _ in range(2)]
        self.assertEqual((scores[0] == 0).tolist(), seen)
        self.assertEqual((scores[1] == 0).tolist(), seen)

    def test_lengths_and_pages_arrive(self):
        """By the problem that fagen derives of them, and by a launch where a family computes it: O is the mean of V over the length."""
        from common import fagen
        fa = fagen.Fagen(lever=True, device="sim:sm_80")
        b, hq, hkv, d, page, longest, lengths = 3, 4, 2, 64, 16, 40, (17, 0, 40)
        table = [5, 0, 999, 999, -1, 999, 2, 7, 4]  # what no length reaches is no page
        pages = 8
        v = [0.0] * (pages * page)  # by token, the same in each head
        for i, n in enumerate(lengths):
            for t in range(n):
                v[table[3 * i + t // page] * page + t % page] = float(t % 8)
        half = {float(x): y for x, y in zip(range(8), (0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700))}
        data = {"q": array.array("H", bytes(2 * b * hq * d)), "k": array.array("H", bytes(2 * pages * page * hkv * d)),
                "v": array.array("H", [half[x] for x in v for _ in range(hkv * d)]), "o": array.array("H", bytes(2 * b * hq * d)),
                "lengths": array.array("i", lengths), "table": array.array("i", table)}
        at = {}
        for name, values in data.items():
            at[name], size = ctypes.c_void_p(), ctypes.c_size_t(len(values) * values.itemsize)
            fa.check(fa.lib.fa_alloc(fa.ctx, ctypes.byref(at[name]), size))
            fa.check(fa.lib.fa_copy(fa.ctx, at[name], ctypes.c_void_p(values.buffer_info()[0]), size, 0))
        args = fagen.Args(size=ctypes.sizeof(fagen.Args), dtype=fagen.FP16, d=d, dv=d, b=b, hq=hq, hkv=hkv, sq=1, sk=longest,
                          seqlens_k=at["lengths"].value, page_table=at["table"].value, page_table_stride=3, page_size=page, pages=pages)
        for name in "qo":
            setattr(args, name, fagen.Tensor(at[name].value, hq * d, hq * d, d))
        for name in "kv":
            setattr(args, name, fagen.Tensor(at[name].value, page * hkv * d, hkv * d, d))
        p = fa.problem_of(args)
        self.assertEqual((p.features, p.page, p.b, p.hq, p.hkv, p.sq, p.sk, p.d, p.grad_dtype, p.kv_dtype),
                         (fagen.LENGTHS | fagen.PAGES, page, b, hq, hkv, 1, longest, d, 0, 0))
        try:
            fa.launch(args, stream=0) if not fa.workspace(args) else self.with_workspace(fa, args)
            out = data["o"]
            fa.check(fa.lib.fa_copy(fa.ctx, ctypes.c_void_p(out.buffer_info()[0]), at["o"], ctypes.c_size_t(2 * len(out)), 1))
            for i, n in enumerate(lengths):
                mean = sum(t % 8 for t in range(n)) / n if n else 0
                for x in out[i * hq * d:(i + 1) * hq * d]:
                    self.assertAlmostEqual(struct.unpack("e", struct.pack("H", x))[0], mean, delta=4e-3)
        except fagen.Error as e:
            self.assertRegex(str(e), "^status -2: ", "no family computes it, or none that has a model")
        for name in at:
            fa.check(fa.lib.fa_free(fa.ctx, at[name]))
        fa.close()

    @staticmethod
    def with_workspace(fa, args):
        n, space = fa.workspace(args), ctypes.c_void_p()
        fa.check(fa.lib.fa_alloc(fa.ctx, ctypes.byref(space), ctypes.c_size_t(n)))
        fa.check(fa.lib.fa_workspace_init(fa.ctx, space, ctypes.c_size_t(n), None))
        args.workspace, args.workspace_size = space.value, n
        fa.launch(args, stream=0)

    def test_hot_launches_are_timed(self):
        from common import fagen
        command = os.path.join(os.path.dirname(fagen.library("fagen")), "..", "bin", "fagen-dev")
        words = "hot --device sim:sm_80 --layers 3 --batch 2 --keys 40 --samples 2 --json".split()
        run = subprocess.run([command, *words], capture_output=True, text=True)
        rows = json.loads(run.stdout)["hot"]
        self.assertEqual([(r["form"], r["layers"]) for r in rows],
                         [(form, layers) for form in ("dense", "lent", "lengths", "pages") for layers in (1, 3)])
        self.assertEqual(run.returncode, 1 if any("why" in r for r in rows) else 0)
        for r in rows:
            if "why" in r:  # no family computes it, or none that has a model
                self.assertNotIn(r["form"], ("dense", "lent"))
            else:
                self.assertGreater(r["seconds"], 0)
                self.assertEqual(r["samples"], 2)


if __name__ == "__main__":
    unittest.main()
