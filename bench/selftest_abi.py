#!/usr/bin/env python3
"""A launch through the C ABI, as the scripts make it, on the simulator where FAGEN_LIBRARY is set.

    FAGEN_LIBRARY=build/lib/libfagen.so python3 bench/selftest_abi.py [TEST ...]
"""
import array
import ctypes
import unittest


class Abi(unittest.TestCase):
    """The struct layouts of fagen.py, and the lever, through a launch on the simulator."""

    def test_a_named_config_runs(self):
        import fagen
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
        args.op = 1
        with self.assertRaisesRegex(fagen.Error, "op is 1"):
            fa.launch(args, stream=0)
        args.op = fagen.FORWARD
        for name in "kv":
            setattr(args, name, fagen.Tensor(memory[name].value, s * h * d, h * d, d))
        told = fagen.explained(fa.explain(args))
        self.assertIn(told["origin"], ("shipped", "model", "tuned", "modelled"))
        self.assertIn("flash_fwd_mma:", told["config"])
        for name in "qkvo":
            fa.check(fa.lib.fa_free(fa.ctx, memory[name]))
        fa.close()


if __name__ == "__main__":
    unittest.main()
