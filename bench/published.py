#!/usr/bin/env python3
"""Kernels that another compiler made, on the simulator: Triton's PTX for sm_80 and sm_90, against NumPy.

    python3 -m venv /tmp/triton && /tmp/triton/bin/pip install triton numpy
    cmake --preset release && cmake --build --preset release --target fagen_simulator
    /tmp/triton/bin/python bench/published.py                    # all
    /tmp/triton/bin/python bench/published.py matmul --arch 90   # those whose name holds a word, on one architecture
    /tmp/triton/bin/python bench/published.py --list

Neither a GPU nor PyTorch is needed. Each kernel runs twice: copies and products at issue with the warps in order, and as late as
they may with the warps at random. It is right when both runs have no report and agree with NumPy within the tolerance of its row.
"""
import argparse
import ctypes
import os
import re
import sys
import time

import numpy as np

from simulated.published_case import TYPES, Addresses, Boxed, Tensor

HERE = os.path.dirname(os.path.abspath(__file__))


# ---- the simulator ----

class Failure(Exception):
    pass


class Machine:
    """One simulated device, through the driver's own functions."""

    def __init__(self, library, arch):
        self.lib = ctypes.CDLL(library)
        self.lib.published_function.restype = ctypes.c_void_p
        self.lib.published_report.restype = ctypes.c_char_p
        if not self.lib.published_open(arch.encode()):
            raise Failure("the simulator does not know %s" % arch)
        self.blocks = []
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *args):
        address = self.lib.published_function(name.encode())
        code = ctypes.CFUNCTYPE(ctypes.c_int)(address)(*args)
        if code:
            raise Failure("%s: %d: %s" % (name, code, self.lib.published_report().decode(errors="replace")))

    def options(self, late, seed, checks):
        if not self.lib.published_options(1 if late else 0, 2 if late else 0, ctypes.c_ulonglong(seed), checks.encode()):
            raise Failure("%s: no severities of checks" % checks)

    def warnings(self):
        """The classes of the warnings since the last call."""
        room = ctypes.create_string_buffer(1 << 16)
        self.lib.published_warnings(room, ctypes.c_size_t(len(room)))
        return sorted(set(re.findall(r"check: ([a-z-]+)", room.value.decode(errors="replace"))))

    def upload(self, data):
        p = ctypes.c_uint64()
        self.call("cuMemAlloc", ctypes.byref(p), ctypes.c_size_t(max(len(data), 1)))
        self.blocks.append(p.value)
        if data:
            self.call("cuMemcpyHtoD", p, data, ctypes.c_size_t(len(data)))
        return p.value

    def room(self, size):
        p = ctypes.c_uint64()
        self.call("cuMemAlloc", ctypes.byref(p), ctypes.c_size_t(size))
        self.blocks.append(p.value)
        return p.value

    def download(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw

    def free(self):
        for p in self.blocks:
            self.call("cuMemFree", ctypes.c_uint64(p))
        self.blocks = []

    def kernel(self, ptx, name, shared):
        library, kernel, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuLibraryLoadData", ctypes.byref(library), ptx.encode(), None, None, 0, None, None, 0)
        self.call("cuLibraryGetKernel", ctypes.byref(kernel), library, name.encode())
        self.call("cuKernelGetFunction", ctypes.byref(function), kernel)
        if shared > 48 * 1024:
            self.call("cuKernelSetAttribute", 8, shared, kernel, 0)  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        return library, function

    def launch(self, function, grid, threads, shared, params):
        table = (ctypes.c_void_p * (len(params) + 1))(*[ctypes.cast(ctypes.pointer(p), ctypes.c_void_p) for p in params])
        self.call("cuLaunchKernel", function, *grid, threads, 1, 1, shared, None, table, None)


# ---- compiling and running ----

TMA_TYPES = {"fp16": 6, "fp32": 7, "bf16": 9}


def signature_of(case):
    signature, attrs = {}, {}
    for at, name in enumerate(case.kernel.arg_names):
        v = case.args.get(name)
        if name in case.constants:
            signature[name] = "constexpr"
        elif isinstance(v, Boxed):
            signature[name] = "tensordesc<%s[%s]>" % (v.tensor.dtype, ",".join(map(str, v.box)))
        elif isinstance(v, (Tensor, Addresses)):
            signature[name] = "*" + (v.dtype if isinstance(v, Tensor) else "i64")
            attrs[(at,)] = [["tt.divisibility", 16]]
        elif isinstance(v, int):
            signature[name] = "i32"
            if v % 16 == 0:
                attrs[(at,)] = [["tt.divisibility", 16]]
        elif isinstance(v, float):
            signature[name] = "fp32"
        else:
            raise Failure("%s: no value for %s" % (case.name, name))
    return signature, attrs


def compiled(case, arch):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    signature, attrs = signature_of(case)
    return triton.compile(ASTSource(fn=case.kernel, signature=signature, constexprs=case.constants, attrs=attrs),
                          target=GPUTarget("cuda", arch, 32), options=case.options)


def tensor_map(machine, boxed, address, meta):
    t = boxed.tensor
    box, size = meta["block_size"], np.dtype(TYPES[t.dtype]).itemsize
    rank = len(t.shape)
    dims = (ctypes.c_uint64 * rank)(*reversed(t.shape))
    strides = (ctypes.c_uint64 * rank)(*[int(np.prod(t.shape[k + 1:])) * size for k in reversed(range(rank - 1))], 0)
    boxes = (ctypes.c_uint32 * rank)(*reversed(box))
    steps = (ctypes.c_uint32 * rank)(*[1] * rank)
    room = ctypes.create_string_buffer(256)
    at = (ctypes.addressof(room) + 63) & ~63
    machine.call("cuTensorMapEncodeTiled", ctypes.c_void_p(at), TMA_TYPES[t.dtype], rank, ctypes.c_void_p(address), dims, strides, boxes, steps,
                 0, meta["swizzle"], 2, 0)
    return (ctypes.c_ubyte * 128).from_buffer_copy(ctypes.string_at(at, 128)), list(t.shape), [int(np.prod(t.shape[k + 1:])) for k in range(rank)]


def run(machine, case, kernel, late, seed):
    machine.options(late, seed, case.checks)
    placed, params = {}, []

    def place(t):
        if id(t) not in placed:
            placed[id(t)] = machine.room(t.size) if t.bytes is None else machine.upload(t.bytes)
        return placed[id(t)]

    metas = iter(kernel.metadata.tensordesc_meta or [])
    for name in case.kernel.arg_names:
        if name in case.constants:
            continue
        v = case.args[name]
        if isinstance(v, Boxed):
            raw, shape, strides = tensor_map(machine, v, place(v.tensor), next(metas))
            params += [raw] + [ctypes.c_int32(x) for x in shape] + [ctypes.c_int64(x) for x in strides]
        elif isinstance(v, Tensor):
            params.append(ctypes.c_uint64(place(v)))
        elif isinstance(v, Addresses):
            params.append(ctypes.c_uint64(machine.upload(np.array([place(t) for t in v.tensors], np.uint64).tobytes())))
        elif isinstance(v, int):
            params.append(ctypes.c_int32(v))
        else:
            params.append(ctypes.c_float(v))
    meta = kernel.metadata
    programs = int(np.prod(case.grid))
    scratch = machine.room(meta.global_scratch_size * programs) if meta.global_scratch_size else 0
    params += [ctypes.c_uint64(scratch), ctypes.c_uint64(0)]
    library, function = machine.kernel(kernel.asm["ptx"], meta.name, meta.shared)
    try:
        machine.launch(function, case.grid, 32 * meta.num_warps, meta.shared, params)
        worst = 0.0
        for tensor, want in case.expect:
            got, want = tensor.decode(machine.download(placed[id(tensor)], tensor.size)), np.asarray(want)
            if want.dtype.kind in "iu":
                if not np.array_equal(got, want):
                    raise Failure("%d of %d whole numbers differ" % (int(np.sum(got != want)), want.size))
                continue
            if not np.array_equal(np.isfinite(got), np.isfinite(want)):
                raise Failure("%d values are infinite or NaN, %d should be" % (int(np.sum(~np.isfinite(got))), int(np.sum(~np.isfinite(want)))))
            fine = np.isfinite(want)
            error = float(np.max(np.abs(got[fine] - want[fine]), initial=0) / max(float(np.max(np.abs(want[fine]), initial=0)), 1e-30))
            worst = max(worst, error)
            if not error <= case.within:
                raise Failure("off by %.2g of the largest value, at most %.2g is right" % (error, case.within))
        return worst
    finally:
        machine.free()
        machine.call("cuLibraryUnload", library)


def library_of(path):
    places = [path] if path else [os.path.join(HERE, "..", "build", p, "lib", "libfagen_simulator.so") for p in ("release", "dev")]
    for p in places:
        if os.path.exists(p):
            return p
    sys.exit("libfagen_simulator.so was not found: cmake --build --preset release --target fagen_simulator")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("word", nargs="*", help="only cases whose name holds one of these")
    p.add_argument("--arch", type=int, choices=(80, 90), help="only this one")
    p.add_argument("--library", help="libfagen_simulator.so; default: the one of the build tree")
    p.add_argument("--list", action="store_true", help="the cases")
    p.add_argument("--ptx", metavar="FOLDER", help="also write every kernel's PTX there")
    p.add_argument("--brief", action="store_true", help="only what is wrong, and the last line")
    o = p.parse_args()
    from simulated import published_cases
    cases = [c for c in published_cases.cases() if not o.word or any(w in c.name for w in o.word)]
    if o.list:
        for c in cases:
            print("%-34s sm_%s" % (c.name, ", sm_".join(map(str, c.archs))))
        return 0
    right = total = 0
    for arch in (80, 90):
        mine = [c for c in cases if arch in c.archs and o.arch in (None, arch)]
        if not mine:
            continue
        told, tell = os.pipe()
        child = os.fork()  # one set of devices per process
        if not child:
            machine = Machine(library_of(o.library), "sm_80" if arch == 80 else "sm_90a")
            for c in mine:
                since, note = time.time(), ""
                try:
                    kernel = compiled(c, arch)
                    if o.ptx:
                        os.makedirs(o.ptx, exist_ok=True)
                        with open(os.path.join(o.ptx, "%s.sm_%d.ptx" % (c.name.replace(" ", "_"), arch)), "w") as f:
                            f.write(kernel.asm["ptx"])
                    worst = max(run(machine, c, kernel, False, 1), run(machine, c, kernel, True, 7))
                    os.write(tell, b".")
                except Failure as e:
                    note = str(e)
                except Exception as e:  # of the compiler
                    note = "%s: %s" % (type(e).__name__, str(e)[:500])
                if note or not o.brief:
                    print("%-34s sm_%d  %s  %5.1f s%s" % (c.name, arch, "WRONG" if note else "right", time.time() - since, "\n    " + note.replace("\n", "\n    ") if note else
                                                               "  %.1g%s%s" % (worst, "  " + c.checks if c.checks else "", "".join("  warned: " + w for w in machine.warnings()))), flush=True)
            os._exit(0)
        os.close(tell)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            print("sm_%d: the process ended by signal %d" % (arch, os.WTERMSIG(status)))
        right += len(os.read(told, 4096))
        os.close(told)
        total += len(mine)
    import triton
    print("%d of %d kernels are right and without an alarm (Triton %s, NumPy %s)" % (right, total, triton.__version__, np.__version__))
    return 0 if right == total else 1


if __name__ == "__main__":
    sys.exit(main())
