"""A case of published.py as data: a kernel, its arguments, and what NumPy says it computes."""
import numpy as np

TYPES = {"fp16": np.float16, "fp32": np.float32, "bf16": np.uint16, "i8": np.int8, "i32": np.int32, "i64": np.int64, "u8": np.uint8}


class Tensor:
    """Values and the type they have on the device; None as values: an output that nothing has written."""

    def __init__(self, values, dtype, shape=None):
        self.dtype, self.shape = dtype, tuple(shape if values is None else np.shape(values))
        self.bytes = None if values is None else self.encode(np.asarray(values)).tobytes()
        self.size = int(np.prod(self.shape)) * np.dtype(TYPES[dtype]).itemsize

    def encode(self, v):
        if self.dtype != "bf16":
            return np.ascontiguousarray(v.astype(TYPES[self.dtype]))
        bits = np.ascontiguousarray(v.astype(np.float32)).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)

    def decode(self, data):
        v = np.frombuffer(data, TYPES[self.dtype]).reshape(self.shape)
        if self.dtype == "bf16":
            return (v.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return v.astype(np.float64) if v.dtype.kind == "f" else v

    @property
    def values(self):
        return self.decode(self.bytes)


class Boxed:
    """A tensor that the kernel reaches through a tensor map, with the box it asks for."""

    def __init__(self, tensor, box):
        self.tensor, self.box = tensor, box


class Addresses:
    """A table of device addresses of tensors."""

    def __init__(self, tensors):
        self.tensors = tensors


def normal(seed, *shape, dtype="fp16", scale=1.0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape) * scale, dtype)


class Case:
    """kernel(args by name, constants), on a grid; expect: (output, values) pairs; within: relative to the largest value expected;
    checks: severities other than the simulator's own, where a true report is harmless."""

    def __init__(self, name, kernel, args, constants, grid, expect, within=2e-3, archs=(80, 90), warps=4, stages=3, checks="", **options):
        self.name, self.kernel, self.args, self.constants, self.grid = name, kernel, args, constants, tuple(grid) + (1,) * (3 - len(grid))
        self.expect, self.within, self.archs, self.checks = expect, within, archs, checks
        self.options = dict(options, num_warps=warps, num_stages=stages)
