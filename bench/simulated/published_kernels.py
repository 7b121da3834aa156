"""Triton kernels of the kinds that are in use, written for published.py: what such kernels do, in our own words.

Every kernel is a function of pointers, sizes and tile sizes; published.py names the cases.
"""
import triton
import triton.language as tl
from triton.language.extra import libdevice


# ---- element by element ----

@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def gelu_gate(x, y, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    a = tl.load(x + at, mask=inside).to(tl.float32)
    b = tl.load(y + at, mask=inside).to(tl.float32)
    exact = 0.5 * a * (1 + libdevice.erf(a * 0.7071067811865476))
    tl.store(out + at, (exact * b).to(out.dtype.element_ty), mask=inside)


@triton.jit
def swiglu(x, y, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    a = tl.load(x + at, mask=inside).to(tl.float32)
    b = tl.load(y + at, mask=inside).to(tl.float32)
    tl.store(out + at, (a * tl.sigmoid(a) * b).to(out.dtype.element_ty), mask=inside)


@triton.jit
def dropout(x, out, n, keep, seed, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    v = tl.load(x + at, mask=inside)
    tl.store(out + at, tl.where(tl.rand(seed, at) < keep, v / keep, 0.0), mask=inside)


@triton.jit
def rotary(x, cosine, sine, out, heads, D: tl.constexpr):
    row = tl.program_id(0)
    half: tl.constexpr = D // 2
    h = tl.arange(0, half)
    c = tl.load(cosine + row // heads * half + h)
    s = tl.load(sine + row // heads * half + h)
    a = tl.load(x + row * D + h).to(tl.float32)
    b = tl.load(x + row * D + half + h).to(tl.float32)
    tl.store(out + row * D + h, (a * c - b * s).to(out.dtype.element_ty))
    tl.store(out + row * D + half + h, (b * c + a * s).to(out.dtype.element_ty))


# ---- rows ----

@triton.jit
def softmax(x, out, rows, cols, stride, B: tl.constexpr):
    c = tl.arange(0, B)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * stride + c, mask=c < cols, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * stride + c, (e / tl.sum(e, axis=0)).to(out.dtype.element_ty), mask=c < cols)


@triton.jit
def softmax_in_pieces(x, out, cols, B: tl.constexpr):
    row = tl.program_id(0)
    high = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    for at in range(0, cols, B):
        c = at + tl.arange(0, B)
        v = tl.load(x + row * cols + c, mask=c < cols, other=-float("inf"))
        new = tl.maximum(high, v)
        total = total * tl.exp(tl.where(high == -float("inf"), -float("inf"), high - new)) + tl.exp(tl.where(v == -float("inf"), -float("inf"), v - new))
        high = new
    top = tl.max(high, axis=0)
    whole = tl.sum(total * tl.exp(high - top), axis=0)
    for at in range(0, cols, B):
        c = at + tl.arange(0, B)
        v = tl.load(x + row * cols + c, mask=c < cols)
        tl.store(out + row * cols + c, tl.exp(v - top) / whole, mask=c < cols)


@triton.jit
def layernorm(x, w, b, out, means, scales, cols, eps, B: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((B,), tl.float32)
    for at in range(0, cols, B):
        c = at + tl.arange(0, B)
        total += tl.load(x + row * cols + c, mask=c < cols, other=0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    spread = tl.zeros((B,), tl.float32)
    for at in range(0, cols, B):
        c = at + tl.arange(0, B)
        v = tl.load(x + row * cols + c, mask=c < cols, other=0).to(tl.float32)
        v = tl.where(c < cols, v - mean, 0.0)
        spread += v * v
    scale = 1 / tl.sqrt(tl.sum(spread, axis=0) / cols + eps)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    for at in range(0, cols, B):
        c = at + tl.arange(0, B)
        v = tl.load(x + row * cols + c, mask=c < cols, other=0).to(tl.float32)
        y = (v - mean) * scale * tl.load(w + c, mask=c < cols) + tl.load(b + c, mask=c < cols)
        tl.store(out + row * cols + c, y.to(out.dtype.element_ty), mask=c < cols)


@triton.jit
def layernorm_backward(dy, x, w, means, scales, dx, dw, db, locks, cols, GROUPS: tl.constexpr, B: tl.constexpr):
    """dx of a row; its share of dw and db goes to one of a few rows, each under a lock."""
    row = tl.program_id(0)
    c = tl.arange(0, B)
    inside = c < cols
    v = tl.load(x + row * cols + c, mask=inside, other=0).to(tl.float32)
    g = tl.load(dy + row * cols + c, mask=inside, other=0).to(tl.float32)
    weight = tl.load(w + c, mask=inside, other=0).to(tl.float32)
    scale = tl.load(scales + row)
    hat = tl.where(inside, (v - tl.load(means + row)) * scale, 0.0)
    wg = tl.where(inside, weight * g, 0.0)
    along = tl.sum(hat * wg, axis=0) / cols
    flat = tl.sum(wg, axis=0) / cols
    tl.store(dx + row * cols + c, ((wg - (hat * along + flat)) * scale).to(dx.dtype.element_ty), mask=inside)
    group = row % GROUPS
    lock = locks + group
    count = locks + GROUPS + group
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    first = tl.load(count) == 0
    part_w = g * hat
    part_b = g
    if first:
        tl.atomic_xchg(count, 1)
    else:
        part_w += tl.load(dw + group * cols + c, mask=inside)
        part_b += tl.load(db + group * cols + c, mask=inside)
    tl.store(dw + group * cols + c, part_w, mask=inside)
    tl.store(db + group * cols + c, part_b, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def rmsnorm(x, w, out, cols, eps, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + row * cols + c, mask=c < cols, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / cols + eps)
    tl.store(out + row * cols + c, (v * scale * tl.load(w + c, mask=c < cols)).to(out.dtype.element_ty), mask=c < cols)


@triton.jit
def cross_entropy(logits, labels, losses, gradient, cols, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(logits + row * cols + c, mask=c < cols, other=-float("inf")).to(tl.float32)
    label = tl.load(labels + row)
    high = tl.max(v, axis=0)
    e = tl.exp(v - high)
    whole = tl.sum(e, axis=0)
    tl.store(losses + row, tl.log(whole) + high - tl.load(logits + row * cols + label).to(tl.float32))
    tl.store(gradient + row * cols + c, e / whole - tl.where(c == label, 1.0, 0.0), mask=c < cols)


@triton.jit
def column_sums(x, out, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    total = tl.zeros((BR, BC), tl.float32)
    for at in range(0, rows, BR):
        r = at + tl.arange(0, BR)
        total += tl.load(x + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols), other=0)
    tl.store(out + c, tl.sum(total, axis=0), mask=c < cols)


@triton.jit
def best_of_row(x, value, index, cols, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + row * cols + c, mask=c < cols, other=-float("inf"))
    top, at = tl.max(v, axis=0, return_indices=True)
    tl.store(value + row, top)
    tl.store(index + row, at)


@triton.jit
def running_sum(x, out, cols, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(out + row * cols + c, tl.cumsum(tl.load(x + row * cols + c, mask=c < cols, other=0), axis=0), mask=c < cols)


@triton.jit
def _decay(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(a, b, out, cols, B: tl.constexpr):
    """h[t] = a[t] h[t-1] + b[t], as an associative scan."""
    row = tl.program_id(0)
    c = tl.arange(0, B)
    _, h = tl.associative_scan((tl.load(a + row * cols + c), tl.load(b + row * cols + c)), 0, _decay)
    tl.store(out + row * cols + c, h)


@triton.jit
def sort_rows(x, out, B: tl.constexpr):
    c = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + c, tl.sort(tl.load(x + c)))


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    counts = tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def transpose(x, out, rows, cols, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols), other=0)
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < cols) & (r[None, :] < rows))


@triton.jit
def embedding(table, rows, out, D: tl.constexpr):
    at = tl.program_id(0)
    d = tl.arange(0, D)
    tl.store(out + at * D + d, tl.load(table + tl.load(rows + at).to(tl.int64) * D + d))


@triton.jit
def quantize_rows(x, out, scales, cols, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + row * cols + c, mask=c < cols, other=0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), axis=0), 1e-6) / 127
    tl.store(scales + row, scale)
    tl.store(out + row * cols + c, libdevice.rint(v / scale).to(tl.int8), mask=c < cols)


# ---- products ----

@triton.jit
def _grouped(tile, m, n, GROUP: tl.constexpr):
    """The tile's place: groups of rows first, so that what they share stays in the cache."""
    wide = GROUP * n
    first = tile // wide * GROUP
    size = min(m - first, GROUP)
    return first + tile % wide % size, tile % wide // size


@triton.jit
def _tile(a, b, M, N, K, pm, pn, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr):
    rm = (pm * BM + tl.arange(0, BM)) % M
    rn = (pn * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    x = a + rm[:, None] * sam + rk[None, :] * sak
    y = b + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BM, BN), ACC)
    for k in range(0, K, BK):
        u = tl.load(x, mask=rk[None, :] < K - k, other=0.0)
        v = tl.load(y, mask=rk[:, None] < K - k, other=0.0)
        acc = tl.dot(u, v, acc, input_precision=PRECISION, out_dtype=ACC)
        x += BK * sak
        y += BK * sbk
    return acc


@triton.jit
def matmul(a, b, c, M, N, K, sam, sak, sbk, sbn, scn: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACC: tl.constexpr = tl.float32,
           PRECISION: tl.constexpr = "tf32", LEAKY: tl.constexpr = False):
    pm, pn = _grouped(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    acc = _tile(a, b, M, N, K, pm, pn, sam, sak, sbk, sbn, BM, BN, BK, ACC, PRECISION)
    if LEAKY:
        acc = tl.where(acc >= 0, acc, 0.01 * acc)
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    tl.store(c + m[:, None] * N + n[None, :] * scn, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_split(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLITS: tl.constexpr):
    """Every split of k adds its share with atomics."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.program_id(2) * BK, K, BK * SPLITS):
        rk = k + tl.arange(0, BK)
        u = tl.load(a + m[:, None] * K + rk[None, :], mask=(m[:, None] < M) & (rk[None, :] < K), other=0)
        v = tl.load(b + rk[:, None] * N + n[None, :], mask=(rk[:, None] < K) & (n[None, :] < N), other=0)
        acc += tl.dot(u, v)
    tl.atomic_add(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """A few programs deal the tiles among them; the loop over tiles and the loop over k are one pipeline."""
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        pm, pn = _grouped(tile, tiles_m, tiles_n, GROUP)
        m = pm * BM + tl.arange(0, BM)
        n = pn * BN + tl.arange(0, BN)
        rk = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            at = k * BK + rk
            u = tl.load(a + (m % M)[:, None] * K + at[None, :], mask=at[None, :] < K, other=0)
            v = tl.load(b + at[:, None] * N + (n % N)[None, :], mask=at[:, None] < K, other=0)
            acc = tl.dot(u, v, acc)
        tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_many(pointers, sizes, problems, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Grouped products: a table of addresses and one of sizes in device memory; m x n x k differs from problem to problem."""
    tile = tl.program_id(0)
    before = 0
    for p in range(problems):
        M = tl.load(sizes + p * 3)
        N = tl.load(sizes + p * 3 + 1)
        K = tl.load(sizes + p * 3 + 2)
        wide = tl.cdiv(N, BN)
        count = tl.cdiv(M, BM) * wide
        while tile >= before and tile < before + count:
            a = tl.load(pointers + p * 3).to(tl.pointer_type(tl.float16))
            b = tl.load(pointers + p * 3 + 1).to(tl.pointer_type(tl.float16))
            c = tl.load(pointers + p * 3 + 2).to(tl.pointer_type(tl.float16))
            m = (tile - before) // wide * BM + tl.arange(0, BM)
            n = (tile - before) % wide * BN + tl.arange(0, BN)
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                rk = k + tl.arange(0, BK)
                u = tl.load(a + m[:, None] * K + rk[None, :], mask=(m[:, None] < M) & (rk[None, :] < K), other=0)
                v = tl.load(b + rk[:, None] * N + n[None, :], mask=(rk[:, None] < K) & (n[None, :] < N), other=0)
                acc += tl.dot(u, v)
            tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))
            tile += tl.num_programs(0)
        before += count


@triton.jit
def matmul_batched(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    z = tl.program_id(2).to(tl.int64)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = _tile(a + z * M * K, b + z * K * N, M, N, K, tl.program_id(0), tl.program_id(1), K, 1, N, 1, BM, BN, BK, tl.float32, "tf32")
    tl.store(c + z * M * N + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_bytes(a, b, scales, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """fp16 times int8 with a scale per column."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        u = tl.load(a + m[:, None] * K + rk[None, :], mask=m[:, None] < M, other=0)
        v = tl.load(b + rk[:, None] * N + n[None, :], mask=n[None, :] < N, other=0)
        acc = tl.dot(u, v.to(tl.float16), acc)
    acc = acc * tl.load(scales + n, mask=n < N, other=0)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_boxes(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Operands and result through tensor maps."""
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([pm * BM, k]), b.load([k, pn * BN]), acc)
    c.store([pm * BM, pn * BN], acc.to(tl.float16))


# ---- attention ----

@triton.jit
def attention(q, k, v, out, lse, sq, sk, heads, shared_heads, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """[b, h, s, d] in rows; keys beyond sk are masked; causal ends at the bottom right corner."""
    pm = tl.program_id(0)
    bh = tl.program_id(1)
    kv = bh // heads * shared_heads + bh % heads // (heads // shared_heads)
    m = pm * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + (bh * sq + m)[:, None] * D + d[None, :], mask=m[:, None] < sq, other=0)
    high = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = sk
    if CAUSAL:
        end = min(sk, (pm + 1) * BM + sk - sq)
    for at in range(0, end, BN):
        n = at + tl.arange(0, BN)
        y = tl.load(k + (kv * sk + n)[None, :] * D + d[:, None], mask=n[None, :] < sk, other=0)
        s = tl.dot(x, y) * (scale * 1.4426950408889634)
        visible = n[None, :] < sk
        if CAUSAL:
            visible = visible & (n[None, :] <= m[:, None] + sk - sq)
        s = tl.where(visible, s, -float("inf"))
        new = tl.maximum(high, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(high - new)
        total = total * fade + tl.sum(p, 1)
        z = tl.load(v + (kv * sk + n)[:, None] * D + d[None, :], mask=n[:, None] < sk, other=0)
        acc = tl.dot(p.to(z.dtype), z, acc * fade[:, None])
        high = new
    tl.store(out + (bh * sq + m)[:, None] * D + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty), mask=m[:, None] < sq)
    tl.store(lse + bh * sq + m, (high + tl.log2(total)) * 0.6931471805599453, mask=m < sq)


@triton.jit
def attention_boxes(q, k, v, out, s, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The same through tensor maps, heads one after another as rows."""
    pm = tl.program_id(0)
    row = tl.program_id(1) * s
    x = q.load([row + pm * BM, 0])
    high = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for at in range(0, s, BN):
        y = tl.dot(x, k.load([row + at, 0]).T) * (scale * 1.4426950408889634)
        new = tl.maximum(high, tl.max(y, 1))
        p = tl.exp2(y - new[:, None])
        fade = tl.exp2(high - new)
        total = total * fade + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v.load([row + at, 0]), acc * fade[:, None])
        high = new
    out.store([row + pm * BM, 0], (acc / total[:, None]).to(tl.float16))


@triton.jit
def attention_delta(o, do, delta, D: tl.constexpr, BM: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    at = m[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(delta + m, tl.sum(tl.load(o + at).to(tl.float32) * tl.load(do + at).to(tl.float32), 1))


@triton.jit
def attention_backward_kv(q, k, v, do, lse, delta, dk, dv, s, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    pn = tl.program_id(0)
    base = tl.program_id(1) * s
    n = pn * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    y = tl.load(k + (base + n)[:, None] * D + d[None, :])
    z = tl.load(v + (base + n)[:, None] * D + d[None, :])
    gk = tl.zeros((BN, D), tl.float32)
    gv = tl.zeros((BN, D), tl.float32)
    first = 0
    if CAUSAL:
        first = pn * BN // BM * BM
    for at in range(first, s, BM):
        m = at + tl.arange(0, BM)
        x = tl.load(q + (base + m)[:, None] * D + d[None, :])
        g = tl.load(do + (base + m)[:, None] * D + d[None, :])
        p = tl.exp(tl.dot(y, tl.trans(x)) * scale - tl.load(lse + base + m)[None, :])
        if CAUSAL:
            p = tl.where(n[:, None] <= m[None, :], p, 0.0)
        gv = tl.dot(p.to(g.dtype), g, gv)
        ds = p * (tl.dot(z, tl.trans(g)) - tl.load(delta + base + m)[None, :]) * scale
        gk = tl.dot(ds.to(x.dtype), x, gk)
    tl.store(dk + (base + n)[:, None] * D + d[None, :], gk.to(dk.dtype.element_ty))
    tl.store(dv + (base + n)[:, None] * D + d[None, :], gv.to(dv.dtype.element_ty))


@triton.jit
def attention_backward_q(q, k, v, do, lse, delta, dq, s, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    pm = tl.program_id(0)
    base = tl.program_id(1) * s
    m = pm * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + (base + m)[:, None] * D + d[None, :])
    g = tl.load(do + (base + m)[:, None] * D + d[None, :])
    l = tl.load(lse + base + m)
    e = tl.load(delta + base + m)
    acc = tl.zeros((BM, D), tl.float32)
    end = s
    if CAUSAL:
        end = min(s, (pm + 1) * BM)
    for at in range(0, end, BN):
        n = at + tl.arange(0, BN)
        y = tl.load(k + (base + n)[:, None] * D + d[None, :])
        z = tl.load(v + (base + n)[:, None] * D + d[None, :])
        p = tl.exp(tl.dot(x, tl.trans(y)) * scale - l[:, None])
        if CAUSAL:
            p = tl.where(n[None, :] <= m[:, None], p, 0.0)
        ds = p * (tl.dot(g, tl.trans(z)) - e[:, None]) * scale
        acc = tl.dot(ds.to(y.dtype), y, acc)
    tl.store(dq + (base + m)[:, None] * D + d[None, :], acc.to(dq.dtype.element_ty))


@triton.jit
def decode(q, k, v, pages, lengths, part, part_lse, heads, most_pages, scale, D: tl.constexpr, PAGE: tl.constexpr, SPLIT: tl.constexpr):
    """One query per sequence, keys in pages, a share of them per program."""
    bh = tl.program_id(0)
    split = tl.program_id(1)
    b = bh // heads
    h = bh % heads
    length = tl.load(lengths + b)
    d = tl.arange(0, D)
    x = tl.load(q + bh * D + d).to(tl.float32)
    high = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    first = split * SPLIT
    for at in range(first, min(first + SPLIT, length), PAGE):
        page = tl.load(pages + b * most_pages + at // PAGE)
        n = tl.arange(0, PAGE)
        rows = (page * PAGE + n) * heads + h
        y = tl.load(k + rows[:, None] * D + d[None, :], mask=(at + n)[:, None] < length, other=0).to(tl.float32)
        s = tl.sum(y * x[None, :], 1) * scale
        s = tl.where(at + n < length, s, -float("inf"))
        new = tl.maximum(high, tl.max(s, 0))
        p = tl.exp(s - new)
        fade = tl.exp(high - new)
        total = total * fade + tl.sum(p, 0)
        z = tl.load(v + rows[:, None] * D + d[None, :], mask=(at + n)[:, None] < length, other=0).to(tl.float32)
        acc = acc * fade + tl.sum(z * p[:, None], 0)
        high = new
    at = bh * tl.num_programs(1) + split
    empty = first >= length
    tl.store(part + at * D + d, tl.where(empty, 0.0, acc / total))
    tl.store(part_lse + at, tl.where(empty, -float("inf"), high + tl.log(total)))


@triton.jit
def merge(part, part_lse, out, SPLITS: tl.constexpr, D: tl.constexpr):
    bh = tl.program_id(0)
    s = tl.arange(0, SPLITS)
    d = tl.arange(0, D)
    l = tl.load(part_lse + bh * SPLITS + s)
    w = tl.exp(l - tl.max(l, 0))
    o = tl.load(part + (bh * SPLITS + s)[:, None] * D + d[None, :])
    tl.store(out + bh * D + d, (tl.sum(o * w[:, None], 0) / tl.sum(w, 0)).to(out.dtype.element_ty))


# ---- calls and assertions ----

@triton.jit(noinline=True)
def _weight(x, a, b):
    if x % 2 == 0:
        return x * a + b
    return b - x * a


@triton.jit
def called(x, out, n, B: tl.constexpr):
    program = tl.program_id(0)
    at = program * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0)
    tl.store(out + at, v * _weight(program, 0.5, 1.0) + _weight(program + 1, 0.25, -1.0), mask=at < n)


@triton.jit
def asserted(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=1)
    tl.device_assert(v > 0, "every value is positive", mask=at < n)
    tl.store(out + at, tl.log(v), mask=at < n)
