#!/usr/bin/env python3
"""What a call costs on the host beside the C call: microseconds, with a driver that computes nothing.

    LD_LIBRARY_PATH=build/release/tests/fake_libcuda PYTHONPATH=build/release/python-test/site python3 python/tests/host_cost.py

By fa_launch() through ctypes, by __cuda_array_interface__ and, where PyTorch is there, by PyTorch: CPU tensors that pass for those of a
device, so that the dispatcher, the allocation of the output and all of fagen are what they are on a GPU. Best of several rounds.
"""
from __future__ import annotations

import time
from typing import Callable

import fagen
from fagen import _attention
from fagen._library import lib


def cost(call: Callable[[], object], calls: int = 5000, rounds: int = 8) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


class Array:
    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {"shape": (2, 1024, 8, 128), "typestr": "<f2", "data": (address, False), "strides": None,
                                         "version": 3, "stream": 7}


def by_interface() -> float:
    """Prints the C call's cost and that of an interface; returns the former."""
    q, k, v, o = (Array((i + 1) << 28) for i in range(4))
    fagen.attention(q, k, v, out=o)
    plan = next(iter(_attention._plans.kept.values()))
    handle, reference = plan.context.handle, plan.reference
    of_c = cost(lambda: lib.fa_launch(handle, reference, 7))
    print(f"fa_launch by ctypes                        {of_c:6.2f} us")
    print(f"attention, __cuda_array_interface__, out   {cost(lambda: fagen.attention(q, k, v, out=o)) - of_c:6.2f} us more")
    return of_c


def by_torch(of_c: float) -> None:
    import torch

    from fagen._torch_ops import dense
    view = dense.view
    dense.view = lambda name, x: view(name, x)._replace(device="cuda:0")
    torch.Tensor.get_device = lambda self: 0  # type: ignore[method-assign]
    torch._C._cuda_getDevice = lambda: 0
    torch._C._cuda_getCurrentRawStream = lambda index: 7
    torch.cuda.is_current_stream_capturing = lambda: False
    q, k, v = (torch.randn(2, 1024, 8, 128).half() for _ in range(3))
    operator = torch.ops.fagen.attention.default
    for name, call in (("attention, PyTorch", lambda: fagen.attention(q, k, v)),
                       ("attention, PyTorch, causal and a scale", lambda: fagen.attention(q, k, v, causal=True, scale=0.1)),
                       ("torch.ops.fagen.attention", lambda: operator(q, k, v, 0.0, (), ""))):
        print(f"{name:42s} {cost(call) - of_c:6.2f} us more")
    print(f"    of it torch.empty_like(q)              {cost(lambda: torch.empty_like(q)):6.2f} us")


if __name__ == "__main__":
    base = by_interface()
    try:
        by_torch(base)
    except ImportError:
        print("no PyTorch")
