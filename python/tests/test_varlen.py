"""fagen.varlen_attention and fagen.merge with numpy, on the simulated chip."""
from __future__ import annotations

import threading

import numpy as np
import pytest
from conftest import CHIP, close, exact, half

import fagen

LENGTHS = np.array([5, 0, 17], np.int32)
STARTS = np.array([0, 5, 5, 22], np.int32)


def one(q, k, v, **mask):
    """Of one sequence [s, h, d]: (out, lse [h, s])."""
    out, lse = exact(q[None], k[None], v[None], **mask)
    return out[0], lse[0]


@pytest.mark.parametrize("causal", [False, True])
def test_packed(chip, causal):
    q, k, v = half(1, 22, 4, 32), half(2, 22, 2, 32), half(3, 22, 2, 32)
    out, lse = fagen.varlen_attention(q, k, v, cu_seqlens_q=STARTS, cu_seqlens_k=STARTS, max_seqlen_q=17, max_seqlen_k=17, causal=causal,
                                      return_lse=True)
    assert lse.shape == (4, 22)
    for a, b in zip(STARTS, STARTS[1:]):
        wanted, sums = one(q[a:b], k[a:b], v[a:b], right=0 if causal else -1)
        close(out[a:b], wanted)
        close(lse[:, a:b], sums, 1e-4)


def test_pages_and_their_table(chip):
    q, pages_k, pages_v = half(1, 3, 1, 4, 32), half(2, 8, 16, 2, 32), half(3, 8, 16, 2, 32)
    table = np.array([[3, 9999], [-1, 1], [2, 5]], np.int32)  # what no length reaches is no page
    out = fagen.varlen_attention(q, pages_k, pages_v, seqlens_k=LENGTHS, page_table=table, causal=True)
    for i, n in enumerate(LENGTHS):
        k, v = (np.concatenate([x[p] for p in table[i, :-(-n // 16)]] or [x[0, :0]])[:n] for x in (pages_k, pages_v))
        close(out[i], one(q[i], k, v, right=0)[0])


def test_pages_by_heads(chip):
    """[pages, h, page_size, d] in memory, transposed without a copy."""
    q, cache = half(1, 2, 1, 4, 32), half(2, 4, 2, 16, 32)
    k = cache.transpose(0, 2, 1, 3)
    out = fagen.varlen_attention(q, k, k, seqlens_k=np.array([16, 9], np.int32), page_table=np.array([[1], [3]], np.int32))
    close(out[1], one(q[1], k[3, :9], k[3, :9])[0])


def test_padded(chip):
    q, k, v = half(1, 3, 6, 4, 32), half(2, 3, 20, 2, 32), half(3, 3, 20, 2, 32)
    rows, out = np.array([6, 2, 0], np.int32), np.full((3, 6, 4, 32), 7, np.float16)
    fagen.varlen_attention(q, k, v, seqlens_q=rows, seqlens_k=LENGTHS, causal=True, out=out)
    for i, (m, n) in enumerate(zip(rows, LENGTHS)):
        close(out[i, :m], one(q[i, :m], k[i, :n], v[i, :n], right=0)[0])
        assert (out[i, m:] == 7).all(), "rows past a length are not written"


def test_a_workspace_is_locked_while_its_launch_is_put_on_the_stream(chip, monkeypatch):
    q, k = half(1, 8, 1, 4, 32), half(2, 8, 200, 2, 32)
    locked, launch = [], fagen._plan._launch

    def watched(*arguments):
        locked.append(chip._workspaces[0, 0].lock.locked())
        return launch(*arguments)

    monkeypatch.setattr(fagen._plan, "_launch", watched)
    fagen.varlen_attention(q, k, k, seqlens_k=np.full(8, 200, np.int32))
    assert locked == [True] and not chip._workspaces[0, 0].lock.locked()


def test_threads(chip):
    """Split kernels, which meet in the workspace of the one stream that a simulated chip has."""
    q, k = half(1, 8, 1, 4, 32), half(2, 8, 200, 2, 32)
    lengths = [np.full(8, n, np.int32) for n in (200, 130, 65, 190)]
    wanted = [fagen.varlen_attention(q, k, k, seqlens_k=n) for n in lengths]
    wrong = []

    def work(i):
        for _ in range(4):
            if not np.array_equal(fagen.varlen_attention(q, k, k, seqlens_k=lengths[i], device=CHIP), wanted[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_lengths_that_lie_are_refused_on_the_simulator(chip):
    q, k = half(1, 3, 1, 4, 32), half(2, 3, 20, 2, 32)
    with pytest.raises(fagen.InvalidArgument, match="seqlens_k.*21"):
        fagen.varlen_attention(q, k, k, seqlens_k=np.array([1, 21, 3], np.int32))


def test_merge_is_attention_over_all_keys(chip):
    q, k, v = half(1, 2, 8, 4, 32), half(2, 2, 20, 2, 32), half(3, 2, 20, 2, 32)
    parts = [fagen.attention(q, k[:, a:b], v[:, a:b], out_dtype="float32", return_lse=True) for a, b in ((0, 7), (7, 20), (20, 20))]
    out, lse = fagen.merge(np.stack([p[0] for p in parts]), np.stack([p[1] for p in parts]), out_dtype="float16", return_lse=True)
    wanted, sums = exact(q, k, v)
    assert out.dtype == np.float16
    close(out, wanted)
    close(lse, sums, 1e-4)
