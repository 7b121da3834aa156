"""fagen.attention with numpy, and with what speaks DLPack alone, on the simulated chip."""
from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from conftest import CHIP, close, exact, half

import fagen

Q, K, V = half(1, 2, 24, 4, 64), half(2, 2, 33, 2, 64), half(3, 2, 33, 2, 64)


@pytest.mark.parametrize("options, mask", [
    ({}, {}),
    ({"causal": True}, {"right": 0}),
    ({"causal": True, "diagonal": "top-left"}, {"right": 0, "off": 0}),
    ({"causal": True, "diagonal": -3}, {"right": 0, "off": -3}),
    ({"window": (5, 2)}, {"left": 5, "right": 2}),
    ({"window": (5, None)}, {"left": 5}),
    ({"window": [5, 2], "causal": True}, {"left": 5, "right": 0}),
    ({"window": (-1, -1)}, {}),
    ({"window": (0, 0), "diagonal": 100}, {"left": 0, "right": 0, "off": 100}),
    ({"scale": 0.25}, {"scale": 0.25}),
    ({"scale": np.float32(0.25)}, {"scale": 0.25}),
])
def test_masks(chip, options, mask):
    out, lse = fagen.attention(Q, K, V, return_lse=True, **options)
    wanted, sums = exact(Q, K, V, **mask)
    assert out.dtype == np.float16 and lse.dtype == np.float32
    close(out, wanted)
    close(lse, sums, 1e-4)


def test_device_by_name_and_by_context():
    close(fagen.attention(Q, K, V, device=CHIP), exact(Q, K, V)[0])
    with fagen.Context(CHIP) as own:
        close(fagen.attention(Q, K, V, device=own), exact(Q, K, V)[0])
    with pytest.raises(fagen.InvalidArgument, match="closed"):
        fagen.attention(Q, K, V, device=own)


def test_device_by_environment(monkeypatch):
    monkeypatch.setenv("FAGEN_DEVICE", CHIP)
    close(fagen.attention(Q, K, V), exact(Q, K, V)[0])


def test_out_of_any_strides_is_written_and_nothing_else(chip):
    room = np.full((2, 24, 4, 96), 7, np.float16)
    out = room[..., :64]
    assert fagen.attention(Q, K, V, out=out) is out
    close(out, exact(Q, K, V)[0])
    assert (room[..., 64:] == 7).all()
    lse = np.zeros((2, 4, 24), np.float32)
    assert fagen.attention(Q, K, V, out=out, lse=lse, return_lse=True)[1] is lse
    close(lse, exact(Q, K, V)[1], 1e-4)


@pytest.mark.parametrize("change", [
    lambda x: x.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3),  # [b, h, s, d] in memory
    lambda x: np.concatenate([x, x], -1)[..., :64],
    lambda x: x[:, ::-1],
    lambda x: np.broadcast_to(x[:1], x.shape),
    lambda x: np.broadcast_to(x[:, :, :1], x.shape),
])
def test_inputs_of_any_strides(chip, change):
    q, k, v = change(Q), change(K), change(V)
    close(fagen.attention(q, k, v), exact(q, k, v)[0])


def test_empty_batches_and_rows_that_see_no_key(chip):
    assert fagen.attention(Q[:0], K[:0], V[:0]).shape == (0, 24, 4, 64)
    assert fagen.attention(Q[:, :0], K, V).shape == (2, 0, 4, 64)
    out, lse = fagen.attention(Q, K[:, :0], V[:, :0], return_lse=True)
    assert not out.any() and np.isneginf(lse).all()


def test_types(chip):
    f = [x.astype(np.float32) for x in (Q, K, V)]
    close(fagen.attention(*f), exact(*f)[0], 1e-5)
    out = fagen.attention(Q, K, V, out_dtype="float32")
    assert out.dtype == np.float32
    close(out, exact(Q, K, V)[0])


def test_bfloat16(chip):
    kinds = pytest.importorskip("ml_dtypes")
    q, k, v = (x.astype(kinds.bfloat16) for x in (Q, K, V))
    out = fagen.attention(q, k, v)
    assert out.dtype == kinds.bfloat16
    close(out.astype(np.float32), exact(q, k, v)[0], 2e-2)


class Foreign:
    """A tensor that has DLPack and nothing else."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_dlpack(chip):
    out = np.zeros_like(Q)
    fagen.attention(Foreign(Q), Foreign(K), Foreign(V), out=Foreign(out))
    close(out, exact(Q, K, V)[0])
    with pytest.raises(fagen.InvalidArgument, match="out is None; accepted for a test_attention.Foreign: a tensor to write to"):
        fagen.attention(Foreign(Q), Foreign(K), Foreign(V))


def test_threads(chip):
    wanted = fagen.attention(Q, K, V, causal=True)
    found = [None] * 8

    def work(i):
        for _ in range(3):
            found[i] = fagen.attention(Q, K, V, causal=True, device=CHIP)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(x, wanted) for x in found)


def test_a_child_of_fork_computes(chip):
    wanted = fagen.attention(Q, K, V)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if np.array_equal(fagen.attention(Q, K, V), wanted) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_plans_are_kept_by_what_they_depend_on(chip):
    """The same shapes with other strides, masks and types, in turns."""
    rows = K[:, ::-1]
    for _ in range(2):
        close(fagen.attention(Q, K, V), exact(Q, K, V)[0])
        close(fagen.attention(Q, rows, V), exact(Q, rows, V)[0])
        close(fagen.attention(Q, K, V, causal=True), exact(Q, K, V, right=0)[0])
        close(fagen.attention(Q, K, V, scale=0.5), exact(Q, K, V, scale=0.5)[0])
