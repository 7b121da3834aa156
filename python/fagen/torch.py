"""fagen for PyTorch: fagen.attention and its neighbours lead here where q is a tensor of PyTorch.

They launch on PyTorch's current stream, are traced whole by torch.compile and torch.export, follow autocast, and may be captured in CUDA
graphs once a first call has prepared their kernels. Tensors on the CPU need a simulated chip, which the caller names.
"""
from __future__ import annotations

from typing import Any, Optional, Tuple, Union

import torch

from . import _shapes as shapes
from ._attention import dtype_name
from ._context import Context
from ._dropout import probability
from ._mask import ALL, Mask, Window, mask_of, scale_of, text_of, words_of
from ._torch_ops import dense, dispatch, functions, no_gradient, scores, symbols, transforms  # defines torch.ops.fagen
from ._varlen import ARRAYS
from .errors import InvalidArgument, Unsupported, invalid

CAUSAL = mask_of(True, None, "bottom-right")
ops = dispatch.ops
_compiling = torch.compiler.is_compiling
_plain = dispatch.plain
_grad = torch.is_grad_enabled


def _mask(causal: bool, window: Window, diagonal: Union[str, int]) -> Mask:
    if window is None and diagonal == "bottom-right" and type(causal) is bool:
        return CAUSAL if causal else ALL
    return mask_of(causal, window, diagonal)


def _options(causal: bool, window: Window, diagonal: Union[str, int], out_dtype: Any, tf32: bool, device: Any, deterministic: bool,
             name: str = "out_dtype", invariant: bool = False) -> Tuple[Tuple[Any, ...], str]:
    """The numbers and the text of an operator's options. Raises InvalidArgument."""
    if tf32 is not False and tf32 is not True:
        shapes.precision(0, tf32)
    if deterministic is not False and deterministic is not True:
        shapes.flag("deterministic", deterministic)
    if invariant is not False and invariant is not True:
        shapes.flag("batch_invariant", invariant)
    dtype = None if out_dtype is None else dtype_name(out_dtype)
    if dtype is not None and dtype not in shapes.FLOATS:
        raise invalid(name, repr(out_dtype), f"{shapes.NAMES}, or None for q's")
    if device is not None and not isinstance(device, (str, Context)):
        raise invalid("device", repr(device), "a fagen.Context, its name, or None")
    where = "" if device is None else device if isinstance(device, str) else device.name
    if window is not None or not isinstance(diagonal, str):
        found = symbols.mask_of(causal, window, diagonal)
        if found is not None:
            return tuple(found[1]), text_of(found[0], dtype, tf32, where, deterministic, invariant)
    return (), words_of(_mask(causal, window, diagonal), dtype, tf32, where, deterministic, invariant)


def _tensors(**named: Any) -> None:
    """Raises for what is no tensor of rows and columns."""
    for name, x in named.items():
        if x is not None and not isinstance(x, torch.Tensor):
            raise invalid(name, f"a {type(x).__module__}.{type(x).__name__}", "a torch.Tensor, as q")
        if x is not None and x.is_nested:
            raise Unsupported(f"{name} is a nested tensor; accepted: fagen.varlen_attention of its values(), with cu_seqlens_q and "
                              "cu_seqlens_k of int32 offsets()")


def _outputs(out: torch.Tensor, lse: Optional[torch.Tensor], **inputs: Any) -> None:
    """Raises for what kernels cannot write to, and for a derivative that would be lost."""
    for name, x in (("out", out), ("lse", lse)):
        if x is not None and not _compiling() and x.is_neg():
            raise InvalidArgument(f"{name} is a lazy negative, whose sign is not in its memory; accepted: {name}.resolve_neg()")
    no_gradient.refuse(no_gradient.OUT, **inputs, out=out, lse=lse)


def _transformed() -> bool:
    """Whether torch.func.* or forward-mode differentiation is to see the call. A program that is compiled holds the operators."""
    return not _compiling() and dispatch.transformed()


def _cast(*inputs: torch.Tensor) -> Tuple[torch.Tensor, ...]:
    """q, k and v as autocast would have them, where a call does not go by the dispatcher."""
    kind = inputs[0].device.type
    if not (_transformed() and torch.is_autocast_enabled(kind)):
        return inputs
    to = torch.get_autocast_dtype(kind)
    return tuple(x.to(to) if x.dtype in (torch.float16, torch.bfloat16, torch.float32) else x for x in inputs)


def _scaled(q: torch.Tensor, scale: Any) -> Tuple[torch.Tensor, Any]:
    """q and the scale as a number; a tensor of it in a program that is compiled, which reads it when it runs. Where a derivative by the
    scale is wanted, q is a product with a factor of exactly 1 that has it: the sum over dq * q / scale is the sum over dS * S / scale.
    Elements that are NaN or infinite, as rows past a length may be, count as 0."""
    if scale is None:
        return q, 0.0
    if not isinstance(scale, torch.Tensor):
        return q, scale_of(scale)
    if scale.dim():
        raise invalid("scale.shape", tuple(scale.shape), "(): one number")
    try:
        factor = symbols.held(scale.detach()) if _compiling() else scale_of(scale.detach())
    except RuntimeError as e:
        raise Unsupported(f"scale has no one value here ({e}); accepted within torch.func.vmap: the same for all") from e
    if torch.is_grad_enabled() and scale.requires_grad or _transformed():
        finite = q.isfinite()
        q = torch.where(finite, (torch.where(finite, q, 0).float() * (scale / factor)).to(q.dtype), q)
    return q, factor


def _probability(dropout_p: Any) -> float:
    """Raises for one that wants a derivative, which dropout has none of."""
    if isinstance(dropout_p, torch.Tensor):
        no_gradient.refuse("no derivative by the probability of dropout is computed", dropout_p=dropout_p)
    return probability(dropout_p)


def _no_stream(stream: Any) -> None:
    if stream is not None:
        raise invalid("stream", repr(stream), "None with tensors of PyTorch: the current stream, as torch.cuda.stream() sets it")


def _given(out: Any, lse: Any, return_lse: bool, out_dtype: Any) -> None:
    if out_dtype is not None:
        raise invalid("out_dtype", repr(out_dtype), "None beside out, whose own type counts")
    if return_lse and lse is None:
        raise InvalidArgument("lse is None; accepted beside out with return_lse: a tensor to write to")


def _drop(dropout_p: Any, rng: Any, q: torch.Tensor, out: Any = None, lse: Any = None) -> Any:
    """What says which weights are dropped, and the probability; None where none are. Seed and offset are PyTorch's, where the caller has
    none: they are drawn on the device, so that a graph that was captured draws others with each replay."""
    if not dropout_p and rng is None:
        probability(dropout_p)
        return None
    p = probability(dropout_p)
    if not p:
        raise InvalidArgument("rng is set and dropout_p is 0; accepted: both, or neither")
    if out is not None or lse is not None:
        raise InvalidArgument("out or lse is set beside dropout_p; accepted with dropout: None, new tensors")
    _tensors(rng=rng)
    return (torch.randint(0, 2**63 - 1, (2,), dtype=torch.int64, device=q.device) if rng is None else rng), p


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, window: Window = None,
              diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, return_lse: bool = False,
              out: Optional[torch.Tensor] = None, lse: Optional[torch.Tensor] = None, out_dtype: Any = None, tf32: bool = False,
              deterministic: bool = False, batch_invariant: bool = False, dropout_p: float = 0.0, rng: Optional[torch.Tensor] = None,
              stream: Optional[int] = None, device: Union[None, str, Context] = None) -> Any:
    """fagen.attention for PyTorch. out, lse: written in place; both, or neither where return_lse asks for it."""
    if window is out_dtype is device is None and tf32 is deterministic is batch_invariant is False and type(causal) is bool \
            and diagonal == "bottom-right":
        numbers, options = (), "causal" if causal else ""  # type: Tuple[Any, ...], str
    else:
        numbers, options = _options(causal, window, diagonal, out_dtype, tf32, device, deterministic, invariant=batch_invariant)
    if scale is None:
        factor = 0.0
    elif type(scale) is float:
        factor = scale_of(scale)
    else:
        q, factor = _scaled(q, scale)
    if stream is not None:
        _no_stream(stream)
    if type(dropout_p) is not float:
        dropout_p = _probability(dropout_p)
    if dropout_p or rng is not None:
        _tensors(q=q, k=k, v=v)
        drop = _drop(dropout_p, rng, q, out, lse)
        dropped = transforms.AttentionDropout.apply if _transformed() else symbols.call("attention_dropout")
        found = dropped(*_cast(q, k, v), *drop, factor, numbers, options)
        return found if return_lse else found[0]
    if out is None and lse is None:
        if type(q) is type(k) is type(v) is torch.Tensor:
            if not _compiling() and _plain() and not (q.is_neg() or k.is_neg() or v.is_neg()):
                try:
                    if _grad() and (q.requires_grad or k.requires_grad or v.requires_grad):
                        found = functions.Attention.apply(q, k, v, factor, numbers, options)
                    else:
                        found = dense.call(q, k, v, None, None, return_lse, factor, options)
                except RuntimeError:  # of a nested tensor, which has no shape
                    _tensors(q=q, k=k, v=v)
                    raise
                return found if return_lse else found[0]
        else:
            _tensors(q=q, k=k, v=v)
        if _transformed():
            found = transforms.Attention.apply(*_cast(q, k, v), factor, numbers, options)
            return found if return_lse else found[0]
        return symbols.call("attention_lse" if return_lse else "attention")(q, k, v, factor, numbers, options)
    _tensors(q=q, k=k, v=v, out=out, lse=lse)
    if out is None:
        raise InvalidArgument("out is None; accepted beside lse: a tensor to write to")
    _given(out, lse, return_lse, out_dtype)
    _outputs(q=q, k=k, v=v, out=out, lse=lse)
    symbols.call("attention_out")(q.resolve_neg(), k.resolve_neg(), v.resolve_neg(), out, lse, factor, numbers, options)
    return (out, lse) if return_lse else out


def varlen_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: Optional[torch.Tensor] = None,
                     cu_seqlens_k: Optional[torch.Tensor] = None, seqlens_q: Optional[torch.Tensor] = None,
                     seqlens_k: Optional[torch.Tensor] = None, page_table: Optional[torch.Tensor] = None,
                     max_seqlen_q: Optional[int] = None, max_seqlen_k: Optional[int] = None, causal: bool = False, window: Window = None,
                     diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, return_lse: bool = False,
                     out: Optional[torch.Tensor] = None, lse: Optional[torch.Tensor] = None, out_dtype: Any = None, tf32: bool = False,
                     deterministic: bool = False, batch_invariant: bool = False, dropout_p: float = 0.0,
                     rng: Optional[torch.Tensor] = None, stream: Optional[int] = None, device: Union[None, str, Context] = None) -> Any:
    """fagen.varlen_attention for PyTorch."""
    numbers, options = _options(causal, window, diagonal, out_dtype, tf32, device, deterministic, invariant=batch_invariant)
    _tensors(q=q, k=k, v=v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, seqlens_q=seqlens_q, seqlens_k=seqlens_k,
             page_table=page_table, out=out, lse=lse)
    _no_stream(stream)
    (q, factor), dropout_p = _scaled(q, scale), _probability(dropout_p)
    arrays = (cu_seqlens_q, cu_seqlens_k, seqlens_q, seqlens_k, page_table)
    maxima = (_most("max_seqlen_q", max_seqlen_q, "q", q, cu_seqlens_q, None),
              _most("max_seqlen_k", max_seqlen_k, "k", k, cu_seqlens_k, page_table))
    if dropout_p or rng is not None:
        drop = _drop(dropout_p, rng, q, out, lse)
        dropped = transforms.varlen_dropout if _transformed() else symbols.call("varlen_attention_dropout")
        found = dropped(*_cast(q, k, v), *arrays, *maxima, *drop, factor, numbers, options)
        return found if return_lse else found[0]
    if out is None and lse is None:
        if _transformed():
            found = transforms.varlen(*_cast(q, k, v), *arrays, *maxima, factor, numbers, options)
            return found if return_lse else found[0]
        op = symbols.call("varlen_attention_lse" if return_lse else "varlen_attention")
        return op(q, k, v, *arrays, *maxima, factor, numbers, options)
    if out is None:
        raise InvalidArgument("out is None; accepted beside lse: a tensor to write to")
    _given(out, lse, return_lse, out_dtype)
    _outputs(q=q, k=k, v=v, out=out, lse=lse)
    symbols.call("varlen_attention_out")(q.resolve_neg(), k.resolve_neg(), v.resolve_neg(), *arrays, *maxima, out, lse, factor, numbers,
                                           options)
    return (out, lse) if return_lse else out


def sees() -> bool:
    """Whether a call with a score program goes by an operator: a program is traced, or a mode, autocast or a transform is to see it."""
    return _compiling() or not _plain()


def _operands(program: Any, drop: Any, out: Any, lse: Any, stream: Any) -> Tuple[Any, ...]:
    _no_stream(stream)
    if out is not None or lse is not None:
        raise Unsupported("out or lse is set beside a score program in a call that PyTorch traces, or under autocast; accepted there: None")
    return (*scores.arguments_of(program), *((None, 0.0) if drop is None else drop))


def attention_score(program: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, window: Window,
                    diagonal: Union[str, int], scale: Any, return_lse: bool, out: Any, lse: Any, out_dtype: Any, tf32: bool,
                    batch_invariant: bool, dropout_p: Any, rng: Any, stream: Any, device: Any) -> Any:
    """fagen.attention with a score program, as an operator."""
    _tensors(q=q, k=k, v=v)
    numbers, options = _options(causal, window, diagonal, out_dtype, tf32, device, False, invariant=batch_invariant)
    (q, factor), drop = _scaled(q, scale), _drop(_probability(dropout_p), rng, q)
    found = symbols.call("attention_score")(q, k, v, *_operands(program, drop, out, lse, stream), factor, numbers, options)
    return found if return_lse else found[0]


def varlen_attention_score(program: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, arrays: Any, max_seqlen_q: Any,
                           max_seqlen_k: Any, causal: bool, window: Window, diagonal: Union[str, int], scale: Any, return_lse: bool,
                           out: Any, lse: Any, out_dtype: Any, tf32: bool, batch_invariant: bool, dropout_p: Any, rng: Any, stream: Any,
                           device: Any) -> Any:
    """fagen.varlen_attention with a score program, as an operator. arrays: by ARRAYS."""
    _tensors(q=q, k=k, v=v, **arrays)
    numbers, options = _options(causal, window, diagonal, out_dtype, tf32, device, False, invariant=batch_invariant)
    (q, factor), drop = _scaled(q, scale), _drop(_probability(dropout_p), rng, q)
    maxima = (_most("max_seqlen_q", max_seqlen_q, "q", q, arrays["cu_seqlens_q"], None),
              _most("max_seqlen_k", max_seqlen_k, "k", k, arrays["cu_seqlens_k"], arrays["page_table"]))
    found = symbols.call("varlen_attention_score")(q, k, v, *(arrays[name] for name in ARRAYS), *maxima,
                                                   *_operands(program, drop, out, lse, stream), factor, numbers, options)
    return found if return_lse else found[0]


def _most(name: str, given: Any, side: str, x: torch.Tensor, starts: Any, table: Any) -> Any:
    """The most rows of a sequence: what the caller says, else what there is room for."""
    if given is not None:
        if isinstance(given, torch.Tensor) and not given.dim() and not given.is_floating_point() and given.dtype != torch.bool:
            given = given.item()
        if not isinstance(given, (int, torch.SymInt)) or isinstance(given, bool):
            raise invalid(name, repr(given), "an integer, or a tensor of one")
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


def attention_backward(grad_out: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, *,
                       grad_lse: Optional[torch.Tensor] = None, causal: bool = False, window: Window = None,
                       diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, grad_dtype: Any = None,
                       deterministic: bool = False, dropout_p: float = 0.0, rng: Optional[torch.Tensor] = None,
                       device: Union[None, str, Context] = None) -> Any:
    """fagen.attention_backward for PyTorch. Autograd of fagen.attention makes this call."""
    _tensors(grad_out=grad_out, q=q, k=k, v=v, out=out, lse=lse, grad_lse=grad_lse)
    numbers, options = _options(causal, window, diagonal, grad_dtype, False, device, deterministic, "grad_dtype")
    _, factor = _scaled(q, scale)
    if dropout_p or rng is not None:
        saved = _saved(dropout_p, rng, q)
        return symbols.call("attention_dropout_backward")(grad_out, q, k, v, out, lse, grad_lse, *saved, factor, numbers, options)
    return symbols.call("attention_backward")(grad_out, q, k, v, out, lse, grad_lse, factor, numbers, options)


def _saved(dropout_p: Any, rng: Any, q: torch.Tensor) -> Any:
    """Those of the forward."""
    if rng is None:
        raise InvalidArgument("rng is None; accepted with dropout_p: that of the forward, int64 [2]")
    return _drop(dropout_p, rng, q)


def varlen_attention_backward(grad_out: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
                              lse: torch.Tensor, *, grad_lse: Optional[torch.Tensor] = None, cu_seqlens_q: Optional[torch.Tensor] = None,
                              cu_seqlens_k: Optional[torch.Tensor] = None, seqlens_q: Optional[torch.Tensor] = None,
                              seqlens_k: Optional[torch.Tensor] = None, max_seqlen_q: Optional[int] = None,
                              max_seqlen_k: Optional[int] = None, causal: bool = False, window: Window = None,
                              diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, grad_dtype: Any = None,
                              deterministic: bool = False, dropout_p: float = 0.0, rng: Optional[torch.Tensor] = None,
                              device: Union[None, str, Context] = None) -> Any:
    """fagen.varlen_attention_backward for PyTorch. Autograd of fagen.varlen_attention makes this call."""
    arrays = (cu_seqlens_q, cu_seqlens_k, seqlens_q, seqlens_k)
    _tensors(grad_out=grad_out, q=q, k=k, v=v, out=out, lse=lse, grad_lse=grad_lse, **dict(zip(ARRAYS, arrays)))
    numbers, options = _options(causal, window, diagonal, grad_dtype, False, device, deterministic, "grad_dtype")
    maxima = (_most("max_seqlen_q", max_seqlen_q, "q", q, cu_seqlens_q, None),
              _most("max_seqlen_k", max_seqlen_k, "k", k, cu_seqlens_k, None))
    _, factor = _scaled(q, scale)
    if dropout_p or rng is not None:
        saved = _saved(dropout_p, rng, q)
        return symbols.call("varlen_attention_dropout_backward")(grad_out, q, k, v, out, lse, grad_lse, *arrays, *maxima, *saved, factor,
                                                                   numbers, options)
    return symbols.call("varlen_attention_backward")(grad_out, q, k, v, out, lse, grad_lse, *arrays, *maxima, factor, numbers, options)


def merge(parts: torch.Tensor, lses: torch.Tensor, *, return_lse: bool = False, out: Optional[torch.Tensor] = None,
          lse: Optional[torch.Tensor] = None, out_dtype: Any = None, stream: Optional[int] = None,
          device: Union[None, str, Context] = None) -> Any:
    """fagen.merge for PyTorch."""
    _tensors(parts=parts, lses=lses, out=out, lse=lse)
    no_gradient.refuse(no_gradient.MERGE, parts=parts, lses=lses)
    _no_stream(stream)
    _, options = _options(False, None, "bottom-right", out_dtype, False, device, False)
    if out is None and lse is None:
        op = ops.merge_lse.default if return_lse else ops.merge.default
        return op(parts, lses, options)
    if out is None:
        raise InvalidArgument("out is None; accepted beside lse: a tensor to write to")
    _given(out, lse, return_lse, out_dtype)
    _outputs(out=out, lse=lse)
    ops.merge_out.default(parts.resolve_neg(), lses.resolve_neg(), out, lse, options)
    return (out, lse) if return_lse else out


__all__ = ["attention", "attention_backward", "merge", "ops", "varlen_attention", "varlen_attention_backward"]
