"""Nodes of ggml's attention through libfagen_ggml.so on a GPU: right against PyTorch in fp32, and how long one takes.

    python3 bench/ggml/seam.py lib/libfagen_ggml.so -o ggml.json [--seconds 40] [--only WORD]

The library is called as a ggml that is built with ggml/seam.h calls it; tensors are PyTorch's. A row is a node: its parts in microseconds,
the median of rounds of some milliseconds, eager (masks of many rows are looked at in each, as once in a graph) and as a graph of CUDA's
(nothing is looked at). beside: scaled_dot_product_attention of PyTorch on the same numbers in 16 bits, with the mask as a tensor.
"""
import argparse
import ctypes
import json
import math
import statistics
import sys
import time

import torch

TYPES = {0: ("f32", 1, 4), 1: ("f16", 1, 2), 2: ("q4_0", 32, 18), 8: ("q8_0", 32, 34), 30: ("bf16", 1, 2)}
NUMBER = {row[0]: number for number, row in TYPES.items()}
ATTENTION = 4


class Tensor(ctypes.Structure):
    pass


Tensor._fields_ = [
    ("type", ctypes.c_int32), ("buffer", ctypes.c_void_p), ("ne", ctypes.c_int64 * 4), ("nb", ctypes.c_size_t * 4), ("op", ctypes.c_int32),
    ("op_params", ctypes.c_byte * 64), ("flags", ctypes.c_int32), ("src", ctypes.POINTER(Tensor) * 10), ("view_src", ctypes.c_void_p),
    ("view_offs", ctypes.c_size_t), ("data", ctypes.c_void_p), ("name", ctypes.c_char * 64), ("extra", ctypes.c_void_p),
    ("padding", ctypes.c_char * 8)]
assert ctypes.sizeof(Tensor) == 336

SIZE = ctypes.CFUNCTYPE(ctypes.c_size_t)
NAME = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int32)
OF_TYPE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int32)


class Functions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("overhead", SIZE), ("op_name", NAME), ("type_name", NAME), ("type_size", OF_TYPE),
                ("block", OF_TYPE)]


TEXTS = {}  # what C is shown lives on


def text(name):
    return ctypes.addressof(TEXTS.setdefault(name, ctypes.create_string_buffer(name.encode())))


def functions():
    ops = ["NONE", "CPY", "VIEW", "MUL_MAT_ID", "FLASH_ATTN_EXT"]
    f = Functions(overhead=SIZE(lambda: 368), op_name=NAME(lambda i: text(ops[i]) if i < 5 else None),
                  type_name=NAME(lambda t: text(TYPES[t][0]) if t in TYPES else None),
                  type_size=OF_TYPE(lambda t: TYPES.get(t, ("", 0, 0))[2]), block=OF_TYPE(lambda t: TYPES.get(t, ("", 0, 0))[1]))
    f.size = ctypes.sizeof(Functions)
    return f


def view(t, kind, ne, strides):
    """A tensor over memory of PyTorch's: strides in bytes of dimensions 1 to 3."""
    out = Tensor(type=NUMBER[kind], data=t.data_ptr())
    out.ne[:] = ne
    out.nb[:] = [TYPES[out.type][2], *strides]
    return out


def quantized(x, kind):
    """[..., d] of fp32 as blocks of 32 in bytes, and what they mean."""
    b = x.reshape(*x.shape[:-1], -1, 32)
    if kind == "q8_0":
        d = (b.abs().amax(-1, keepdim=True) / 127).half()
        codes = torch.clamp(torch.round(b / d.float().clamp(min=1e-12)), -127, 127).to(torch.int8)
        row = torch.cat([d.view(torch.uint8).reshape(*d.shape[:-1], 2), codes.view(torch.uint8)], -1)
        return row.flatten(-2).contiguous(), (codes.float() * d.float()).flatten(-2)
    top = b.gather(-1, b.abs().argmax(-1, keepdim=True))
    d = (top / -8).half()
    codes = torch.clamp(torch.floor(b / torch.where(d == 0, 1, d.float()) + 8.5), 0, 15).to(torch.uint8)
    row = torch.cat([d.view(torch.uint8).reshape(*d.shape[:-1], 2), codes[..., :16] | codes[..., 16:] << 4], -1)
    return row.flatten(-2).contiguous(), ((codes.float() - 8) * d.float()).flatten(-2)


class Node:
    """One attention: K and V lie as tokens of a cache, whose heads lie side by side; Q is permuted, as llama.cpp gives it."""

    def __init__(self, d, hq, hkv, sq, sk, kind="f16", mask="causal", cap=0.0, bias=0.0, sinks=False, dv=None):
        dv = dv or d
        self.name = f"d {d}{'' if dv == d else f' dv {dv}'} hq {hq} hkv {hkv} sq {sq} sk {sk} {kind} {mask}" + \
            f"{' cap' if cap else ''}{' slopes' if bias else ''}{' sinks' if sinks else ''}"
        self.shape = (d, dv, hq, hkv, sq, sk)
        self.cap, self.bias, self.scale = cap, bias, 1 / math.sqrt(d)
        g = torch.Generator("cuda").manual_seed(1)
        self.q = torch.randn(sq, hq, d, device="cuda", generator=g)
        k, v = (torch.randn(sk, hkv, n, device="cuda", generator=g) for n in (d, dv))
        self.k, self.k_means = self.stored(k, kind)
        self.v, self.v_means = self.stored(v, kind)
        self.mask = self.mask_of(mask, sq, sk)
        self.sinks = torch.randn(hq, device="cuda", generator=g) if sinks else None
        self.o = torch.full((sq, hq, dv), float("nan"), device="cuda")
        t = self.parts = [view(self.q, "f32", (d, sq, hq, 1), (4 * hq * d, 4 * d, 4 * hq * d * sq))]
        for x, n in ((self.k, d), (self.v, dv)):
            row = x.stride(-2) * x.element_size()
            t.append(view(x, kind, (n, sk, hkv, 1), (hkv * row, row, hkv * row * sk)))
        t.append(view(self.mask, "f16", (sk, sq, 1, 1), (2 * sk, 2 * sk * sq, 2 * sk * sq)) if self.mask is not None else None)
        t.append(view(self.sinks, "f32", (hq, 1, 1, 1), (4 * hq,) * 3) if sinks else None)
        self.node = view(self.o, "f32", (dv, hq, sq, 1), (4 * dv, 4 * dv * hq, 4 * dv * hq * sq))
        self.node.op, self.node.flags = ATTENTION, 16
        ctypes.memmove(self.node.op_params, (ctypes.c_float * 3)(self.scale, bias, cap), 12)
        for i, part in enumerate(t):
            if part is not None:
                self.node.src[i] = ctypes.pointer(part)

    @staticmethod
    def stored(x, kind):
        if kind in ("q8_0", "q4_0"):
            return quantized(x, kind)
        y = x.to({"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[kind])
        return y, y.float()

    @staticmethod
    def mask_of(word, sq, sk):
        if word == "none":
            return None
        i, j = torch.arange(sq, device="cuda")[:, None], torch.arange(sk, device="cuda")[None]
        past = sk - sq - 37 if sk > sq + 64 else 0  # cells past the last are there, and hidden, as in a cache of whole pads
        hidden = {"causal": j > i + past, "window": (j > i + past) | (j <= i + past - 512), "distances": j > i + past,
                  "two": (j > i + past) | (j % 512 // 256 != i % 512 // 256)}[word]
        m = -(i + past - j).abs().half() if word == "distances" else torch.zeros(sq, sk, device="cuda", dtype=torch.float16)
        return m.masked_fill(hidden, float("-inf")).half().contiguous()

    def truth(self):
        d, dv, hq, hkv, sq, sk = self.shape
        k, v = (x.float().repeat_interleave(hq // hkv, 1) for x in (self.k_means, self.v_means))
        s = torch.einsum("ihd,jhd->hij", self.q.double(), k.double()) * self.scale
        if self.cap:
            s = self.cap * torch.tanh(s / self.cap)
        if self.mask is not None:
            slope = torch.ones(hq, device="cuda", dtype=torch.float64)
            if self.bias:
                n = 2 ** int(math.log2(hq))
                slope = torch.tensor([2 ** (-self.bias * (h + 1) / n) if h < n else 2 ** (-self.bias * (2 * (h - n) + 1) / (2 * n))
                                      for h in range(hq)], device="cuda", dtype=torch.float64)
            s = s + slope[:, None, None] * self.mask.double()
        if self.sinks is not None:
            s = torch.cat([s, self.sinks.double()[:, None, None].expand(hq, sq, 1)], -1)
        p = torch.softmax(s, -1)[..., :sk]
        return torch.einsum("hij,jhd->ihd", p, v.double())

    def peer(self):
        d, dv, hq, hkv, sq, sk = self.shape
        q, k, v = (x.half().transpose(0, 1)[None].contiguous() for x in (self.q, self.k_means, self.v_means))
        m = None if self.mask is None else self.mask[None, None]
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=self.scale, enable_gqa=hq != hkv)


def seconds(call, stream):
    """The median of nine rounds of a call, each of some milliseconds."""
    call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    n = max(1, min(200, int(4e-3 / (time.perf_counter() - begin))))
    times = []
    for _ in range(9):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(stream)
        for _ in range(n):
            call()
        b.record(stream)
        b.synchronize()
        times.append(a.elapsed_time(b) * 1e-3 / n)
    return statistics.median(times)


def captured(call, times):
    """A replay of so many calls in one graph."""
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call(side, 0)
        side.synchronize()
        with torch.cuda.graph(graph, stream=side, capture_error_mode="relaxed"):
            for _ in range(times):
                call(side, 1)
    return graph


NODES = [dict(d=d, hq=hq, hkv=8, sq=sq, sk=sk, kind=kind, mask=mask) for d, hq in ((128, 32), (64, 64))
         for sq, sk, mask in ((1, 4096, "causal"), (1, 32768, "causal"), (512, 4096, "causal"), (512, 4096, "two"))
         for kind in ("f16", "q8_0", "q4_0")]
NODES += [
    dict(d=128, hq=32, hkv=8, sq=512, sk=8192, kind="bf16", mask="window"),
    dict(d=256, hq=16, hkv=8, sq=512, sk=4096, mask="causal", cap=50.0),
    dict(d=64, hq=64, hkv=8, sq=1, sk=4096, mask="causal", sinks=True),
    dict(d=64, hq=64, hkv=8, sq=512, sk=4096, mask="causal", sinks=True),
    dict(d=72, hq=16, hkv=16, sq=729, sk=729, mask="none"),
    dict(d=72, hq=16, hkv=16, sq=729, sk=729, kind="f32", mask="none"),
    dict(d=80, hq=32, hkv=32, sq=512, sk=2048, mask="distances", bias=8.0),
    dict(d=192, dv=128, hq=16, hkv=16, sq=512, sk=2048, mask="causal"),
    dict(d=256, hq=16, hkv=8, sq=1, sk=4096, mask="causal", cap=50.0),
    dict(d=40, hq=8, hkv=8, sq=4096, sk=4096, mask="none"),
    dict(d=128, hq=32, hkv=8, sq=4, sk=8192, mask="causal"),
    dict(d=128, hq=64, hkv=8, sq=2048, sk=2048, mask="causal"),
]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("library")
    p.add_argument("-o", default="ggml.json")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--only", default="")
    a = p.parse_args()
    lib = ctypes.CDLL(a.library)
    lib.fagen_ggml_seam_open.restype = ctypes.c_void_p
    lib.fagen_ggml_begin.argtypes = lib.fagen_ggml_seam_close.argtypes = [ctypes.c_void_p]
    lib.fagen_ggml_supports.argtypes = [ctypes.c_void_p] * 2
    lib.fagen_ggml_compute.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int]
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    f = functions()
    seam = lib.fagen_ggml_seam_open(ctypes.byref(f), 0, None)
    if not seam:
        sys.exit("no seam")
    rows, begin = [], time.monotonic()
    for given in NODES:
        if time.monotonic() - begin > a.seconds:
            print("out of time")
            break
        n = Node(**given)
        if a.only not in n.name:
            continue
        row = dict(name=n.name, device=torch.cuda.get_device_name())
        rows.append(row)
        node = ctypes.addressof(n.node)
        if not lib.fagen_ggml_supports(seam, node):
            print(f"{n.name:60} not claimed")
            continue

        def call(stream=torch.cuda.current_stream(), capture=0):
            if not lib.fagen_ggml_compute(seam, node, stream.cuda_stream, capture):
                raise SystemExit("the launch failed")

        lib.fagen_ggml_begin(seam)
        first = time.monotonic()
        call()
        torch.cuda.synchronize()
        row["first"] = time.monotonic() - first
        truth = n.truth()
        row["nmse"] = (((n.o.double() - truth) ** 2).sum() / (truth ** 2).sum()).item()
        row["eager"] = seconds(call, torch.cuda.current_stream())
        try:
            graph = captured(call, 16)
            n.o.fill_(float("nan"))
            row["graph"] = seconds(graph.replay, torch.cuda.current_stream()) / 16
            torch.cuda.synchronize()
            row["graph_nmse"] = (((n.o.double() - truth) ** 2).sum() / (truth ** 2).sum()).item()
        except RuntimeError as e:  # the row says why, and the next one is run
            row["graph_error"] = str(e)[:200]
        try:
            row["beside"] = seconds(n.peer(), torch.cuda.current_stream())
        except RuntimeError as e:
            row["beside_error"] = str(e)[:200]
        times = "  ".join(f"{what} {row.get(what, math.nan) * 1e6:8.1f} us" for what in ("eager", "graph", "beside"))
        print(f"{n.name:60} nmse {row['nmse']:.1e} {row.get('graph_nmse', math.nan):.1e}  {times}  first {row['first']:.2f} s",
              row.get("graph_error", ""), row.get("beside_error", ""), flush=True)
        del n
    lib.fagen_ggml_seam_close(seam)
    with open(a.o, "w") as file:
        json.dump(rows, file, indent=1)
    bad = [r["name"] for r in rows if "nmse" in r and not max(r["nmse"], r.get("graph_nmse", 0)) < 5e-5]
    print(f"{len(rows)} nodes, wrong: {bad or 'none'}")


if __name__ == "__main__":
    main()
