"""Types of fagen's functions: what comes back is of the library that q is of, alone or with LSE."""
from typing import Literal, Optional, Sequence, Tuple, TypedDict, TypeVar, Union, overload

from typing_extensions import Unpack

from . import flash_attn as flash_attn, flex as flex, sdpa as sdpa, wisdom as wisdom
from ._candidates import (Candidate as Candidate, Choice as Choice, candidates as candidates, choice as choice, pin as pin,
                          unpin as unpin)
from ._context import Context as Context, context as context, simulator as simulator, use as use
from ._library import version as version
from ._problem import (Problem as Problem, Support as Support, Tuning as Tuning, explain as explain, prepare as prepare,
                       problem_text as problem_text, supported as supported, tune as tune)
from ._score import Score as Score, score as score
from .errors import (CaptureError as CaptureError, CompileError as CompileError, DeviceError as DeviceError, FagenError as FagenError,
                     FileError as FileError, GradientUnsupported as GradientUnsupported, InternalError as InternalError,
                     Interrupted as Interrupted, InvalidArgument as InvalidArgument, NoDriver as NoDriver, NoFit as NoFit,
                     NoKernel as NoKernel, NoNvrtc as NoNvrtc, OutOfMemory as OutOfMemory, TemplateError as TemplateError,
                     Unsupported as Unsupported, VerificationFailed as VerificationFailed)

__version__: str

T = TypeVar("T")  # a tensor of any library
Window = Union[None, int, Tuple[Optional[int], Optional[int]]]

class _Place(TypedDict, total=False):
    stream: Optional[int]
    device: Union[None, str, Context]

class _Mask(_Place, total=False):
    causal: bool
    window: Window
    diagonal: Union[str, int]
    scale: object  # a number, or a tensor of one element
    deterministic: bool
    dropout_p: object  # likewise
    rng: object

class _Forward(_Mask, total=False):
    out: object
    lse: object
    out_dtype: object  # "float32", or a type of the library
    tf32: bool
    batch_invariant: bool
    softcap: float
    alibi_slopes: object
    attn_mask: object
    sinks: object
    score: Optional[Score]
    q_scale: object  # float32, of few bits
    k_scale: object
    v_scale: object
    o_scale: object
    cache_format: Optional[str]
    v_format: Optional[str]
    head_dim_v: Optional[int]  # V inside K: v is None

class _Lengths(TypedDict, total=False):
    cu_seqlens_q: object
    cu_seqlens_k: object
    seqlens_q: object
    seqlens_k: object
    max_seqlen_q: object  # an integer, or a tensor of one
    max_seqlen_k: object

class _Varlen(_Forward, _Lengths, total=False):
    page_table: object

class _Merge(_Place, total=False):
    out: object
    lse: object
    out_dtype: object

class _Backward(_Mask, total=False):
    grad_lse: object
    grad_q: object
    grad_k: object
    grad_v: object
    grad_dtype: object
    accumulate: bool

class _VarlenBackward(_Backward, _Lengths, total=False): ...

@overload
def attention(q: T, k: T, v: Optional[T], *, return_lse: Literal[False] = ..., **options: Unpack[_Forward]) -> T: ...
@overload
def attention(q: T, k: T, v: Optional[T], *, return_lse: Literal[True], **options: Unpack[_Forward]) -> Tuple[T, T]: ...
@overload
def attention(q: T, k: T, v: Optional[T], *, return_lse: bool, **options: Unpack[_Forward]) -> Union[T, Tuple[T, T]]: ...
@overload
def varlen_attention(q: T, k: T, v: Optional[T], *, return_lse: Literal[False] = ..., **options: Unpack[_Varlen]) -> T: ...
@overload
def varlen_attention(q: T, k: T, v: Optional[T], *, return_lse: Literal[True], **options: Unpack[_Varlen]) -> Tuple[T, T]: ...
@overload
def varlen_attention(q: T, k: T, v: Optional[T], *, return_lse: bool, **options: Unpack[_Varlen]) -> Union[T, Tuple[T, T]]: ...
def append(k: T, v: T, k_cache: T, v_cache: T, *, slots: Optional[T] = ..., page_table: Optional[T] = ..., seqlens_k: Optional[T] = ...,
           q: Optional[T] = ..., q_out: Optional[T] = ..., cos_sin: Optional[T] = ..., rotary_dim: Optional[int] = ...,
           rotary_style: str = ..., positions: Optional[T] = ..., hadamard_k: bool = ..., hadamard_v: bool = ...,
           cache_format: Optional[str] = ..., v_format: Optional[str] = ..., k_scale: Optional[T] = ..., v_scale: Optional[T] = ...,
           k_scale_out: Optional[T] = ..., v_scale_out: Optional[T] = ..., skipped: Optional[T] = ..., stream: Optional[int] = ...,
           device: Union[None, str, Context] = ...) -> Optional[T]: ...
@overload
def merge(parts: Union[T, Sequence[T]], lses: Union[T, Sequence[T]], *, return_lse: Literal[False] = ...,
          **options: Unpack[_Merge]) -> T: ...
@overload
def merge(parts: Union[T, Sequence[T]], lses: Union[T, Sequence[T]], *, return_lse: Literal[True],
          **options: Unpack[_Merge]) -> Tuple[T, T]: ...
@overload
def merge(parts: Union[T, Sequence[T]], lses: Union[T, Sequence[T]], *, return_lse: bool,
          **options: Unpack[_Merge]) -> Union[T, Tuple[T, T]]: ...
def attention_backward(grad_out: T, q: T, k: T, v: T, out: T, lse: T, **options: Unpack[_Backward]) -> Tuple[T, T, T]: ...
def varlen_attention_backward(grad_out: T, q: T, k: T, v: T, out: T, lse: T, **options: Unpack[_VarlenBackward]) -> Tuple[T, T, T]: ...
