"""Types of fagen.flash_attn: a tensor, or (out, LSE, None) where LSE is asked for, (out, LSE) of a cache."""
from typing import Literal, Optional, Tuple, Union, overload

import torch

Tensor = torch.Tensor
Pair = Union[int, Tuple[int, int]]
Count = Union[int, Tensor]

@overload
def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                    window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                    return_attn_probs: Literal[False] = ...) -> Tensor: ...
@overload
def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                    window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ..., *,
                    return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor, None]: ...
@overload
def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                    window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                    return_attn_probs: bool = ...) -> Union[Tensor, Tuple[Tensor, Tensor, None]]: ...
@overload
def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                             window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                             return_attn_probs: Literal[False] = ...) -> Tensor: ...
@overload
def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                             window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                             *, return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor, None]: ...
@overload
def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                             window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                             return_attn_probs: bool = ...) -> Union[Tensor, Tuple[Tensor, Tensor, None]]: ...
@overload
def flash_attn_qkvpacked_func(qkv: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                              window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ...,
                              deterministic: bool = ..., return_attn_probs: Literal[False] = ...) -> Tensor: ...
@overload
def flash_attn_qkvpacked_func(qkv: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                              window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ...,
                              deterministic: bool = ..., *, return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor, None]: ...
@overload
def flash_attn_qkvpacked_func(qkv: Tensor, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                              window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ...,
                              deterministic: bool = ..., return_attn_probs: bool = ...) -> Union[Tensor, Tuple[Tensor, Tensor, None]]: ...
@overload
def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Optional[Tensor], max_seqlen_q: Count,
                           max_seqlen_k: Count, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                           window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                           return_attn_probs: Literal[False] = ..., block_table: Optional[Tensor] = ..., seqused_q: Optional[Tensor] = ...,
                           seqused_k: Optional[Tensor] = ...) -> Tensor: ...
@overload
def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Optional[Tensor], max_seqlen_q: Count,
                           max_seqlen_k: Count, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                           window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                           *, return_attn_probs: Literal[True], block_table: Optional[Tensor] = ..., seqused_q: Optional[Tensor] = ...,
                           seqused_k: Optional[Tensor] = ...) -> Tuple[Tensor, Tensor, None]: ...
@overload
def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Optional[Tensor], max_seqlen_q: Count,
                           max_seqlen_k: Count, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                           window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                           return_attn_probs: bool = ..., block_table: Optional[Tensor] = ..., seqused_q: Optional[Tensor] = ...,
                           seqused_k: Optional[Tensor] = ...) -> Union[Tensor, Tuple[Tensor, Tensor, None]]: ...
@overload
def flash_attn_varlen_kvpacked_func(q: Tensor, kv: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: Count,
                                    max_seqlen_k: Count, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                                    window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ...,
                                    deterministic: bool = ..., return_attn_probs: Literal[False] = ..., seqused_q: Optional[Tensor] = ...,
                                    seqused_k: Optional[Tensor] = ...) -> Tensor: ...
@overload
def flash_attn_varlen_kvpacked_func(q: Tensor, kv: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: Count,
                                    max_seqlen_k: Count, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                                    window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ...,
                                    deterministic: bool = ..., *, return_attn_probs: Literal[True], seqused_q: Optional[Tensor] = ...,
                                    seqused_k: Optional[Tensor] = ...) -> Tuple[Tensor, Tensor, None]: ...
@overload
def flash_attn_varlen_kvpacked_func(q: Tensor, kv: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: Count,
                                    max_seqlen_k: Count, dropout_p: float = ..., softmax_scale: Optional[float] = ..., causal: bool = ...,
                                    window_size: Pair = ..., softcap: float = ..., alibi_slopes: Optional[Tensor] = ...,
                                    deterministic: bool = ..., return_attn_probs: bool = ..., seqused_q: Optional[Tensor] = ...,
                                    seqused_k: Optional[Tensor] = ...) -> Union[Tensor, Tuple[Tensor, Tensor, None]]: ...
@overload
def flash_attn_varlen_qkvpacked_func(qkv: Tensor, cu_seqlens: Tensor, max_seqlen: Count, dropout_p: float = ...,
                                     softmax_scale: Optional[float] = ..., causal: bool = ..., window_size: Pair = ...,
                                     softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                                     return_attn_probs: Literal[False] = ..., seqused_q: Optional[Tensor] = ...,
                                     seqused_k: Optional[Tensor] = ...) -> Tensor: ...
@overload
def flash_attn_varlen_qkvpacked_func(qkv: Tensor, cu_seqlens: Tensor, max_seqlen: Count, dropout_p: float = ...,
                                     softmax_scale: Optional[float] = ..., causal: bool = ..., window_size: Pair = ...,
                                     softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ..., *,
                                     return_attn_probs: Literal[True], seqused_q: Optional[Tensor] = ...,
                                     seqused_k: Optional[Tensor] = ...) -> Tuple[Tensor, Tensor, None]: ...
@overload
def flash_attn_varlen_qkvpacked_func(qkv: Tensor, cu_seqlens: Tensor, max_seqlen: Count, dropout_p: float = ...,
                                     softmax_scale: Optional[float] = ..., causal: bool = ..., window_size: Pair = ...,
                                     softcap: float = ..., alibi_slopes: Optional[Tensor] = ..., deterministic: bool = ...,
                                     return_attn_probs: bool = ..., seqused_q: Optional[Tensor] = ...,
                                     seqused_k: Optional[Tensor] = ...) -> Union[Tensor, Tuple[Tensor, Tensor, None]]: ...
@overload
def flash_attn_with_kvcache(q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Optional[Tensor] = ..., v: Optional[Tensor] = ...,
                            rotary_cos: Optional[Tensor] = ..., rotary_sin: Optional[Tensor] = ...,
                            cache_seqlens: Union[None, int, Tensor] = ..., cache_batch_idx: Optional[Tensor] = ...,
                            cache_leftpad: Optional[Tensor] = ..., block_table: Optional[Tensor] = ...,
                            softmax_scale: Optional[float] = ..., causal: bool = ..., window_size: Pair = ..., softcap: float = ...,
                            rotary_interleaved: bool = ..., alibi_slopes: Optional[Tensor] = ..., num_splits: int = ...,
                            return_softmax_lse: Literal[False] = ..., *,
                            k_scale: Optional[Tensor] = ..., v_scale: Optional[Tensor] = ..., cache_format: Optional[str] = ...,
                            v_format: Optional[str] = ...) -> Tensor: ...
@overload
def flash_attn_with_kvcache(q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Optional[Tensor] = ..., v: Optional[Tensor] = ...,
                            rotary_cos: Optional[Tensor] = ..., rotary_sin: Optional[Tensor] = ...,
                            cache_seqlens: Union[None, int, Tensor] = ..., cache_batch_idx: Optional[Tensor] = ...,
                            cache_leftpad: Optional[Tensor] = ..., block_table: Optional[Tensor] = ...,
                            softmax_scale: Optional[float] = ..., causal: bool = ..., window_size: Pair = ..., softcap: float = ...,
                            rotary_interleaved: bool = ..., alibi_slopes: Optional[Tensor] = ..., num_splits: int = ..., *,
                            return_softmax_lse: Literal[True],
                            k_scale: Optional[Tensor] = ..., v_scale: Optional[Tensor] = ..., cache_format: Optional[str] = ...,
                            v_format: Optional[str] = ...) -> Tuple[Tensor, Tensor]: ...
@overload
def flash_attn_with_kvcache(q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Optional[Tensor] = ..., v: Optional[Tensor] = ...,
                            rotary_cos: Optional[Tensor] = ..., rotary_sin: Optional[Tensor] = ...,
                            cache_seqlens: Union[None, int, Tensor] = ..., cache_batch_idx: Optional[Tensor] = ...,
                            cache_leftpad: Optional[Tensor] = ..., block_table: Optional[Tensor] = ...,
                            softmax_scale: Optional[float] = ..., causal: bool = ..., window_size: Pair = ..., softcap: float = ...,
                            rotary_interleaved: bool = ..., alibi_slopes: Optional[Tensor] = ..., num_splits: int = ...,
                            return_softmax_lse: bool = ..., *,
                            k_scale: Optional[Tensor] = ..., v_scale: Optional[Tensor] = ..., cache_format: Optional[str] = ...,
                            v_format: Optional[str] = ...) -> Union[Tensor, Tuple[Tensor, Tensor]]: ...
