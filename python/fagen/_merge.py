"""fagen.merge: partial results of disjoint sets of keys become the result over all of them."""
from __future__ import annotations

import sys
from typing import Any, Optional, Tuple, Union

from . import _abi, _stage
from . import _shapes as shapes
from ._attention import context_of, dtype_name, output, stream_of
from ._dense import lse_strides
from ._plan import LSE, O, Plan, Plans, word
from ._view import View, empty_like, is_torch, packed, view
from ._context import Context
from .errors import invalid

PART, PART_LSE = word("part.ptr"), word("part_lse")
_plans = Plans()


def merge(parts: Any, lses: Any, *, return_lse: bool = False, out: Any = None, lse: Any = None, out_dtype: Optional[str] = None,
          stream: Optional[int] = None, device: Union[None, str, Context] = None) -> Any:
    """O = sum w_i O_i / sum w_i with w_i = exp(LSE_i - max LSE), and LSE = log sum exp(LSE_i): what attention over all keys gives.

    parts [n, b, s, h, d]: float16, bfloat16 or float32, any strides, unit stride on the last; from attention(..., out_dtype="float32",
        return_lse=True), one for each set of keys. n of 0 is legal: 0, and -inf.
    lses [n, b, h, s]: float32, packed but for n. A part whose LSE is -inf saw no key and adds nothing.
    out [b, s, h, d]: the parts' type, or "float32"; of float32 parts any. lse [b, h, s], float32.
    Lists, or tuples, of n parts and of their LSEs are copied into one tensor.
    Returns out, or (out, lse). Raises as fagen.attention does.
    """
    parts, lses = joined("parts", parts), joined("lses", lses)
    if is_torch(parts):
        from . import torch as of_torch
        return of_torch.merge(parts, lses, return_lse=return_lse, out=out, lse=lse, out_dtype=out_dtype, stream=stream, device=device)
    p, s = view("parts", parts, stream), view("lses", lses, stream)
    checked(p, s)
    at, ctx = stream_of([p, s], stream), context_of(p, device)
    out, result = merged_output(parts, p, out, out_dtype, stream)
    sums, lse_view = None, None
    if return_lse or lse is not None:
        sums = empty_like(parts, lse_shape(p), "float32", "lse") if lse is None else lse
        lse_view = view("lse", sums, stream)
    run(ctx, p, s, result, lse_view, at)
    return (out, sums) if return_lse else out


def joined(name: str, x: Any) -> Any:
    """A list of tensors as one tensor, with their number in front; else x. Raises InvalidArgument."""
    if not isinstance(x, (list, tuple)):
        return x
    if not x:
        raise invalid(name, repr(x), "a tensor, or a list of at least one")
    kind = type(x[0])
    if any(type(part) is not kind for part in x):
        raise invalid(name, f"a list of {', '.join(sorted({type(part).__name__ for part in x}))}", "tensors of one library")
    if not all(hasattr(part, "shape") and hasattr(part, "dtype") for part in x):
        raise invalid(name, f"a list of {kind.__module__}.{kind.__name__}", "tensors")
    shapes_of, types = {tuple(part.shape) for part in x}, {str(part.dtype) for part in x}
    if len(shapes_of) > 1 or len(types) > 1:
        raise invalid(name, f"a list of shapes {sorted(shapes_of)} and types {sorted(types)}", "one shape and one type")
    space = getattr(x[0], "__array_namespace__", None)
    library = sys.modules["torch"] if is_torch(x[0]) else space() if callable(space) else sys.modules.get(kind.__module__.split(".")[0])
    if not hasattr(library, "stack"):
        raise invalid(name, f"a list of {kind.__module__}.{kind.__name__}", "one tensor, with the parts along its first dimension")
    return library.stack(list(x))


def merged_output(parts: Any, p: View, out: Any, out_dtype: Optional[str], stream: Optional[int]) -> Tuple[Any, View]:
    if out is None and p.dtype == "float32" and out_dtype is not None:
        name = dtype_name(out_dtype)
        if name not in shapes.FLOATS:
            raise invalid("out_dtype", name, shapes.NAMES)
        out = empty_like(parts, p.shape[1:], name, "out")
        return out, view("out", out, stream)
    return output(parts, p, out, p.shape[1:], out_dtype, stream)


def lse_shape(parts: View) -> Tuple[int, ...]:
    _, b, s, h, _ = parts.shape
    return b, h, s


def checked(parts: View, lses: View) -> int:
    """Raises InvalidArgument; the fa_dtype of the parts."""
    shapes.rank("parts", parts, 5, "[n, b, s, h, d]")
    dtype = shapes.dtype_of("parts", parts.dtype)
    n, b, s, h, d = parts.shape
    shapes.head_dim("parts", d)
    shapes.rank("lses", lses, 4, "[n, b, h, s]")
    shapes.same("lses", lses, "dtype", "float32", "every LSE")
    shapes.same("lses", lses, "device", parts.device, "parts")
    shapes.equal("lses", lses, (n, b, h, s), "[n, b, h, s] with the n, b, s and h of parts")
    own = packed((n, b, h, s))
    if any(m > 1 and x != y for m, x, y in zip(lses.shape[1:], lses.strides[1:], own[1:])):
        raise invalid("lses.strides", lses.strides, f"(any, {own[1]}, {own[2]}, {own[3]}): packed but for n")
    for name, x in (("parts", parts), ("lses", lses)):
        if any(m > 1 and st == 0 for m, st in zip(x.shape, x.strides)):
            raise invalid(f"{name}.strides", x.strides, "no stride of 0")
    return dtype


def plan(context: Context, parts: View, lses: View, out: View, lse: Optional[View]) -> Plan:
    """The plan of a merge. Raises InvalidArgument, Unsupported."""
    dtype = checked(parts, lses)
    n, b, s, h, d = parts.shape
    shapes.rank("out", out, 4, "[b, s, h, d]")
    shapes.same("out", out, "device", parts.device, "parts")
    shapes.equal("out", out, (b, s, h, d), "[b, s, h, d] of parts")
    shapes.writable("out", out)
    o_dtype = shapes.dtype_of("out", out.dtype)
    if parts.dtype != "float32":
        shapes.output_dtype("out.dtype", out.dtype, parts.dtype)
    if lse is not None:
        shapes.same("lse", lse, "dtype", "float32", "every LSE")
        shapes.same("lse", lse, "device", parts.device, "parts")
        shapes.equal("lse", lse, (b, h, s), "[b, h, s]")
        shapes.writable("lse", lse)
    shapes.place(context, parts.device, "parts")
    args = _abi.Args(op=_abi.FA_MERGE, dtype=dtype, o_dtype=o_dtype, d=d, dv=d, b=b, hq=h, sq=s, parts=n)
    args.part, _ = shapes.tensor("parts", parts, parts.shape[1:], parts.strides[1:], False)
    args.o, _ = shapes.tensor("out", out, out.shape, out.strides, False)
    lse_strides(args, lse)
    args.part_stride = parts.strides[0] if n > 1 else 0
    args.part_lse_stride = lses.strides[0] if n > 1 else 0
    return Plan(context, args)


def run(ctx: Context, parts: View, lses: View, out: View, lse: Optional[View], stream: int) -> None:
    """Finds or makes the plan, and launches it."""
    tensors = [(PART, parts), (PART_LSE, lses), (O, out)] + ([(LSE, lse)] if lse is not None else [])
    key = (ctx, tuple((w, x.shape, x.strides, x.dtype, x.device, x.readonly) for w, x in tensors))
    found: Optional[Plan] = _plans.find(key)
    if found is None:
        found = _plans.keep(key, plan(ctx, parts, lses, out, lse))
    _stage.run(found, tensors, (O, LSE), stream)
