"""Types of fagen.torch: tensors, alone or with LSE."""
from typing import Literal, Optional, Tuple, TypedDict, Union, overload

import torch
from typing_extensions import Unpack

from ._context import Context

Tensor = torch.Tensor
Window = Union[None, int, Tuple[Optional[int], Optional[int]]]

ops: object  # torch.ops.fagen

class _Place(TypedDict, total=False):
    device: Union[None, str, Context]

class _Mask(_Place, total=False):
    causal: bool
    window: Window
    diagonal: Union[str, int]
    scale: Union[None, float, Tensor]
    deterministic: bool
    dropout_p: float
    rng: Optional[Tensor]

class _Forward(_Mask, total=False):
    out: Optional[Tensor]
    lse: Optional[Tensor]
    out_dtype: Union[None, str, torch.dtype]
    tf32: bool
    batch_invariant: bool
    stream: None

class _Lengths(TypedDict, total=False):
    cu_seqlens_q: Optional[Tensor]
    cu_seqlens_k: Optional[Tensor]
    seqlens_q: Optional[Tensor]
    seqlens_k: Optional[Tensor]
    max_seqlen_q: Union[None, int, Tensor]
    max_seqlen_k: Union[None, int, Tensor]

class _Varlen(_Forward, _Lengths, total=False):
    page_table: Optional[Tensor]

class _Merge(_Place, total=False):
    out: Optional[Tensor]
    lse: Optional[Tensor]
    out_dtype: Union[None, str, torch.dtype]
    stream: None

class _Backward(_Mask, total=False):
    grad_lse: Optional[Tensor]
    grad_dtype: Union[None, str, torch.dtype]

class _VarlenBackward(_Backward, _Lengths, total=False): ...

@overload
def attention(q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[False] = ..., **options: Unpack[_Forward]) -> Tensor: ...
@overload
def attention(q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[True], **options: Unpack[_Forward]) -> Tuple[Tensor, Tensor]: ...
@overload
def attention(q: Tensor, k: Tensor, v: Tensor, *, return_lse: bool,
              **options: Unpack[_Forward]) -> Union[Tensor, Tuple[Tensor, Tensor]]: ...
@overload
def varlen_attention(q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[False] = ..., **options: Unpack[_Varlen]) -> Tensor: ...
@overload
def varlen_attention(q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[True],
                     **options: Unpack[_Varlen]) -> Tuple[Tensor, Tensor]: ...
@overload
def varlen_attention(q: Tensor, k: Tensor, v: Tensor, *, return_lse: bool,
                     **options: Unpack[_Varlen]) -> Union[Tensor, Tuple[Tensor, Tensor]]: ...
@overload
def merge(parts: Tensor, lses: Tensor, *, return_lse: Literal[False] = ..., **options: Unpack[_Merge]) -> Tensor: ...
@overload
def merge(parts: Tensor, lses: Tensor, *, return_lse: Literal[True], **options: Unpack[_Merge]) -> Tuple[Tensor, Tensor]: ...
@overload
def merge(parts: Tensor, lses: Tensor, *, return_lse: bool, **options: Unpack[_Merge]) -> Union[Tensor, Tuple[Tensor, Tensor]]: ...
def attention_backward(grad_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
                       **options: Unpack[_Backward]) -> Tuple[Tensor, Tensor, Tensor]: ...
def varlen_attention_backward(grad_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
                              **options: Unpack[_VarlenBackward]) -> Tuple[Tensor, Tensor, Tensor]: ...
