"""The library of operators: what PyTorch registers of one."""
from __future__ import annotations

from typing import Any, Callable, Optional

import torch

from .dispatch import ops

_library = torch.library.Library("fagen", "DEF")
_tags = tuple(getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "needs_exact_strides") if hasattr(torch.Tag, name))


def define(name: str, arguments: str, results: str, kernel: Callable[..., Any], fake: Callable[..., Any], casts: bool,
           autograd: Optional[Callable[..., Any]] = None, vmap: Optional[Callable[..., Any]] = None) -> None:
    """casts: whether the operator follows autocast. vmap: its rule."""
    _library.define(f"{name}({arguments}) -> {results}", tags=_tags)
    for key in ("CUDA", "CPU"):
        _library.impl(name, kernel, key)
    torch.library.register_fake(f"fagen::{name}", fake, lib=_library)
    if autograd is not None:
        _library.impl(name, autograd, "Autograd")
    if vmap is not None:
        torch.library.register_vmap(f"fagen::{name}", vmap, lib=_library)
    if casts:
        for key, kind in (("AutocastCUDA", "cuda"), ("AutocastCPU", "cpu")):
            _library.impl(name, _autocast(name, kind), key)


def _autocast(name: str, device_type: str) -> Callable[..., Any]:
    """q, k and v in the type of autocast; all else as it is."""
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA if device_type == "cuda" else torch._C.DispatchKey.AutocastCPU)

    def cast(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):
            to = torch.get_autocast_dtype(device_type)
            low = [x.to(to) if x.dtype in (torch.float16, torch.bfloat16, torch.float32) else x for x in (q, k, v)]
            return getattr(ops, name).default(*low, *rest)
    return cast
