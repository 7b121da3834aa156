"""What the tests share: a simulated chip, random tensors, exact attention in fp64.

Masks and dropout are written here a second time, by the words of fagen.h, and on purpose: these tests are there to doubt what the library
says of itself. All other scripts ask the library (gen/pairs.h)."""
from __future__ import annotations

import os
from typing import Any, Optional, Tuple

import numpy as np
import pytest

CHIP = "sim:sm_90a"  # one for the process
HERE = os.path.dirname(os.path.abspath(__file__))


def half(seed: int, *shape: int, dtype: str = "float16") -> np.ndarray:
    """Normal values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def seen(sq: int, sk: int, left: int = -1, right: int = -1, off: Optional[int] = None) -> np.ndarray:
    """Which keys each query sees, [sq, sk]; off None: bottom-right."""
    at = np.arange(sk)[None] - (np.arange(sq)[:, None] + (sk - sq if off is None else off))
    return ((at >= -left) | (left < 0)) & ((at <= right) | (right < 0))


def exact(q: Any, k: Any, v: Any, left: int = -1, right: int = -1, off: Optional[int] = None,
          scale: Optional[float] = None) -> Tuple[np.ndarray, np.ndarray]:
    """(out, lse) of [b, s, h, d] in fp64; off None: bottom-right."""
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    group, sq, sk = q.shape[2] // k.shape[2], q.shape[1], k.shape[1]
    k, v = k.repeat(group, 2), v.repeat(group, 2)
    s = np.einsum("bihd,bjhd->bhij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = np.where(seen(sq, sk, left, right, off), s, -np.inf)
    with np.errstate(all="ignore"):
        most = s.max(-1, keepdims=True, initial=-1e300)
        e = np.exp(s - most)
        z = e.sum(-1, keepdims=True)
        p = np.where(z > 0, e / z, 0)
        return np.einsum("bhij,bjhd->bihd", p, v), (np.log(z) + most)[..., 0]


def exact_gradients(grad_out: Any, q: Any, k: Any, v: Any, grad_lse: Any = None, **mask: Any) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(grad_q, grad_k, grad_v) of exact() in fp64, by the formulas of fagen.h. The mask is that of exact(), whose LSE has it."""
    grad_out, q, k, v = (np.asarray(x, dtype=np.float64) for x in (grad_out, q, k, v))
    hkv, scale = k.shape[2], q.shape[-1] ** -0.5 if mask.get("scale") is None else mask["scale"]
    group = q.shape[2] // hkv
    out, _ = exact(q, k, v, **mask)
    unit = np.broadcast_to(np.eye(k.shape[1])[None, :, None], (k.shape[0], k.shape[1], hkv, k.shape[1]))
    p = exact(q, k, unit, **mask)[0].transpose(0, 2, 1, 3)  # of unit vectors as values
    k, v = k.repeat(group, 2), v.repeat(group, 2)
    d = np.einsum("bihd,bihd->bhi", grad_out, out) - (0 if grad_lse is None else np.asarray(grad_lse, dtype=np.float64))
    ds = p * (np.einsum("bihd,bjhd->bhij", grad_out, v) - d[..., None]) * scale
    found = np.einsum("bhij,bjhd->bihd", ds, k), np.einsum("bhij,bihd->bjhd", ds, q), np.einsum("bhij,bihd->bjhd", p, grad_out)
    return (found[0], *(x.reshape(*x.shape[:2], hkv, group, -1).sum(3) for x in found[1:]))


def kept(rng: Any, p: float, b: int, hq: int, sq: int, sk: int) -> np.ndarray:
    """What each weight [b, hq, sq, sk] is multiplied by: 0, or 1 / (1 - p), p in 2^-15. By Philox4x32-7 (Random123), as fagen.h has it."""
    seed, offset = (int(x) % 2**64 for x in np.asarray(rng))
    i, j = np.arange(sq)[:, None], np.arange(sk)[None]
    head = np.arange(b * hq).reshape(b, hq, 1, 1)
    low = np.uint64(0xffffffff)
    parts = (offset % 2**32, head, i // 16 * 8 + i % 8, (j // 16 * 8 + j % 8) // 2)
    c = [np.broadcast_to(np.asarray(x, dtype=np.uint64), (b, hq, sq, sk)) for x in parts]
    keys = [seed % 2**32, (seed >> 32) ^ (offset >> 32)]
    for _ in range(7):
        x, y = c[0] * np.uint64(0xd2511f53), c[2] * np.uint64(0xcd9e8d57)
        first, second = (np.uint64(k) for k in keys)
        c = [(y >> np.uint64(32)) ^ c[1] ^ first, y & low, (x >> np.uint64(32)) ^ c[3] ^ second, x & low]
        keys = [(keys[0] + 0x9e3779b9) % 2**32, (keys[1] + 0xbb67ae85) % 2**32]
    word = np.where(i // 8 % 2 == 0, np.where(j // 8 % 2 == 0, c[0], c[1]), np.where(j // 8 % 2 == 0, c[2], c[3]))
    bits = (word >> (j % 2 * 16).astype(np.uint64)) & np.uint64(0x7fff)
    below = min(round(p * 2**15), 2**15 - 1)
    return np.where(bits >= np.uint64(below), 1 / (1 - below / 2**15), 0)


def close(have: Any, wanted: Any, most: float = 2e-3) -> None:
    have, wanted = np.asarray(have, dtype=np.float64), np.asarray(wanted)
    assert have.shape == wanted.shape
    same = have == wanted  # infinities
    error = np.abs(np.where(same, 0, have) - np.where(same, 0, wanted)).max(initial=0)
    assert error <= most, f"{error} apart; accepted: {most}"


@pytest.fixture(autouse=True)
def no_device_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAGEN_DEVICE", raising=False)


@pytest.fixture
def chip() -> Any:
    """Within the test, tensors in host memory run on the simulated chip."""
    import fagen
    with fagen.simulator(CHIP) as context:
        yield context
