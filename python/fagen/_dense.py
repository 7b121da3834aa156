"""Attention of dense batches: from views to a plan."""
from __future__ import annotations

from typing import Optional, Tuple

from . import _abi
from . import _shapes as shapes
from ._mask import Mask
from ._plan import Plan
from ._view import View, packed
from ._context import Context
from .errors import invalid

LAYOUT_Q, LAYOUT_K, LAYOUT_V = "[b, sq, hq, d]", "[b, sk, hkv, d]", "[b, sk, hkv, dv]"


def checked(q: View, k: View, v: View) -> int:
    """Shapes, types and devices of the inputs; the fa_dtype. Raises InvalidArgument."""
    for name, x, layout in (("q", q, LAYOUT_Q), ("k", k, LAYOUT_K), ("v", v, LAYOUT_V)):
        shapes.rank(name, x, 4, layout)
    dtype = shapes.dtype_of("q", q.dtype)
    for name, x in (("k", k), ("v", v)):
        shapes.same(name, x, "dtype", q.dtype, "q")
        shapes.same(name, x, "device", q.device, "q")
    b, _, hq, d = q.shape
    shapes.head_dim("q", d)
    shapes.head_dim("v", v.shape[3])
    if k.shape[0] != b or k.shape[3] != d:
        raise invalid("k.shape", tuple(k.shape), f"({b}, sk, hkv, {d}), with the b and d of q")
    if v.shape[:3] != k.shape[:3]:
        raise invalid("v.shape", tuple(v.shape), f"({k.shape[0]}, {k.shape[1]}, {k.shape[2]}, dv), with the b, sk and hkv of k")
    shapes.heads(hq, k.shape[2], 2)
    return dtype


def lse_shape(q: View) -> Tuple[int, ...]:
    return q.shape[0], q.shape[2], q.shape[1]


def results(q: View, v: View, out: Optional[View], lse: Optional[View], written: bool) -> None:
    """out and LSE that the caller gave: to write to, or, of a backward, as the forward wrote them."""
    if out is not None:
        shapes.rank("out", out, 4, "[b, sq, hq, dv]")
        shapes.same("out", out, "device", q.device, "q")
        shapes.equal("out", out, (*q.shape[:3], v.shape[3]), "[b, sq, hq, dv]")
        shapes.output_dtype("out.dtype", out.dtype, q.dtype)
        if written:
            shapes.writable("out", out)
    if lse is not None:
        log_sums("lse", lse, q, lse_shape(q), "[b, hq, sq]", written)


def log_sums(name: str, lse: View, q: View, shape: Tuple[int, ...], layout: str, written: bool = True) -> None:
    """The tensor of LSE, or of its gradient: fp32, any strides."""
    shapes.same(name, lse, "dtype", "float32", "every LSE")
    shapes.same(name, lse, "device", q.device, "q")
    shapes.equal(name, lse, shape, layout)
    if written:
        shapes.writable(name, lse)


def plan(context: Context, q: View, k: View, v: View, out: View, lse: Optional[View], mask: Mask, scale: float, tf32: bool,
         dropout: float = 0.0, invariant: bool = False) -> Plan:
    """The plan of a dense call. Raises InvalidArgument, Unsupported, NoFit."""
    args = arguments(context, q, k, v, out, lse, mask, scale, tf32, True, dropout)
    args.flags |= _abi.FA_BATCH_INVARIANT if invariant else 0
    return Plan(context, args)


def lse_strides(args: _abi.Args, lse: Optional[View]) -> None:
    """Those of [b, hq, sq], or of [hq, total_q], where they are not packed."""
    if lse is None or 0 in lse.shape:
        return
    own = packed(lse.shape)
    steps = tuple(usual if n == 1 else s for n, s, usual in zip(lse.shape, lse.strides, own))
    if steps != own:
        args.lse_sh, args.lse_ss = steps[-2:]
        args.lse_sb = steps[0] if len(steps) == 3 else 0


def arguments(context: Context, q: View, k: View, v: View, out: View, lse: Optional[View], mask: Mask, scale: float, tf32: bool,
              written: bool = True, dropout: float = 0.0) -> _abi.Args:
    """fa_args of a dense forward call, addresses left out. written: False where out and lse are read. Raises InvalidArgument."""
    dtype = checked(q, k, v)
    results(q, v, out, lse, written)
    shapes.place(context, q.device, "q")
    b, sq, hq, d = q.shape
    args = _abi.Args(dtype=shapes.precision(dtype, tf32), o_dtype=shapes.output_dtype("out.dtype", out.dtype, q.dtype), d=d, dv=v.shape[3],
                     b=b, hq=hq, hkv=k.shape[2], sq=sq, sk=k.shape[1], mask=mask.mask, window_left=mask.left, window_right=mask.right,
                     diagonal=mask.diagonal, offset=mask.offset, scale=scale, dropout=dropout)
    expanded = False
    for name, field, x in (("q", "q", q), ("k", "k", k), ("v", "v", v), ("out", "o", out)):
        t, zero = shapes.tensor(name, x, x.shape, x.strides, field != "o" or not written)
        setattr(args, field, t)
        expanded |= zero
    args.flags = _abi.FA_BROADCAST if expanded else 0
    lse_strides(args, lse)
    return args
