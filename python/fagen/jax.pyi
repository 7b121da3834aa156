"""Types of fagen.jax: arrays, alone or with LSE."""
from typing import Literal, Optional, Tuple, TypedDict, Union, overload

import jax
import numpy as np
from typing_extensions import Unpack

from ._context import Context
from ._score import Score

Array = jax.Array
Window = Union[None, int, Tuple[Optional[int], Optional[int]]]
DType = Union[None, str, type, "np.dtype[np.generic]"]

class _Mask(TypedDict, total=False):
    causal: bool
    window: Window
    diagonal: Union[str, int]
    scale: Optional[float]
    deterministic: bool
    dropout_p: float
    rng: Optional[Array]
    device: Union[None, str, Context]

class _Forward(_Mask, total=False):
    out_dtype: DType
    tf32: bool
    batch_invariant: bool
    score: Optional[Score]

class _Backward(_Mask, total=False):
    grad_lse: Optional[Array]
    grad_dtype: DType

@overload
def attention(q: Array, k: Array, v: Array, *, return_lse: Literal[False] = ..., **options: Unpack[_Forward]) -> Array: ...
@overload
def attention(q: Array, k: Array, v: Array, *, return_lse: Literal[True], **options: Unpack[_Forward]) -> Tuple[Array, Array]: ...
@overload
def attention(q: Array, k: Array, v: Array, *, return_lse: bool, **options: Unpack[_Forward]) -> Union[Array, Tuple[Array, Array]]: ...
def attention_backward(grad_out: Array, q: Array, k: Array, v: Array, out: Array, lse: Array,
                       **options: Unpack[_Backward]) -> Tuple[Array, Array, Array]: ...
def bind(device: Union[None, str, Context] = ...) -> None: ...
def state(rng: Array, dropout_p: float) -> Array: ...
