"""fagen for PyTorch: fagen.attention and its neighbours lead here where q is a tensor of PyTorch.

They launch on PyTorch's current stream, are traced whole by torch.compile and torch.export, follow autocast, and may be captured in CUDA
graphs once a first call has prepared their kernels. Tensors on the CPU need a simulated chip, which the caller names.
"""
from __future__ import annotations

from typing import Any, Optional, Union

import torch

from . import _torch_ops  # defines torch.ops.fagen
from . import _shapes as shapes
from ._mask import ALL, Mask, Window, mask_of, scale_of
from ._context import Context
from .errors import InvalidArgument, Unsupported, invalid

CAUSAL = mask_of(True, None, "bottom-right")
ops = torch.ops.fagen
_attention = ops.attention.default


def _mask(causal: bool, window: Window, diagonal: Union[str, int]) -> Mask:
    if window is None and diagonal == "bottom-right" and type(causal) is bool:
        return CAUSAL if causal else ALL
    return mask_of(causal, window, diagonal)


def _dtype(out_dtype: Any) -> Optional[torch.dtype]:
    if out_dtype is None or isinstance(out_dtype, torch.dtype):
        return out_dtype
    from ._attention import dtype_name
    found = getattr(torch, dtype_name(out_dtype), None)
    if not isinstance(found, torch.dtype):
        raise invalid("out_dtype", repr(out_dtype), "\"float32\", torch.float32, or None for q's")
    return found


def _device(device: Union[None, str, Context]) -> str:
    return "" if device is None else device if isinstance(device, str) else device.name


def _tensors(**named: Any) -> None:
    for name, x in named.items():
        if x is not None and not isinstance(x, torch.Tensor):
            raise invalid(name, f"a {type(x).__module__}.{type(x).__name__}", "a torch.Tensor, as q")


def _no_stream(stream: Any) -> None:
    if stream is not None:
        raise invalid("stream", repr(stream), "None with tensors of PyTorch: the current stream, as torch.cuda.stream() sets it")


def _given(out: Any, lse: Any, return_lse: bool, out_dtype: Any) -> None:
    if out_dtype is not None:
        raise invalid("out_dtype", repr(out_dtype), "None beside out, whose own type counts")
    if return_lse and lse is None:
        raise InvalidArgument("lse is None; accepted beside out with return_lse: a tensor to write to")


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, window: Window = None,
              diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, return_lse: bool = False,
              out: Optional[torch.Tensor] = None, lse: Optional[torch.Tensor] = None, out_dtype: Any = None, tf32: bool = False,
              stream: None = None, device: Union[None, str, Context] = None) -> Any:
    """fagen.attention for PyTorch. out, lse: written in place; both, or neither where return_lse asks for it."""
    mask = _mask(causal, window, diagonal)
    factor = 0.0 if scale is None else scale_of(scale)
    if type(k) is not torch.Tensor or type(v) is not torch.Tensor:
        _tensors(k=k, v=v, out=out, lse=lse)
    if stream is not None:
        _no_stream(stream)
    if tf32 is not False and tf32 is not True:
        shapes.precision(0, tf32)
    where = "" if device is None else _device(device)
    if out is None and lse is None:
        dtype = None if out_dtype is None else _dtype(out_dtype)
        if return_lse:
            return ops.attention_lse.default(q, k, v, *mask, factor, dtype, tf32, where)
        return _attention(q, k, v, *mask, factor, dtype, tf32, where)
    _tensors(out=out, lse=lse)
    if out is None:
        raise InvalidArgument("out is None; accepted beside lse: a tensor to write to")
    _given(out, lse, return_lse, out_dtype)
    ops.attention_out.default(q, k, v, out, lse, *mask, factor, None, tf32, where)
    return (out, lse) if return_lse else out


def varlen_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: Optional[torch.Tensor] = None,
                     cu_seqlens_k: Optional[torch.Tensor] = None, seqlens_q: Optional[torch.Tensor] = None,
                     seqlens_k: Optional[torch.Tensor] = None, page_table: Optional[torch.Tensor] = None,
                     max_seqlen_q: Optional[int] = None, max_seqlen_k: Optional[int] = None, causal: bool = False, window: Window = None,
                     diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, return_lse: bool = False,
                     out: Optional[torch.Tensor] = None, lse: Optional[torch.Tensor] = None, out_dtype: Any = None, tf32: bool = False,
                     stream: None = None, device: Union[None, str, Context] = None) -> Any:
    """fagen.varlen_attention for PyTorch."""
    mask = _mask(causal, window, diagonal)
    factor = 0.0 if scale is None else scale_of(scale)
    _tensors(k=k, v=v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, seqlens_q=seqlens_q, seqlens_k=seqlens_k,
             page_table=page_table, out=out, lse=lse)
    _no_stream(stream)
    shapes.precision(0, tf32)
    arrays = (cu_seqlens_q, cu_seqlens_k, seqlens_q, seqlens_k, page_table)
    maxima = (_most("max_seqlen_q", max_seqlen_q, "q", q, cu_seqlens_q, None), _most("max_seqlen_k", max_seqlen_k, "k", k, cu_seqlens_k, page_table))
    where = _device(device)
    if out is None and lse is None:
        op = ops.varlen_attention_lse.default if return_lse else ops.varlen_attention.default
        return op(q, k, v, *arrays, *maxima, *mask, factor, _dtype(out_dtype), tf32, where)
    if out is None:
        raise InvalidArgument("out is None; accepted beside lse: a tensor to write to")
    _given(out, lse, return_lse, out_dtype)
    ops.varlen_attention_out.default(q, k, v, *arrays, *maxima, out, lse, *mask, factor, None, tf32, where)
    return (out, lse) if return_lse else out


def _most(name: str, given: Any, side: str, x: torch.Tensor, starts: Any, table: Any) -> Any:
    """The most rows of a sequence: what the caller says, else what there is room for."""
    if given is not None:
        if not isinstance(given, (int, torch.SymInt)) or isinstance(given, bool):
            raise invalid(name, repr(given), "an integer: a tensor would have to be copied from the device")
        return given
    if starts is not None:
        raise invalid(name, None, f"the most rows that any sequence has: cu_seqlens_{side} lies in device memory")
    if x.dim() != 4:
        raise invalid(f"{side}.shape", tuple(x.shape), f"4 dimensions without cu_seqlens_{side}")
    if table is None:
        return x.shape[1]
    if table.dim() != 2:
        raise invalid("page_table.shape", tuple(table.shape), "2 dimensions, [b, n]")
    return x.shape[1] * table.shape[1]


def merge(parts: torch.Tensor, lses: torch.Tensor, *, return_lse: bool = False, out: Optional[torch.Tensor] = None,
          lse: Optional[torch.Tensor] = None, out_dtype: Any = None, stream: None = None,
          device: Union[None, str, Context] = None) -> Any:
    """fagen.merge for PyTorch."""
    _tensors(parts=parts, lses=lses, out=out, lse=lse)
    _no_stream(stream)
    where = _device(device)
    if out is None and lse is None:
        op = ops.merge_lse.default if return_lse else ops.merge.default
        return op(parts, lses, _dtype(out_dtype), where)
    if out is None:
        raise InvalidArgument("out is None; accepted beside lse: a tensor to write to")
    _given(out, lse, return_lse, out_dtype)
    ops.merge_out.default(parts, lses, out, lse, None, where)
    return (out, lse) if return_lse else out


__all__ = ["Unsupported", "attention", "merge", "ops", "varlen_attention"]
