"""fagen for JAX: fagen.attention leads here where q is an array, or a tracer, of JAX.

A custom call of XLA: on CUDA devices it launches on XLA's stream; on the CPU it runs on a simulated chip, which the caller names. It may
stand under jit, vmap and shard_map, where each device computes its shard. A gradient raises GradientUnsupported.
"""
from __future__ import annotations

import functools
from typing import Any, Optional, Tuple, Union

import jax
import numpy as np

from . import _dense, _jax_ffi
from . import _shapes as shapes
from ._attention import dtype_name
from ._context import Context, context, simulator_named
from ._mask import Mask, Window, mask_of, scale_of
from ._view import View, packed
from .errors import GradientUnsupported, InvalidArgument, invalid


def attention(q: jax.Array, k: jax.Array, v: jax.Array, *, causal: bool = False, window: Window = None,
              diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, return_lse: bool = False, out_dtype: Any = None,
              tf32: bool = False, device: Union[None, str, Context] = None) -> Any:
    """fagen.attention for JAX: q [b, sq, hq, d], k [b, sk, hkv, d], v [b, sk, hkv, dv]; out [b, sq, hq, dv], or (out, lse [b, hq, sq]).

    Options are as there, and static: they are traced into the program. device: on the CPU, "sim:sm_90a" or "sim:sm_80", unless
    fagen.simulator() or FAGEN_DEVICE names the chip; else None."""
    mask, factor = mask_of(causal, window, diagonal), scale_of(scale)
    views = [_view(name, x) for name, x in (("q", q), ("k", k), ("v", v))]
    dtype = _dense.checked(*views)
    shapes.precision(dtype, tf32)
    name = views[0].dtype if out_dtype is None else dtype_name(np.dtype(out_dtype) if not isinstance(out_dtype, str) else out_dtype)
    shapes.output_dtype("out_dtype", name, views[0].dtype)
    bind(device)
    return _call(q, k, v, mask, factor, bool(return_lse), name, tf32)


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


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4, 5, 6, 7))
def _call(q: Any, k: Any, v: Any, mask: Mask, scale: float, want: bool, out_dtype: str, tf32: bool) -> Any:
    (b, sq, hq, _), dv = q.shape, v.shape[3]
    varying = frozenset().union(*(getattr(jax.typeof(x), "vma", frozenset()) for x in (q, k, v)))
    results = [_struct((b, sq, hq, dv), out_dtype, varying)] + ([_struct((b, hq, sq), "float32", varying)] if want else [])
    call = jax.ffi.ffi_call(_jax_ffi.TARGET, results if want else results[0], vmap_method="broadcast_all")
    found = call(q, k, v, **{name: np.int32(n) for name, n in mask._asdict().items()}, scale=np.float32(scale), tf32=np.int32(tf32))
    return tuple(found) if want else found


def _struct(shape: Tuple[int, ...], dtype: str, varying: frozenset) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, vma=varying) if varying else jax.ShapeDtypeStruct(shape, dtype)


def _forward(*_: Any) -> Any:
    raise GradientUnsupported("a gradient of attention was asked for; accepted: none: this version of fagen computes no gradients "
                              "(jax.lax.stop_gradient cuts it off)")


def _backward(*_: Any) -> Any:
    raise AssertionError("not reached: the forward rule raises")


_call.defvjp(_forward, _backward)
