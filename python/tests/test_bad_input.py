"""What is refused: each row is a call, the class of the exception, and words of its message: the argument, its value, what is accepted."""
from __future__ import annotations

import numpy as np
import pytest
from conftest import CHIP, half

import fagen

Q, K, V = half(1, 2, 8, 4, 64), half(2, 2, 12, 2, 64), half(3, 2, 12, 2, 64)
INT = np.int32
BAD, NOT = fagen.InvalidArgument, fagen.Unsupported


def frozen(x):
    x = x.copy()
    x.flags.writeable = False
    return x


class Odd:
    """A tensor of a device that fagen does not know."""

    def __dlpack_device__(self):
        return (10, 0)  # ROCm


class Broken:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        raise BufferError("it is gone")


def dense(*change, **options):
    """attention of Q, K and V, of which `change` replaces some."""
    q, k, v = (new if new is not None else old for new, old in zip(change + (None,) * 3, (Q, K, V)))
    return lambda: fagen.attention(q, k, v, **options)


def within(k=None, v=None, **options):
    """attention with V inside K."""
    return lambda: fagen.attention(Q, K if k is None else k, v, **{"head_dim_v": 32, **options})


def f64(x):
    return x.astype(np.float64)


def wide(x):
    """Every other column of twice as many: no unit stride."""
    return np.repeat(x, 2, -1)[..., ::2]


DENSE = [
    ("a list", dense([1, 2]), BAD, ["q is a builtins.list", "DLPack"]),
    ("None", dense(None, 5), BAD, ["k is a builtins.int"]),
    ("text", lambda: fagen.attention(Q, K, "v"), BAD, ["v is a builtins.str"]),
    ("another kind of device", dense(Odd()), BAD, ["q.__dlpack_device__() is (10, 0)", "CUDA device (2 or 13)"]),
    ("a producer that fails", dense(Broken()), BAD, ["q is a test_bad_input.Broken", "it is gone"]),
    ("three dimensions", dense(Q[0]), BAD, ["q.shape is (8, 4, 64)", "4 dimensions, [b, sq, hq, d]"]),
    ("five dimensions", dense(None, K[None]), BAD, ["k.shape is (1, 2, 12, 2, 64)", "[b, sk, hkv, d]"]),
    ("a scalar", dense(None, None, np.array(1, np.float16)), BAD, ["v.shape is ()"]),
    ("q of float64", dense(f64(Q), f64(K), f64(V)), BAD, ["q.dtype is float64", "float16 (fp16), bfloat16 (bf16), float32 (fp32)"]),
    ("q of int32", dense(Q.astype(INT)), BAD, ["q.dtype is int32"]),
    ("k of another type", dense(None, K.astype(np.float32)), BAD, ["k.dtype is float32", "float16 (fp16), that of q"]),
    ("v of another type", dense(None, None, V.astype(np.float32)), BAD, ["v.dtype is float32", "float16 (fp16), that of q"]),
    ("complex", dense(Q.astype(np.complex64)), BAD, ["q.dtype is complex64"]),
    ("booleans", dense(Q.astype(bool)), BAD, ["q.dtype is bool"]),
    ("big-endian", dense(Q.astype(">f2")), BAD, ["q.dtype is big-endian >f2"]),
    ("q without unit stride", dense(wide(Q)), BAD, ["q.strides is (4096, 512, 128, 2)", "unit stride on the last"]),
    ("k without unit stride", dense(None, wide(K)), BAD, ["k.strides", "unit stride on the last"]),
    ("v backwards", dense(None, None, V[..., ::-1]), BAD, ["v.strides", "-1"]),
    ("strides between elements", dense(np.ndarray(Q.shape, np.float16, bytearray(40000), 0, (8193, 1024, 128, 2))), BAD,
     ["q.strides is (8193, 1024, 128, 2) bytes", "multiples of the 2 bytes of float16"]),
    ("another batch", dense(None, K[:1]), BAD, ["k.shape is (1, 12, 2, 64)", "(2, sk, hkv, 64)"]),
    ("another d", dense(None, K[..., :32]), BAD, ["k.shape is (2, 12, 2, 32)", "(2, sk, hkv, 64)"]),
    ("v with fewer keys", dense(None, None, V[:, :5]), BAD, ["v.shape is (2, 5, 2, 64)", "(2, 12, 2, dv)"]),
    ("v with fewer heads", dense(None, None, V[:, :, :1]), BAD, ["v.shape is (2, 12, 1, 64)"]),
    ("heads that do not divide", dense(Q[:, :, :3]), BAD, ["k.shape[2] is 2", "divides the 3 of q"]),
    ("no query head", dense(Q[:, :, :0]), BAD, ["q.shape[2] is 0"]),
    ("no key head", dense(None, K[:, :, :0], V[:, :, :0]), BAD, ["k.shape[2] is 0"]),
    ("d of 0", dense(Q[..., :0], K[..., :0]), BAD, ["q.shape[-1] is 0", "1 to 576"]),
    ("d of 577", dense(half(1, 2, 8, 4, 577), half(2, 2, 12, 2, 577)), BAD, ["q.shape[-1] is 577", "1 to 576"]),
    ("dv of 0", dense(None, None, V[..., :0]), BAD, ["v.shape[-1] is 0"]),
    ("causal as a number", dense(causal=1), BAD, ["causal is 1", "True, False"]),
    ("causal as text", dense(causal="yes"), BAD, ["causal is 'yes'"]),
    ("a window of half a key", dense(window=0.5), BAD, ["window is 0.5", "an integer"]),
    ("a softcap", dense(softcap=-30.0), fagen.InvalidArgument, ["score_values[0].scalar is -30 (softcap)", "1e-06 to 1e+30"]),
    ("slopes", dense(alibi_slopes=[1.0]), fagen.InvalidArgument, ["alibi_slopes is", "a tensor"]),
    ("slopes of other heads", dense(alibi_slopes=np.ones(3, np.float32)), BAD, ["alibi_slopes.shape is (3,)", "(4,)"]),
    ("a mask of fp64", dense(attn_mask=np.ones((8, 12))), BAD, ["attn_mask is float64 (8, 12)", "of bool (True: is seen)", "(is added)"]),
    ("a mask of integers", dense(attn_mask=np.ones((8, 12), np.int32)), BAD, ["attn_mask is int32 (8, 12)"]),
    ("a mask of other lengths", dense(attn_mask=np.ones((8, 13), bool)), BAD, ["attn_mask.shape is (8, 13)", "1 is for all"]),
    ("a mask of 5 dimensions", dense(attn_mask=np.ones((1, 1, 1, 8, 12), bool)), BAD, ["attn_mask.shape is (1, 1, 1, 8, 12)"]),
    ("a mask in a list", dense(attn_mask=[[True]]), BAD, ["attn_mask is a builtins.list"]),
    ("sinks", lambda: fagen.varlen_attention(Q, K, V, seqlens_k=LENGTHS, sinks=np.ones(2)), fagen.InvalidArgument,
     ["sinks is float64", "float32"]),
    ("v left out", lambda: fagen.attention(Q, K, None), BAD, ["v is None", "a tensor; or None beside head_dim_v"]),
    ("v left out beside lengths", lambda: fagen.varlen_attention(Q, K, None, seqlens_k=LENGTHS), BAD, ["v is None", "head_dim_v"]),
    ("V wider than K", within(head_dim_v=65), BAD, ["head_dim_v is 65", "1 to 64"]),
    ("V of no columns", within(head_dim_v=0), BAD, ["head_dim_v is 0", "1 to 64"]),
    ("columns of V as a fraction", within(head_dim_v=32.0), BAD, ["head_dim_v is 32.0", "an integer from 1 to 64"]),
    ("columns of V as a truth", within(head_dim_v=True), BAD, ["head_dim_v is True", "an integer"]),
    ("V of its own beside head_dim_v", within(v=V[..., :32].copy()), BAD, ["v is a tensor at 0x", "None, or k[..., :32], in k's memory"]),
    ("V of other columns", within(v=K[..., 32:]), BAD, ["v is a tensor at 0x", "k[..., :32]"]),
    ("V of all columns", within(v=K), BAD, ["v.shape is (2, 12, 2, 64)", "(2, 12, 2, 32): None, or k[..., :32]"]),
    ("V of other rows", within(k=K[:, ::2], v=K[:, :6, :, :32]), BAD, ["v.strides is (1536, 128, 64, 1)", "(1536, 256, 64, 1), those of k"]),
    ("V inside K of another type", within(v=K[..., :32].view(np.int16)), BAD, ["v.dtype is int16", "float16 (fp16), that of k"]),
    ("K around V of another type", within(k=K.astype(np.float32)), BAD, ["k.dtype is float32", "float16 (fp16), that of q"]),
    ("K around V of another d", within(k=K[..., :48]), BAD, ["k.shape is (2, 12, 2, 48)", "(2, sk, hkv, 64)"]),
    ("K around V without unit stride", within(k=wide(K)), BAD, ["k.strides", "unit stride on the last"]),
    ("V inside a list", within(k=[1]), BAD, ["k is a builtins.list"]),
    ("V inside K of few bits", within(k=K.view(np.int8)[..., :64]), BAD, ["k.dtype is int8", "float16 (fp16), that of q"]),
    ("V inside K with scales", within(k_scale=np.ones(1, np.float32)), NOT, ["k_scale is a numpy.ndarray", "None", "without head_dim_v"]),
    ("V inside K with a format", within(cache_format="q8_0"), NOT, ["cache_format is 'q8_0'", "None", "without head_dim_v"]),
    ("V inside K, written over out of d", within(out=np.empty_like(Q)), BAD, ["out.shape is (2, 8, 4, 64)", "(2, 8, 4, 32)"]),
    ("V inside pages without lengths", lambda: fagen.varlen_attention(Q[:, :1], PAGES, None, head_dim_v=32, page_table=TABLE), BAD,
     ["seqlens_k is None", "with page_table"]),
    ("gradients without a v", lambda: fagen.attention_backward(OUT, FQ, FK, None, OUT, LSE), BAD, ["v is a builtins.NoneType"]),
    ("a masked array", dense(np.ma.masked_array(Q)), BAD, ["q is a masked array"]),
    ("no parts", lambda: fagen.merge([], []), BAD, ["parts is []", "at least one"]),
    ("parts of two shapes", lambda: fagen.merge([PARTS[0], PARTS[0, :, :1]], SUMS), BAD, ["parts is a list of shapes", "one shape"]),
    ("parts of two libraries", lambda: fagen.merge([PARTS[0], "x"], SUMS), BAD, ["parts is a list of ndarray, str"]),
    ("parts of numbers", lambda: fagen.merge([1.0, 2.0], SUMS), BAD, ["parts is a list of builtins.float"]),
    ("a window of three", dense(window=(1, 2, 3)), BAD, ["window is (1, 2, 3)"]),
    ("a window below -1", dense(window=(-2, 0)), BAD, ["window[0] is -2", "-1 to"]),
    ("a window of halves", dense(window=(0, 1.5)), BAD, ["window[1] is 1.5", "an integer"]),
    ("a window too wide", dense(window=(2**31, 0)), BAD, ["window[0] is 2147483648"]),
    ("a diagonal of no name", dense(causal=True, diagonal="middle"), BAD, ['diagonal is "middle"', '"bottom-right", "top-left"']),
    ("a diagonal of halves", dense(causal=True, diagonal=0.5), BAD, ["diagonal is 0.5"]),
    ("a diagonal too far", dense(causal=True, diagonal=2**40), BAD, ["diagonal is 1099511627776"]),
    ("scale of 0", dense(scale=0), BAD, ["scale is 0", "above 0"]),
    ("a negative scale", dense(scale=-1.0), BAD, ["scale is -1.0", "negate q or k"]),
    ("a scale whose product with log2(e) is infinite", dense(scale=2.36e38), BAD, ["scale is 2.36e+38", "2.358e38"]),
    ("a scale that is 0 in fp32", dense(scale=1e-46), BAD, ["scale is 1e-46", "1.41e-45"]),
    ("scale of infinity", dense(scale=float("inf")), BAD, ["scale is inf"]),
    ("scale of NaN", dense(scale=float("nan")), BAD, ["scale is nan"]),
    ("scale as text", dense(scale="1"), BAD, ["scale is '1'"]),
    ("tf32 as a number", dense(tf32=1), BAD, ["tf32 is 1", "True, False"]),
    ("stream below 0", dense(stream=-1), BAD, ["stream is -1", "handle"]),
    ("stream as an object", dense(stream="s"), BAD, ["stream is 's'"]),
    ("no device for host memory", lambda: plainly(Q, K, V), BAD, ["q.device is cpu and device is None", "sim:sm_90a"]),
    ("a device of no name", dense(device="tpu:0"), BAD, ['device: "tpu:0"', "cuda:N"]),
    ("a device that is a number", dense(device=0), BAD, ["device is 0"]),
    ("a simulated chip of no name", dense(device="sim:sm_81"), BAD, ['device: "sim:sm_81"', "sm_81 is not simulated"]),
    ("a type of output", dense(out_dtype="float64"), BAD, ["out_dtype is float64", "float16 (fp16), that of q, or float32 (fp32)"]),
    ("a type beside out", dense(out=np.empty_like(Q), out_dtype="float32"), BAD, ["out_dtype is 'float32'", "None beside out"]),
    ("out of another shape", dense(out=np.empty_like(K)), BAD, ["out.shape is (2, 12, 2, 64)", "(2, 8, 4, 64)"]),
    ("out of three dimensions", dense(out=np.empty_like(Q)[0]), BAD, ["out.shape is (8, 4, 64)"]),
    ("out of another type", dense(out=np.empty(Q.shape, np.float64)), BAD, ["out.dtype is float64"]),
    ("out that is read-only", dense(out=frozen(Q)), BAD, ["out is read-only"]),
    ("out that is expanded", dense(out=np.lib.stride_tricks.as_strided(np.empty_like(Q), Q.shape, (0, 512, 128, 2))), BAD,
     ["out.strides is (0, 256, 64, 1)", "expanded"]),
    ("lse of another shape", dense(return_lse=True, lse=np.empty((2, 8, 4), np.float32)), BAD, ["lse.shape is (2, 8, 4)", "(2, 4, 8)"]),
    ("lse of another type", dense(lse=np.empty((2, 4, 8), np.float16)), BAD, ["lse.dtype is float16", "float32"]),
    ("lse that is expanded", dense(lse=np.lib.stride_tricks.as_strided(np.empty(8, np.float32), (2, 4, 8), (0, 0, 4))), BAD,
     ["lse.strides is (0, 0, 1)", "no stride of 0"]),
    ("all dimensions expanded", dense(np.broadcast_to(Q[:1, :1, :1], Q.shape)), BAD, ["q.strides is (0, 0, 0, 1)"]),
]


def plainly(*tensors):
    """Outside of the simulator that the test is in."""
    token = fagen._context._simulator.set(None)
    try:
        return fagen.attention(*tensors)
    finally:
        fagen._context._simulator.reset(token)


QP, KP = half(1, 20, 4, 64), half(2, 20, 2, 64)
STARTS, LENGTHS = np.array([0, 8, 20], INT), np.array([5, 12], INT)
PAGES, TABLE = half(2, 6, 16, 2, 64), np.array([[0, 1], [2, 3]], INT)


def packed(q=QP, k=KP, **change):
    options = dict(cu_seqlens_q=STARTS, cu_seqlens_k=STARTS, max_seqlen_q=12, max_seqlen_k=12)
    return lambda: fagen.varlen_attention(q, k, k, **{**options, **change})


def paged(q=Q[:, :1], k=PAGES, **change):
    return lambda: fagen.varlen_attention(q, k, k, **{**dict(seqlens_k=LENGTHS, page_table=TABLE), **change})


VARLEN = [
    ("no lengths at all", lambda: fagen.varlen_attention(Q, K, V), BAD, ["are all None", "fagen.attention"]),
    ("packed rows of four dimensions", packed(Q), BAD, ["q.shape is (2, 8, 4, 64)", "3 dimensions, [total_q, hq, d] with cu_seqlens_q"]),
    ("padded rows of three", paged(QP), BAD, ["q.shape is (20, 4, 64)"]),
    ("no maximum of queries", packed(max_seqlen_q=None), BAD, ["max_seqlen_q is None", "cu_seqlens_q lies in device memory"]),
    ("no maximum of keys", packed(max_seqlen_k=None), BAD, ["max_seqlen_k is None"]),
    ("a negative maximum", packed(max_seqlen_k=-1), BAD, ["max_seqlen_k is -1"]),
    ("a maximum of halves", packed(max_seqlen_q=1.5), BAD, ["max_seqlen_q is 1.5", "an integer"]),
    ("bounds of int64", packed(cu_seqlens_q=STARTS.astype(np.int64)), BAD, ["cu_seqlens_q.dtype is int64", "int32"]),
    ("bounds of another batch", packed(cu_seqlens_k=STARTS[:2]), BAD, ["cu_seqlens_k.shape is (2,)", "(3,), of 2 sequences"]),
    ("bounds in two dimensions", packed(cu_seqlens_k=STARTS[None]), BAD, ["cu_seqlens_k.shape is (1, 3)", "[b + 1]"]),
    ("bounds as a list", packed(cu_seqlens_k=[0, 8, 20]), BAD, ["cu_seqlens_k is a builtins.list"]),
    ("bounds with gaps in memory", packed(cu_seqlens_k=np.repeat(STARTS, 2)[::2]), BAD, ["cu_seqlens_k.strides is (2,)"]),
    ("pages without lengths", paged(seqlens_k=None), BAD, ["seqlens_k is None", "with page_table"]),
    ("pages and packed keys", paged(cu_seqlens_k=STARTS, max_seqlen_k=12), BAD, ["page_table and cu_seqlens_k are both set"]),
    ("a table of floats", paged(page_table=TABLE.astype(np.float32)), BAD, ["page_table.dtype is float32"]),
    ("a table of one dimension", paged(page_table=TABLE[0]), BAD, ["page_table.shape is (2,)", "[b, n]"]),
    ("a table of another batch", paged(page_table=TABLE[:1]), BAD, ["page_table.shape is (1, 2)", "2 sequences"]),
    ("pages of three dimensions", paged(k=PAGES[0]), BAD, ["k.shape is (16, 2, 64)"]),
    ("more keys than pages", paged(max_seqlen_k=33), BAD, ["max_seqlen_k is 33", "at most 32"]),
    ("lengths of another batch", paged(seqlens_k=np.array([1, 2, 3], INT)), BAD, ["seqlens_k.shape is (3,)", "2 sequences"]),
    ("more keys than rows", lambda: fagen.varlen_attention(Q, K, V, seqlens_k=LENGTHS, max_seqlen_k=13), BAD, ["max_seqlen_k is 13", "12"]),
    ("more queries than rows", lambda: fagen.varlen_attention(Q, K, V, seqlens_k=LENGTHS, max_seqlen_q=9), BAD,
     ["max_seqlen_q is 9", "8"]),
    ("keys of another batch", lambda: fagen.varlen_attention(Q, K[:1], V[:1], seqlens_k=LENGTHS), BAD, ["k.shape is (1, 12, 2, 64)"]),
    ("a length beyond the rows", lambda: fagen.varlen_attention(Q, K, V, seqlens_k=np.array([1, 13], INT)), BAD, ["seqlens_k", "13", "12"]),
    ("a negative length", lambda: fagen.varlen_attention(Q, K, V, seqlens_k=np.array([-1, 3], INT)), BAD, ["seqlens_k", "-1"]),
    ("a page that is not there", paged(page_table=np.array([[0, 6], [6, 1]], INT)), BAD, ["page_table", "6"]),
]

PARTS, SUMS = half(1, 3, 2, 8, 4, 64, dtype="float32"), half(2, 3, 2, 4, 8, dtype="float32")
OTHERS = [
    ("a device in place of a context", lambda: fagen.use("sim:sm_80"), BAD, ["new is 'sim:sm_80'", "fagen.Context"]),
    ("parts of four dimensions", lambda: fagen.merge(PARTS[0], SUMS), BAD, ["parts.shape is (2, 8, 4, 64)", "[n, b, s, h, d]"]),
    ("sums of another shape", lambda: fagen.merge(PARTS, SUMS[:2]), BAD, ["lses.shape is (2, 2, 4, 8)", "(3, 2, 4, 8)"]),
    ("sums of another type", lambda: fagen.merge(PARTS, SUMS.astype(np.float16)), BAD, ["lses.dtype is float16", "float32"]),
    ("sums that are not packed", lambda: fagen.merge(PARTS, SUMS.swapaxes(2, 3).copy().swapaxes(2, 3)), BAD,
     ["lses.strides is (64, 32, 1, 4)"]),
    ("parts that are one", lambda: fagen.merge(np.broadcast_to(PARTS[:1], PARTS.shape), SUMS), BAD, ["parts.strides", "no stride of 0"]),
    ("a type of a merge", lambda: fagen.merge(PARTS, SUMS, out_dtype="int32"), BAD,
     ["out_dtype is int32", "float16 (fp16), bfloat16 (bf16), float32 (fp32)"]),
    ("a problem's type", lambda: fagen.supported(dtype="int4", d=64), BAD,
     ["dtype is 'int4'", "float16 (fp16), bfloat16 (bf16), float32 (fp32), tf32"]),
    ("a problem's d", lambda: fagen.supported(dtype="float16", d=600), BAD, ["d is 600", "1 to 576"]),
    ("a problem's length", lambda: fagen.prepare(dtype="float16", d=64, sq=-1), BAD, ["sq is -1"]),
    ("a problem's field", lambda: fagen.prepare(dtype="float16", depth=64), BAD, ["depth", "accepted: dtype, d, dv"]),
    ("a problem's heads", lambda: fagen.prepare(dtype="float16", d=64, hq=3, hkv=2), BAD, ["3", "accepted"]),
    ("a problem's alignment", lambda: fagen.prepare(dtype="float16", d=64, align=3), BAD, ["align is 3"]),
    ("a problem's operation", lambda: fagen.supported(dtype="float16", d=64, op="sideways"), BAD, ["op is 'sideways'", "forward, backward, merge"]),
    ("a problem's type of gradients", lambda: fagen.supported(dtype="float16", d=64, op="backward", grad_dtype="int4"), BAD,
     ["grad_dtype is 'int4'"]),
    ("gradients of a forward", lambda: fagen.prepare(dtype="float16", d=64, grad_dtype="float32"), BAD, ["grad_dtype is 4", "op=forward"]),
    ("no problem", lambda: fagen.prepare("fp16,d=64"), BAD, ["problem is 'fp16,d=64'", "a fagen.Problem"]),
    ("two problems of two classes", lambda: fagen.prepare(dtype="float16", d=64, to=fagen.Problem(dtype="float16", d=128)), BAD, ["d"]),
    ("two positional arguments", lambda: fagen.explain(Q, K), BAD, ["2 positional arguments"]),
    ("a limit of tuning", lambda: fagen.tune(dtype="float16", d=64, limit=-2), BAD, ["limit is -2"]),
    ("what a miss does", lambda: fagen.Context(CHIP, on_miss="wait"), BAD, ["on_miss is 'wait'", '"compile", "nearest", "fail"']),
    ("a cache limit", lambda: fagen.Context(CHIP, cache_limit=-5), BAD, ["cache_limit is -5"]),
    ("a chip of no name", lambda: fagen.simulator("sm_90a").__enter__(), BAD, ["device is 'sm_90a'", "sim:sm_90a"]),
]

FQ, FK, FV = (x.astype(np.float32) for x in (Q, K, V))
OUT, LSE = half(4, 2, 8, 4, 64, dtype="float32"), half(5, 2, 4, 8, dtype="float32")


def backward(**change):
    """attention_backward of fp32 tensors, of which `change` replaces some, or adds options."""
    arguments = {**dict(grad_out=OUT, q=FQ, k=FK, v=FV, out=OUT, lse=LSE), **change}
    return lambda: fagen.attention_backward(**arguments)


def packed_backward(**change):
    options = dict(cu_seqlens_q=STARTS, cu_seqlens_k=STARTS, max_seqlen_q=12, max_seqlen_k=12)
    rows, keys = QP.astype(np.float32), KP.astype(np.float32)
    arguments = {**dict(grad_out=rows, q=rows, k=keys, v=keys, out=rows, lse=half(5, 4, 20, dtype="float32")), **options, **change}
    return lambda: fagen.varlen_attention_backward(**arguments)


BACKWARD = [
    ("a gradient that is a list", backward(grad_out=[1]), BAD, ["grad_out is a builtins.list"]),
    ("a gradient of another shape", backward(grad_out=OUT[:1]), BAD, ["grad_out.shape is (1, 8, 4, 64)", "(2, 8, 4, 64), that of out"]),
    ("a gradient of another type", backward(grad_out=OUT.astype(np.float16)), BAD,
     ["grad_out.dtype is float16", "float32 (fp32), that of out"]),
    ("a gradient without unit stride", backward(grad_out=wide(OUT)), BAD, ["grad_out.strides", "unit stride on the last"]),
    ("out without lse", backward(lse=None), BAD, ["lse is a builtins.NoneType"]),
    ("out of another shape for gradients", backward(out=OUT[:, :5]), BAD, ["out.shape is (2, 5, 4, 64)"]),
    ("lse in another order", backward(lse=LSE.swapaxes(1, 2)), BAD, ["lse.shape is (2, 8, 4)", "(2, 4, 8)"]),
    ("a gradient of lse in another order", backward(lse=np.repeat(LSE, 2, -1)[..., ::2], grad_lse=LSE), BAD,
     ["grad_lse.strides", "those of lse"]),
    ("a gradient of lse of another shape", backward(grad_lse=LSE[:1]), BAD, ["grad_lse.shape is (1, 4, 8)", "that of lse"]),
    ("a gradient of lse of another type", backward(grad_lse=LSE.astype(np.float64)), BAD, ["grad_lse.dtype is float64"]),
    ("grad_q of another shape", backward(grad_q=np.empty_like(FK)), BAD, ["grad_q.shape is (2, 12, 2, 64)", "that of q"]),
    ("grad_k of another type", backward(grad_q=np.empty_like(FQ), grad_k=np.empty(K.shape, np.float16), grad_v=np.empty_like(FV)), BAD,
     ["grad_k.dtype is float16", "float32"]),
    ("grad_v that is read-only", backward(grad_v=frozen(FV)), BAD, ["grad_v is read-only"]),
    ("grad_q that is expanded", backward(grad_q=np.lib.stride_tricks.as_strided(np.empty_like(FQ), FQ.shape, (0, 1024, 256, 4))), BAD,
     ["grad_q.strides", "expanded"]),
    ("a type of gradients", backward(grad_dtype="float16"), BAD, ["grad_dtype is float16", "float32"]),
    ("a type beside gradients", backward(grad_q=np.empty_like(FQ), grad_dtype="float32"), BAD, ["grad_dtype is 'float32'", "None beside"]),
    ("gradients that are not there to add to", backward(accumulate=True), BAD, ["grad_q is None", "accumulate"]),
    ("determinism as a number", backward(deterministic=1), BAD, ["deterministic is 1", "True, False"]),
    ("determinism of a forward as a number", dense(deterministic=1), BAD, ["deterministic is 1"]),
    ("keys of another d for gradients", backward(k=FK[..., :32]), BAD, ["k.shape is (2, 12, 2, 32)"]),
    ("packed gradients of another shape", packed_backward(grad_out=QP[:5].astype(np.float32)), BAD, ["grad_out.shape is (5, 4, 64)"]),
    ("packed gradients without bounds", packed_backward(max_seqlen_k=None), BAD, ["max_seqlen_k is None"]),
    ("packed lse in another order", packed_backward(lse=half(5, 20, 4, dtype="float32")), BAD, ["lse.shape is (20, 4)", "(4, 20)"]),
]
ROWS = DENSE + VARLEN + OTHERS + BACKWARD


def test_there_are_enough():
    assert len(ROWS) >= 60 and len({row[0] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("call, kind, words", [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_refused(chip, call, kind, words):
    with pytest.raises(kind) as told:
        call()
    assert isinstance(told.value, fagen.FagenError)
    for word in [*words, "accepted"]:
        assert word in str(told.value), str(told.value)
