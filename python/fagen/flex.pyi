"""Types of fagen.flex: a tensor, (out, LSE), or (out, PyTorch's AuxOutput)."""
from typing import Callable, Dict, Literal, NamedTuple, Optional, Tuple, Union, overload

import torch

from ._context import Context
from ._score import Score

Tensor = torch.Tensor
Mod = Callable[..., Union[Tensor, bool, float]]
Device = Union[None, str, Context]
Options = Optional[Dict[str, object]]

class Aux(NamedTuple):
    lse: Optional[Tensor]
    max_scores: Optional[Tensor]

def program(*, score_mod: Optional[Mod] = ..., mask_mod: Optional[Mod] = ..., B: int = ..., H: int = ..., Q_LEN: int = ...,
            KV_LEN: int = ..., device: Union[str, torch.device] = ..., tanh: Literal["exact", "approximate"] = ...) -> Score: ...
@overload
def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Optional[Mod] = ..., block_mask: object = ...,
                   scale: Optional[float] = ..., enable_gqa: bool = ..., return_lse: Literal[False] = ..., kernel_options: Options = ...,
                   *, return_aux: None = ..., mask_mod: Optional[Mod] = ..., tanh: Literal["exact", "approximate"] = ...,
                   device: Device = ...) -> Tensor: ...
@overload
def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Optional[Mod] = ..., block_mask: object = ...,
                   scale: Optional[float] = ..., enable_gqa: bool = ..., *, return_lse: Literal[True], kernel_options: Options = ...,
                   return_aux: None = ..., mask_mod: Optional[Mod] = ..., tanh: Literal["exact", "approximate"] = ...,
                   device: Device = ...) -> Tuple[Tensor, Tensor]: ...
@overload
def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Optional[Mod] = ..., block_mask: object = ...,
                   scale: Optional[float] = ..., enable_gqa: bool = ..., return_lse: bool = ..., kernel_options: Options = ...,
                   *, return_aux: object, mask_mod: Optional[Mod] = ..., tanh: Literal["exact", "approximate"] = ...,
                   device: Device = ...) -> Union[Tensor, Tuple[Tensor, Aux]]: ...
