"""fagen through its C ABI, for the benchmarks: ctypes only, PyTorch tensors in and out.

Not a binding for applications: just enough of fagen.h to launch and to explain. The struct layouts follow runtime/fagen.h.
"""
import ctypes as C
import os

import torch

FP16, BF16, TF32, FP32 = 1, 2, 3, 4
NONE, CAUSAL, WINDOW = 0, 1, 2
BOTTOM_RIGHT, TOP_LEFT = 0, 1


class Problem(C.Structure):
    _fields_ = [("size", C.c_uint32)] + [
        (n, C.c_int32) for n in ("dtype", "d", "dv", "mask", "o_dtype", "align", "b", "hq", "hkv", "sq", "sk")]


class Tensor(C.Structure):
    _fields_ = [("ptr", C.c_void_p), ("sb", C.c_int64), ("ss", C.c_int64), ("sh", C.c_int64)]


class Args(C.Structure):
    _fields_ = [("size", C.c_uint32)] + [
        (n, C.c_int32) for n in ("dtype", "o_dtype", "d", "dv", "b", "hq", "hkv", "sq", "sk", "mask", "window_left",
                                 "window_right", "diagonal", "offset")] + [
        ("scale", C.c_float), ("q", Tensor), ("k", Tensor), ("v", Tensor), ("o", Tensor), ("lse", C.c_void_p),
        ("workspace", C.c_void_p), ("workspace_size", C.c_size_t)]


class Options(C.Structure):
    _fields_ = [("size", C.c_uint32), ("device", C.c_char_p), ("cache_dir", C.c_char_p), ("template_dir", C.c_char_p),
                ("nvrtc", C.c_char_p), ("log", C.c_void_p), ("log_user", C.c_void_p), ("log_level", C.c_int32),
                ("sram_budget", C.c_int32)]


class Error(RuntimeError):
    pass


class Fagen:
    """One context on the current CUDA device."""

    def __init__(self, library=None):
        here = os.path.dirname(os.path.abspath(__file__))
        found = [p for p in (library, os.environ.get("FAGEN_LIBRARY"),
                             os.path.join(here, "../build/portable/lib/libfagen.so"),
                             os.path.join(here, "../build/release/lib/libfagen.so")) if p and os.path.exists(p)]
        if not found:
            raise Error("libfagen.so not found: build the portable preset, or set FAGEN_LIBRARY")
        self.lib = C.CDLL(found[0])
        self.lib.fa_last_error.restype = C.c_char_p
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # the primary context is current from here on
        options = Options(size=C.sizeof(Options), log_level=1)
        self.ctx = C.c_void_p()
        self.check(self.lib.fa_create(C.byref(self.ctx), C.byref(options)))

    def check(self, status):
        if status:
            raise Error(f"status {status}: {self.lib.fa_last_error().decode()}")

    def args(self, q, k, v, o, mask=NONE, lse=None, window=(-1, -1), diagonal=BOTTOM_RIGHT, scale=0.0, tf32=False):
        """Arguments of fa_launch for tensors [b, s, h, d]; keep them and launch many times."""
        kinds = {torch.float16: FP16, torch.bfloat16: BF16, torch.float32: TF32 if tf32 else FP32}
        a = Args(size=C.sizeof(Args), dtype=kinds[q.dtype], o_dtype=FP32 if o.dtype == torch.float32 and q.dtype != o.dtype else 0,
                 d=q.shape[3], dv=v.shape[3], b=q.shape[0], hq=q.shape[2], hkv=k.shape[2], sq=q.shape[1], sk=k.shape[1],
                 mask=mask, window_left=window[0], window_right=window[1], diagonal=diagonal, scale=scale)
        for name, t in (("q", q), ("k", k), ("v", v), ("o", o)):
            setattr(a, name, Tensor(t.data_ptr(), t.stride(0), t.stride(1), t.stride(2)))
        if lse is not None:
            a.lse = lse.data_ptr()
        return a

    def launch(self, args):
        self.check(self.lib.fa_launch(self.ctx, C.byref(args), C.c_void_p(torch.cuda.current_stream().cuda_stream)))

    def explain(self, args):
        text = C.create_string_buffer(4096)
        self.check(self.lib.fa_explain(self.ctx, None, C.byref(args), text, C.c_size_t(4096)))
        return text.value.decode()
