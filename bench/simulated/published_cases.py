"""The kernels that published.py runs: arguments, tiles, and what NumPy says they compute."""
import math

import numpy as np
import triton.language as tl

from simulated import published_kernels as kernels
from simulated.published_case import Addresses, Boxed, Case, Tensor, normal


def empty(dtype, *shape):
    return Tensor(None, dtype, shape)


def zeros(dtype, *shape):
    return Tensor(np.zeros(shape), dtype)


def whole(seed, high, dtype, *shape):
    return Tensor(np.random.default_rng(seed).integers(0, high, shape), dtype)


def ceil(a, b):
    return -(-a // b)


def vectors():
    n = 5000
    x, y, out = normal(1, n, dtype="fp32"), normal(2, n, dtype="fp32"), empty("fp32", n)
    yield Case("add", kernels.add, {"x": x, "y": y, "out": out, "n": n}, {"B": 1024}, (5,), [(out, x.values + y.values)], 1e-6)
    erf = np.vectorize(math.erf)
    for name, f in (("gelu_gate", lambda a, b: 0.5 * a * (1 + erf(a / math.sqrt(2))) * b), ("swiglu", lambda a, b: a / (1 + np.exp(-a)) * b)):
        for dtype in ("fp16", "bf16"):
            x, y, out = normal(1, n, dtype=dtype), normal(2, n, dtype=dtype), empty(dtype, n)
            yield Case("%s %s" % (name, dtype), getattr(kernels, name), {"x": x, "y": y, "out": out, "n": n}, {"B": 1024}, (5,), [(out, f(x.values, y.values))], 5e-3)
    x, out = Tensor(np.ones(n), "fp32"), empty("fp32", n)
    yield Case("dropout", kernels.dropout, {"x": x, "out": out, "n": n, "keep": 0.75, "seed": 42}, {"B": 1024}, (5,), [(out, np.where(philox(42, n) < 0.75, 1 / 0.75, 0))], 1e-6)
    heads, rows, d = 4, 9, 64
    x, angle, out = normal(3, rows * heads, d), np.random.default_rng(4).uniform(0, 6, (rows, d // 2)), empty("fp16", rows * heads, d)
    cosine, sine = Tensor(np.cos(angle), "fp32"), Tensor(np.sin(angle), "fp32")
    c, s, (a, b) = np.repeat(cosine.values, heads, 0), np.repeat(sine.values, heads, 0), np.split(x.values, 2, 1)
    yield Case("rotary", kernels.rotary, {"x": x, "cosine": cosine, "sine": sine, "out": out, "heads": heads}, {"D": d}, (rows * heads,), [(out, np.hstack([a * c - b * s, b * c + a * s]))],
               warps=1)
    x, out = normal(5, n, dtype="fp32"), empty("fp32", n)
    program = np.arange(n) // 512
    first, second = np.where(program % 2, 1 - program * 0.5, program * 0.5 + 1), np.where(program % 2, (program + 1) * 0.25 - 1, -1 - (program + 1) * 0.25)
    yield Case("called function", kernels.called, {"x": x, "out": out, "n": n}, {"B": 512}, (10,), [(out, x.values * first + second)], 1e-5)
    x, out = Tensor(np.random.default_rng(6).uniform(0.1, 9, n), "fp32"), empty("fp32", n)
    yield Case("assertion", kernels.asserted, {"x": x, "out": out, "n": n}, {"B": 512}, (10,), [(out, np.log(x.values))], 1e-5, debug=True)


def philox(seed, n):
    """Philox 4x32-10 with the counter (i, 0, 0, 0) and the key (seed, 0), the first word as a number from 0 to 1."""
    c = [np.arange(n, dtype=np.uint64)] + [np.zeros(n, np.uint64)] * 3
    k = [seed, 0]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), b & low, (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), a & low]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    v = c[0].astype(np.uint32).view(np.int32).astype(np.int64)
    return np.where(v < 0, -v - 1, v) * 4.6566127342e-10


def normalised(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rows():
    for dtype, n, cols, block, warps in (("fp32", 12, 781, 1024, 4), ("fp16", 9, 333, 512, 8), ("bf16", 9, 128, 128, 1)):
        x, out = normal(1, n, cols, dtype=dtype), empty(dtype, n, cols)
        yield Case("softmax %s %d" % (dtype, cols), kernels.softmax, {"x": x, "out": out, "rows": n, "cols": cols, "stride": cols}, {"B": block}, (5,), [(out, normalised(x.values))],
                   1e-5 if dtype == "fp32" else 5e-3, warps=warps)
    x, out = normal(2, 5, 1500, dtype="fp32", scale=4), empty("fp32", 5, 1500)
    yield Case("softmax in pieces", kernels.softmax_in_pieces, {"x": x, "out": out, "cols": 1500}, {"B": 512}, (5,), [(out, normalised(x.values))], 1e-5)
    for dtype, cols in (("fp16", 700), ("fp32", 512), ("bf16", 1000)):
        n = 7
        x, w, b = normal(3, n, cols, dtype=dtype), normal(4, cols, dtype="fp32"), normal(5, cols, dtype="fp32")
        out, means, scales = empty(dtype, n, cols), empty("fp32", n), empty("fp32", n)
        m, s = x.values.mean(1), 1 / np.sqrt(x.values.var(1) + 1e-5)
        yield Case("layernorm %s %d" % (dtype, cols), kernels.layernorm, {"x": x, "w": w, "b": b, "out": out, "means": means, "scales": scales, "cols": cols, "eps": 1e-5}, {"B": 256}, (n,),
                   [(out, (x.values - m[:, None]) * s[:, None] * w.values + b.values), (means, m), (scales, s)], 1e-5 if dtype == "fp32" else 5e-3)
    n, cols, groups = 10, 300, 3
    dy, x, w = normal(6, n, cols), normal(7, n, cols), normal(8, cols, dtype="fp32")
    m, s = x.values.mean(1, keepdims=True), 1 / np.sqrt(x.values.var(1, keepdims=True) + 1e-5)
    hat, wg = (x.values - m) * s, dy.values * w.values
    dx, dw, db = empty("fp16", n, cols), empty("fp32", groups, cols), empty("fp32", groups, cols)
    want = (wg - hat * (hat * wg).mean(1, keepdims=True) - wg.mean(1, keepdims=True)) * s
    gather = lambda v: np.stack([v[g::groups].sum(0) for g in range(groups)])
    yield Case("layernorm backward, locks", kernels.layernorm_backward, {"dy": dy, "x": x, "w": w, "means": Tensor(m[:, 0], "fp32"), "scales": Tensor(s[:, 0], "fp32"), "dx": dx, "dw": dw, "db": db,
               "locks": zeros("i32", 2 * groups), "cols": cols}, {"GROUPS": groups, "B": 512}, (n,), [(dx, want), (dw, gather(dy.values * hat)), (db, gather(dy.values))], 3e-3)
    x, w, out = normal(9, 6, 500), normal(10, 500), empty("fp16", 6, 500)
    yield Case("rmsnorm", kernels.rmsnorm, {"x": x, "w": w, "out": out, "cols": 500, "eps": 1e-6}, {"B": 512}, (6,), [(out, x.values / np.sqrt((x.values ** 2).mean(1, keepdims=True) + 1e-6) * w.values)])
    x, labels, losses, gradient = normal(11, 6, 900, dtype="fp32"), whole(12, 900, "i32", 6), empty("fp32", 6), empty("fp32", 6, 900)
    p, one = normalised(x.values), np.eye(900)[labels.values]
    yield Case("cross entropy", kernels.cross_entropy, {"logits": x, "labels": labels, "losses": losses, "gradient": gradient, "cols": 900}, {"B": 1024}, (6,),
               [(losses, -np.log((p * one).sum(1))), (gradient, p - one)], 1e-5)
    x, out = normal(13, 100, 70, dtype="fp32"), empty("fp32", 70)
    yield Case("column sums", kernels.column_sums, {"x": x, "out": out, "rows": 100, "cols": 70}, {"BR": 32, "BC": 32}, (3,), [(out, x.values.sum(0))], 1e-5)
    x, value, index = normal(14, 6, 300, dtype="fp32"), empty("fp32", 6), empty("i32", 6)
    yield Case("best of row", kernels.best_of_row, {"x": x, "value": value, "index": index, "cols": 300}, {"B": 512}, (6,), [(value, x.values.max(1)), (index, x.values.argmax(1).astype(np.int32))], 1e-6)
    x, out = whole(15, 50, "i32", 4, 600), empty("i32", 4, 600)
    yield Case("running sum", kernels.running_sum, {"x": x, "out": out, "cols": 600}, {"B": 1024}, (4,), [(out, np.cumsum(x.values, 1).astype(np.int32))])
    a, b, out = Tensor(np.random.default_rng(16).uniform(0.5, 1, (3, 256)), "fp32"), normal(17, 3, 256, dtype="fp32"), empty("fp32", 3, 256)
    h = np.zeros((3, 256))
    for t in range(256):
        h[:, t] = (a.values[:, t] * h[:, t - 1] if t else 0) + b.values[:, t]
    yield Case("recurrence", kernels.recurrence, {"a": a, "b": b, "out": out, "cols": 256}, {"B": 256}, (3,), [(out, h)], 1e-4)
    x, out = whole(18, 10000, "i32", 4, 256), empty("i32", 4, 256)
    yield Case("sort", kernels.sort_rows, {"x": x, "out": out}, {"B": 256}, (4,), [(out, np.sort(x.values, 1))])
    x, out = whole(19, 64, "i32", 3000), zeros("i32", 64)
    yield Case("histogram", kernels.histogram, {"x": x, "out": out, "n": 3000}, {"BINS": 64, "B": 1024}, (3,), [(out, np.bincount(x.values, minlength=64).astype(np.int32))])
    x, out = normal(20, 90, 75), empty("fp16", 75, 90)
    yield Case("transpose", kernels.transpose, {"x": x, "out": out, "rows": 90, "cols": 75}, {"B": 32}, (3, 3), [(out, x.values.T)], 0)
    table, at, out = normal(21, 100, 64), whole(22, 100, "i32", 20), empty("fp16", 20, 64)
    yield Case("embedding", kernels.embedding, {"table": table, "rows": at, "out": out}, {"D": 64}, (20,), [(out, table.values[at.values])], 0, warps=1)
    x, out, scales = normal(23, 5, 500, dtype="fp32"), empty("i8", 5, 500), empty("fp32", 5)
    s = np.maximum(np.abs(x.values).max(1), 1e-6) / 127
    yield Case("quantize rows", kernels.quantize_rows, {"x": x, "out": out, "scales": scales, "cols": 500}, {"B": 512}, (5,), [(scales, s)], 1e-6)


def products():
    within = {"fp16": 2e-3, "bf16": 8e-3, "fp32": 3e-3}

    def one(name, M, N, K, dtype, bm, bn, bk, warps=4, stages=3, tolerance=None, flip=False, leaky=False, out="fp16", **constants):
        a, b = normal(1, M, K, dtype=dtype), normal(2, *((N, K) if flip else (K, N)), dtype=dtype)
        c = empty(out, M, N)
        want = a.values @ (b.values.T if flip else b.values)
        if leaky:
            want = np.where(want > 0, want, 0.01 * want)
        args = {"a": a, "b": b, "c": c, "M": M, "N": N, "K": K, "sam": K, "sak": 1, "sbk": 1 if flip else N, "sbn": K if flip else 1}
        fixed = {k: args.pop(k) for k in ("sak", "sbk" if flip else "sbn")}
        return Case("matmul " + name, kernels.matmul, args, dict({"BM": bm, "BN": bn, "BK": bk, "GROUP": 4, "ACC": tl.float32, "PRECISION": "tf32", "LEAKY": leaky, "scn": 1}, **fixed, **constants),
                    (ceil(M, bm) * ceil(N, bn),), [(c, want)], tolerance or within[dtype], warps=warps, stages=stages)

    yield one("fp16 64x64x32", 128, 192, 96, "fp16", 64, 64, 32)
    yield one("fp16 ragged", 100, 137, 75, "fp16", 64, 64, 32)
    yield one("fp16 128x128x64, 8 warps", 128, 256, 128, "fp16", 128, 128, 64, warps=8)
    yield one("fp16 4 stages, leaky", 64, 128, 256, "fp16", 64, 64, 32, stages=4, leaky=True)
    yield one("fp16 transposed", 64, 128, 128, "fp16", 64, 64, 64, flip=True)
    yield one("fp16 1 stage", 64, 64, 64, "fp16", 32, 32, 32, stages=1, warps=2)
    yield one("bf16", 128, 128, 128, "bf16", 64, 128, 32, out="bf16")
    yield one("bf16 ragged", 70, 90, 110, "bf16", 32, 64, 32, out="fp32")
    yield one("tf32", 64, 128, 96, "fp32", 64, 64, 32, out="fp32")
    yield one("tf32 transposed", 64, 64, 64, "fp32", 64, 64, 32, out="fp32", flip=True)
    yield one("tf32 three times", 64, 64, 64, "fp32", 32, 64, 32, out="fp32", PRECISION="tf32x3", tolerance=1e-5)
    yield one("fp32 exact", 32, 64, 64, "fp32", 32, 32, 16, out="fp32", PRECISION="ieee", tolerance=1e-5)
    yield one("fp16 accumulators", 128, 128, 128, "fp16", 64, 64, 32, ACC=tl.float16, tolerance=1e-2)
    yield one("fp16 accumulators, transposed", 64, 128, 64, "fp16", 64, 128, 32, flip=True, ACC=tl.float16, tolerance=1e-2)

    M, N, K = 70, 100, 200
    a, b, c = normal(1, M, K), normal(2, K, N), zeros("fp32", M, N)
    yield Case("matmul split k", kernels.matmul_split, {"a": a, "b": b, "c": c, "M": M, "N": N, "K": K}, {"BM": 32, "BN": 64, "BK": 32, "SPLITS": 3}, (3, 2, 3), [(c, a.values @ b.values)])
    for dtype in ("fp16", "bf16"):
        M, N, K = 192, 160, 64
        a, b, c = normal(3, M, K, dtype=dtype), normal(4, K, N, dtype=dtype), empty(dtype, M, N)
        yield Case("matmul persistent " + dtype, kernels.matmul_persistent, {"a": a, "b": b, "c": c, "M": M, "N": N, "K": K}, {"BM": 64, "BN": 64, "BK": 32, "GROUP": 2}, (2,),
                   [(c, a.values @ b.values)], within[dtype])
    shapes = [(64, 64, 64), (48, 96, 32), (96, 33, 80)]
    mine = [(normal(10 + k, m, x), normal(20 + k, x, n), empty("fp16", m, n)) for k, (m, n, x) in enumerate(shapes)]
    yield Case("matmul grouped", kernels.matmul_many, {"pointers": Addresses([t for three in mine for t in three]), "sizes": Tensor(np.array(shapes), "i32"), "problems": 3},
               {"BM": 32, "BN": 32, "BK": 32}, (4,), [(c, a.values @ b.values) for a, b, c in mine])
    M, N, K = 64, 70, 64
    a, b, c = normal(5, 3, M, K), normal(6, 3, K, N), empty("fp16", 3, M, N)
    yield Case("matmul batched", kernels.matmul_batched, {"a": a, "b": b, "c": c, "M": M, "N": N, "K": K}, {"BM": 32, "BN": 64, "BK": 32}, (2, 2, 3), [(c, a.values @ b.values)])
    M, N, K = 64, 64, 128
    a, b, scales, c = normal(7, M, K), Tensor(np.random.default_rng(8).integers(-127, 128, (K, N)), "i8"), Tensor(np.random.default_rng(9).uniform(0.01, 0.02, N), "fp32"), empty("fp16", M, N)
    yield Case("matmul of int8 weights", kernels.matmul_bytes, {"a": a, "b": b, "scales": scales, "c": c, "M": M, "N": N, "K": K}, {"BM": 32, "BN": 64, "BK": 64}, (2, 1),
               [(c, a.values @ b.values * scales.values)])
    for M, N, K, bm, bn, bk, warps in ((128, 128, 128, 64, 64, 64, 4), (150, 200, 80, 128, 64, 32, 8)):
        a, b, c = normal(1, M, K), normal(2, K, N), empty("fp16", M, N)
        yield Case("matmul boxes %dx%dx%d" % (bm, bn, bk), kernels.matmul_boxes, {"a": Boxed(a, (bm, bk)), "b": Boxed(b, (bk, bn)), "c": Boxed(c, (bm, bn)), "M": M, "N": N, "K": K},
                   {"BM": bm, "BN": bn, "BK": bk}, (ceil(M, bm), ceil(N, bn)), [(c, a.values @ b.values)], archs=(90,), warps=warps)


def attend(q, k, v, scale, causal):
    s = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        sq, sk = s.shape[-2:]
        s = np.where(np.arange(sk)[None, :] <= np.arange(sq)[:, None] + sk - sq, s, -np.inf)
    high = s.max(-1, keepdims=True)
    e = np.exp(s - high)
    p = e / e.sum(-1, keepdims=True)
    return p @ v, (high + np.log(e.sum(-1, keepdims=True)))[..., 0], p


def attentions():
    for dtype, d, sq, sk, causal, bm, bn, warps, stages, group in (
            ("fp16", 64, 128, 128, False, 64, 64, 4, 3, 1), ("fp16", 64, 128, 128, True, 64, 64, 4, 3, 1), ("bf16", 64, 128, 128, True, 64, 32, 4, 2, 1),
            ("fp16", 128, 128, 128, True, 128, 64, 8, 2, 1), ("fp16", 32, 128, 192, False, 64, 64, 4, 4, 1), ("fp16", 64, 77, 113, False, 64, 32, 4, 3, 1),
            ("fp16", 64, 77, 113, True, 64, 32, 4, 2, 1), ("bf16", 128, 64, 200, False, 64, 64, 4, 2, 2), ("fp16", 64, 64, 128, False, 16, 64, 2, 2, 4), ("fp16", 16, 96, 96, True, 32, 32, 2, 2, 2)):
        b, h = 1, 4 if group > 1 else 2
        q, k, v = normal(1, b, h, sq, d, dtype=dtype), normal(2, b, h // group, sk, d, dtype=dtype), normal(3, b, h // group, sk, d, dtype=dtype)
        out, lse, scale = empty(dtype, b, h, sq, d), empty("fp32", b, h, sq), 1 / math.sqrt(d)
        o, l, _ = attend(q.values, np.repeat(k.values, group, 1), np.repeat(v.values, group, 1), scale, causal)
        yield Case("attention %s d%d %dx%d%s%s %dx%d" % (dtype, d, sq, sk, " causal" if causal else "", " gqa" if group > 1 else "", bm, bn), kernels.attention,
                   {"q": q, "k": k, "v": v, "out": out, "lse": lse, "sq": sq, "sk": sk, "heads": h, "shared_heads": h // group, "scale": scale}, {"D": d, "BM": bm, "BN": bn, "CAUSAL": causal},
                   (ceil(sq, bm), b * h), [(out, o), (lse, l)], 8e-3 if dtype == "bf16" else 3e-3, warps=warps, stages=stages)
    for d, s, bm, bn, warps in ((64, 128, 64, 64, 4), (128, 256, 128, 64, 8)):
        h, scale = 2, 1 / math.sqrt(d)
        q, k, v, out = normal(1, h * s, d), normal(2, h * s, d), normal(3, h * s, d), empty("fp16", h * s, d)
        o, _, _ = attend(*(t.values.reshape(h, s, d) for t in (q, k, v)), scale, False)
        yield Case("attention boxes d%d" % d, kernels.attention_boxes, {"q": Boxed(q, (bm, d)), "k": Boxed(k, (bn, d)), "v": Boxed(v, (bn, d)), "out": Boxed(out, (bm, d)), "s": s, "scale": scale},
                   {"D": d, "BM": bm, "BN": bn}, (s // bm, h), [(out, o.reshape(h * s, d))], 3e-3, archs=(90,), warps=warps, stages=2)
    for dtype, d, s, causal in (("fp16", 64, 128, False), ("fp16", 64, 128, True), ("bf16", 32, 128, True)):
        h, scale = 2, 1 / math.sqrt(d)
        q, k, v, do = (normal(n, h, s, d, dtype=dtype) for n in range(4))
        o, l, p = attend(q.values, k.values, v.values, scale, causal)
        o16, delta = Tensor(o, dtype), empty("fp32", h, s)
        name = "%s d%d%s" % (dtype, d, " causal" if causal else "")
        e = (o16.values * do.values).sum(-1)
        if not causal:
            yield Case("attention delta", kernels.attention_delta, {"o": o16, "do": do, "delta": delta}, {"D": d, "BM": 32}, (h * s // 32,), [(delta, e)], 1e-4)
        ds = p * (do.values @ np.swapaxes(v.values, 1, 2) - e[..., None]) * scale
        dq, dk, dv = (empty(dtype, h, s, d) for _ in range(3))
        common = {"q": q, "k": k, "v": v, "do": do, "lse": Tensor(l, "fp32"), "delta": Tensor(e, "fp32"), "s": s, "scale": scale}
        tiles = {"D": d, "BM": 32, "BN": 64, "CAUSAL": causal}
        yield Case("attention backward kv " + name, kernels.attention_backward_kv, dict(common, dk=dk, dv=dv), tiles, (s // 64, h),
                   [(dk, np.swapaxes(ds, 1, 2) @ q.values), (dv, np.swapaxes(p, 1, 2) @ do.values)], 1e-2, stages=2)
        yield Case("attention backward q " + name, kernels.attention_backward_q, dict(common, dq=dq), dict(tiles, BM=64, BN=32), (s // 64, h), [(dq, ds @ k.values)], 1e-2, stages=2)
    b, h, d, page, split, most = 3, 2, 64, 16, 64, 12
    lengths = np.array([150, 1, 64])
    rng = np.random.default_rng(5)
    pool = b * most
    k, v, q, order = normal(1, pool, page, h, d), normal(2, pool, page, h, d), normal(3, b, h, d), rng.permutation(pool).reshape(b, most)
    splits, scale = 4, 1 / math.sqrt(d)
    part, part_lse = np.zeros((b, h, splits, d)), np.full((b, h, splits), -np.inf)
    whole_o = np.zeros((b, h, d))
    for x in range(b):
        ks, vs = (t.values[order[x]].reshape(most * page, h, d) for t in (k, v))
        for y in range(h):
            whole_o[x, y] = attend(q.values[x, y][None], ks[:lengths[x], y], vs[:lengths[x], y], scale, False)[0][0]
            for z in range(splits):
                if z * split < lengths[x]:
                    cut = slice(z * split, min((z + 1) * split, lengths[x]))
                    o, l, _ = attend(q.values[x, y][None], ks[cut, y], vs[cut, y], scale, False)
                    part[x, y, z], part_lse[x, y, z] = o[0], l[0]
    parts, lses, out = empty("fp32", b, h, splits, d), empty("fp32", b, h, splits), empty("fp16", b, h, d)
    yield Case("decode, pages, splits", kernels.decode, {"q": q, "k": k, "v": v, "pages": Tensor(order, "i32"), "lengths": Tensor(lengths, "i32"), "part": parts, "part_lse": lses, "heads": h,
               "most_pages": most, "scale": scale}, {"D": d, "PAGE": page, "SPLIT": split}, (b * h, splits), [(parts, part), (lses, part_lse)], 1e-4)
    yield Case("merge of splits", kernels.merge, {"part": Tensor(part, "fp32"), "part_lse": Tensor(part_lse, "fp32"), "out": out}, {"SPLITS": splits, "D": d}, (b * h,), [(out, whole_o)], warps=1)


def cases():
    return [c for family in (vectors, rows, products, attentions) for c in family()]
