"""fagen for JAX: fagen.attention leads here where q is an array, or a tracer, of JAX.

A custom call of XLA: on CUDA devices it launches on XLA's stream; on the CPU it runs on a simulated chip, which the caller names. It may
stand under jit, grad, vmap and shard_map, where each device computes its shard. A second derivative raises GradientUnsupported.
"""
from __future__ import annotations

import functools
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import jax
import numpy as np

from . import _dense, _jax_ffi
from . import _shapes as shapes
from ._attention import dtype_name
from ._context import Context, context, simulator_named
from ._dropout import probability
from ._mask import Mask, Window, mask_of, scale_of
from ._score import Score, values
from ._view import View, packed
from .errors import GradientUnsupported, InvalidArgument, Unsupported, invalid


def attention(q: jax.Array, k: jax.Array, v: jax.Array, *, causal: bool = False, window: Window = None,
              diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, return_lse: bool = False, out_dtype: Any = None,
              tf32: bool = False, deterministic: bool = False, batch_invariant: bool = False, dropout_p: float = 0.0,
              rng: Optional[jax.Array] = None, score: Optional[Score] = None, device: Union[None, str, Context] = None) -> Any:
    """fagen.attention for JAX: q [b, sq, hq, d], k [b, sk, hkv, d], v [b, sk, hkv, dv]; out [b, sq, hq, dv], or (out, lse [b, hq, sq]).

    Options are as there, and static: they are traced into the program. device: on the CPU, "sim:sm_90a" or "sim:sm_80", unless
    fagen.simulator() or FAGEN_DEVICE names the chip; else None. rng, with dropout_p: a key of jax.random, or uint32 [4], seed and offset,
    low halves first. Equal keys drop the same weights, on several devices and under vmap too. score: a program, whose tensors are traced,
    and whose numbers are static; no gradients beside it."""
    mask, factor = mask_of(causal, window, diagonal), scale_of(scale)
    p = probability(dropout_p)
    views = [_view(name, x) for name, x in (("q", q), ("k", k), ("v", v))]
    dtype = _dense.checked(*views)
    shapes.precision(dtype, tf32)
    shapes.flag("deterministic", deterministic)
    shapes.flag("batch_invariant", batch_invariant)
    if batch_invariant and p:
        raise InvalidArgument("batch_invariant is set beside dropout_p; accepted: one of them")
    name = views[0].dtype if out_dtype is None else dtype_name(np.dtype(out_dtype) if not isinstance(out_dtype, str) else out_dtype)
    shapes.output_dtype("out_dtype", name, views[0].dtype)
    bind(device)
    static = Static(mask, factor, name, tf32, deterministic, bool(return_lse), p, batch_invariant)
    if score is not None:
        given, own = _operands(score, q, k)
        return _scored((q, k, v, *((state(rng, p),) if p or rng is not None else ()), *given), static, own)
    if p or rng is not None:
        return _dropped(q, k, v, state(rng, p), static)
    return _call(q, k, v, static)


class Program(NamedTuple):
    """A score program as a call has it: for each operand whether it is a tensor, extents and strides, and its number."""
    text: str
    layout: Tuple[int, ...]
    scalars: Tuple[float, ...]


def _operands(score: Score, q: jax.Array, k: jax.Array) -> Tuple[List[jax.Array], Program]:
    """The tensors of a program, in the order of its text. Raises InvalidArgument."""
    if not isinstance(score, Score):
        raise invalid("score", repr(score), "what fagen.score() made, or None")
    made = score.made(_jax_ffi.any_context())
    (b, sq, hq, _), (_, sk, hkv, _) = q.shape, k.shape
    views = {name: _view(name, x) if hasattr(x, "shape") and x.shape != () else x for name, x in score.operands.items()}
    lengths = {"b": b, "hq": hq, "hkv": hkv, "sq": sq, "sk": sk, "tq": b * sq, "tk": b * sk}
    rows, found = values(made, views, _view("q", q), lengths, None)
    layout = tuple(n for row, x in zip(rows, found) for n in (int(x is not None), *row.extent, *row.stride))
    tensors = [jax.numpy.asarray(score.operands[o.name]) for o in made.operands if o.shape]
    return tensors, Program(score.text, layout, tuple(row.scalar for row in rows[:len(found)]))


def state(rng: Any, dropout_p: float) -> jax.Array:
    """Seed and offset as uint32 [4]. Raises InvalidArgument."""
    if not dropout_p:
        raise InvalidArgument("rng is set and dropout_p is 0; accepted: both, or neither")
    if rng is None:
        raise invalid("rng", None, "a key of jax.random, or uint32 [4], with dropout_p")
    if not jax.dtypes.issubdtype(rng.dtype, jax.dtypes.prng_key) and (rng.dtype != np.uint32 or rng.shape not in ((2,), (4,))):
        raise invalid("rng", f"{rng.dtype} {tuple(rng.shape)}", "a key of jax.random, or uint32 [4]")
    return rng if rng.shape == (4,) else jax.random.bits(rng, (4,), "uint32")


def attention_backward(grad_out: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array, out: jax.Array, lse: jax.Array, *,
                       grad_lse: Optional[jax.Array] = None, causal: bool = False, window: Window = None,
                       diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, grad_dtype: Any = None,
                       deterministic: bool = False, dropout_p: float = 0.0, rng: Optional[jax.Array] = None,
                       device: Union[None, str, Context] = None) -> Any:
    """fagen.attention_backward for JAX. jax.grad of fagen.attention makes this call."""
    mask, factor = mask_of(causal, window, diagonal), scale_of(scale)
    given = {"q": q, "k": k, "v": v, "out": out, "lse": lse, "grad_out": grad_out, **({} if grad_lse is None else {"grad_lse": grad_lse})}
    views = {name: _view(name, x) for name, x in given.items()}
    of = views["q"]
    _dense.checked(of, views["k"], views["v"])
    _dense.results(of, views["v"], views["out"], views["lse"], False)
    shapes.equal("grad_out", views["grad_out"], views["out"].shape, "that of out")
    shapes.same("grad_out", views["grad_out"], "dtype", views["out"].dtype, "out")
    if grad_lse is not None:
        _dense.log_sums("grad_lse", views["grad_lse"], of, views["lse"].shape, "that of lse", False)
    shapes.flag("deterministic", deterministic)
    name = of.dtype if grad_dtype is None else dtype_name(np.dtype(grad_dtype) if not isinstance(grad_dtype, str) else grad_dtype)
    shapes.output_dtype("grad_dtype", name, of.dtype)
    bind(device)
    p = probability(dropout_p)
    operands = list(given.values())
    if p or rng is not None:
        operands.insert(6, state(rng, p))
    return _gradients(tuple(operands), Static(mask, factor, name, False, deterministic, False, p))


def bind(device: Union[None, str, Context] = None) -> None:
    """Makes the contexts that calls of this process run in, where there are none yet: of JAX's CUDA devices, and of the simulated chip that
    `device`, fagen.simulator() or FAGEN_DEVICE names. attention() does it; a program that was traced elsewhere needs it once."""
    if jax.default_backend() == "cpu":
        device = device or simulator_named()
        if device is None:
            raise InvalidArgument("device is None and JAX's backend is the CPU; accepted: device=\"sim:sm_90a\" (or \"sim:sm_80\"), which "
                                  "runs the kernels on a simulated chip")
        ctx = context(device)
        if not ctx.simulated:
            raise invalid("device", f'"{ctx.device}"', "\"sim:sm_90a\", \"sim:sm_80\": JAX's backend is the CPU")
        _jax_ffi.bind(_jax_ffi.HOST_SLOT, ctx)
        return
    if device is not None:
        raise invalid("device", repr(device), f"None: XLA says the device, one of the backend {jax.default_backend()}")
    _jax_ffi.bind_devices()


def _view(name: str, x: Any) -> View:
    if not isinstance(x, (jax.Array, np.ndarray)):
        raise invalid(name, f"a {type(x).__module__}.{type(x).__name__}", "a jax.Array, as q")
    return View(0, tuple(x.shape), packed(x.shape), np.dtype(x.dtype).name, "cpu", False, None)


class Static(NamedTuple):
    """What is traced into the program. dtype: of what is written, out or gradients."""
    mask: Mask
    scale: float
    dtype: str
    tf32: bool
    deterministic: bool
    want: bool = False  # LSE, too
    dropout: float = 0.0
    batch_invariant: bool = False


def _ffi(target: str, results: Sequence[Tuple[Tuple[int, ...], str]], operands: Sequence[Any], static: Static,
         program: Optional[Dict[str, Any]] = None, **more: Any) -> Any:
    varying = frozenset().union(*(getattr(jax.typeof(x), "vma", frozenset()) for x in operands))
    made = [_struct(shape, dtype, varying) for shape, dtype in results]
    numbers = {name: np.int32(n) for name, n in {**static.mask._asdict(), **more}.items()}
    numbers.update(program or {})
    if static.dropout or program:  # one by one under vmap, each by its own seed and with its own operands
        call = jax.ffi.ffi_call(target, made, vmap_method="sequential")
        return tuple(call(*operands, scale=np.float32(static.scale), dropout=np.float32(static.dropout), **numbers))
    return tuple(jax.ffi.ffi_call(target, made, vmap_method="broadcast_all")(*operands, scale=np.float32(static.scale), **numbers))


def _struct(shape: Tuple[int, ...], dtype: str, varying: frozenset) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, vma=varying) if varying else jax.ShapeDtypeStruct(shape, dtype)


def _launch(q: Any, k: Any, v: Any, static: Static, want: bool, *rest: Any, **program: Any) -> Any:
    """rest: rng, with dropout, then the tensors of a score program."""
    (b, sq, hq, _), dv = q.shape, v.shape[3]
    results = [((b, sq, hq, dv), static.dtype)] + ([((b, hq, sq), "float32")] if want else [])
    return _ffi(_jax_ffi.DROPOUT if static.dropout else _jax_ffi.FORWARD, results, (q, k, v, *rest), static, program, tf32=static.tf32,
                batch_invariant=static.batch_invariant)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _scored(operands: Tuple[Any, ...], static: Static, program: Program) -> Any:
    """(q, k, v, with dropout rng, the tensors of the program)."""
    own = {"program": program.text, "layout": np.array(program.layout, np.int64), "scalars": np.array(program.scalars, np.float64)}
    found = _launch(*operands[:3], static, static.want, *operands[3:], **own)
    return found if static.want else found[0]


def _no_gradient(*_: Any) -> Any:
    raise Unsupported("a gradient beside a score program was asked for; accepted by this version: jax.lax.stop_gradient of what it is "
                      "taken of")


_scored.defvjp(_no_gradient, _no_gradient)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _call(q: Any, k: Any, v: Any, static: Static) -> Any:
    found = _launch(q, k, v, static, static.want)
    return found if static.want else found[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _saved(q: Any, k: Any, v: Any, static: Static) -> Any:
    """(out, lse) for _gradients(), which have no derivative themselves: a derivative of this is a second one."""
    return _launch(q, k, v, static, True)


def _forward(q: Any, k: Any, v: Any, static: Static) -> Any:
    out, lse = _saved(q, k, v, static)
    return (out, lse) if static.want else out, (q, k, v, out, lse)


def _backward(static: Static, saved: Any, gradients: Any) -> Any:
    given = gradients if static.want else (gradients,)
    return _gradients((*saved, *given), static._replace(dtype=np.dtype(saved[0].dtype).name))


_call.defvjp(_forward, _backward)


# The same with rng, which has no derivative.

@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _dropped(q: Any, k: Any, v: Any, rng: Any, static: Static) -> Any:
    found = _launch(q, k, v, static, static.want, rng)
    return found if static.want else found[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _dropped_saved(q: Any, k: Any, v: Any, rng: Any, static: Static) -> Any:
    return _launch(q, k, v, static, True, rng)


def _dropped_forward(q: Any, k: Any, v: Any, rng: Any, static: Static) -> Any:
    out, lse = _dropped_saved(q, k, v, rng, static)
    return (out, lse) if static.want else out, (q, k, v, out, lse, rng)


def _dropped_backward(static: Static, saved: Any, gradients: Any) -> Any:
    *tensors, rng = saved
    given = gradients if static.want else (gradients,)
    operands = (*tensors, given[0], rng, *given[1:])
    return (*_gradients(operands, static._replace(dtype=np.dtype(saved[0].dtype).name)), np.zeros(rng.shape, jax.dtypes.float0))


_dropped.defvjp(_dropped_forward, _dropped_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _gradients(operands: Tuple[Any, ...], static: Static) -> Any:
    """(q, k, v, out, lse, grad_out), with dropout rng, and, where there is one, grad_lse."""
    target = _jax_ffi.DROPOUT_BACKWARD if static.dropout else _jax_ffi.BACKWARD
    return _ffi(target, [(x.shape, static.dtype) for x in operands[:3]], operands, static, deterministic=static.deterministic)


def _no_second(*_: Any) -> Any:
    raise GradientUnsupported("a second derivative of attention was asked for; accepted: a first one")


_saved.defvjp(_no_second, _no_second)
_dropped_saved.defvjp(_no_second, _no_second)
_gradients.defvjp(_no_second, _no_second)
