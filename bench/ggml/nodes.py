"""Nodes of ggml's attention for its own test program, and times of that beside each other.

    python3 bench/ggml/nodes.py write prompt|more|one|few -o nodes.txt [--op 74]
    test-backend-ops perf -b CUDA0 --test-file nodes.txt > plain.txt
    GGML_BACKEND_PATH=lib/libfagen_ggml.so test-backend-ops perf -b CUDA0 --test-file nodes.txt > fagen.txt
    python3 bench/ggml/nodes.py compare plain.txt fagen.txt

K and V are tokens of a cache, whose heads lie side by side; Q is permuted, as llama.cpp gives it. --op: the number of FLASH_ATTN_EXT, which
is 74 in ggml 0.26. The program fills masks at random, so they are no bands.
"""
import argparse
import math
import re
import struct

TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "bf16": (30, 1, 2)}  # number, block, its bytes


def tensor(kind, ne, order):
    """Type, ne and nb of a tensor whose dimensions lie in this order behind the first."""
    number, block, size = TYPES[kind]
    nb, at = [size, 0, 0, 0], size * ne[0] // block
    for i in order:
        nb[i], at = at, at * ne[i]
    return [number, *ne, *nb]


def node(op, d, heads, kv_heads, queries, keys, kind="f16", mask=True, cap=0.0, sinks=False):
    sources = [tensor("f32", (d, queries, heads, 1), (2, 1, 3))] + [tensor(kind, (d, keys, kv_heads, 1), (2, 1, 3))] * 2
    sources += [tensor("f16", (keys, queries, 1, 1), (1, 2, 3))] if mask else []
    sources += [tensor("f32", (heads, 1, 1, 1), (1, 2, 3))] if sinks else []
    parameters = struct.unpack("<3i", struct.pack("<3f", d ** -0.5, 0.0, cap)) + (10,)
    name = f"d{d},{heads}/{kv_heads},{queries}x{keys},{kind}{'' if mask else ',none'}{',cap' if cap else ''}{',sinks' if sinks else ''}"
    row = [op, 0, d, heads, queries, 1, len(parameters), *parameters, len(sources), *(x for s in sources for x in s), name]
    return " ".join(map(str, row))


HEADS = ((64, 32, 8), (64, 64, 8), (128, 32, 8), (128, 64, 8), (256, 16, 4))
SETS = {
    "prompt": [(*h, 512, n) for h in HEADS for n in (512, 1024, 2048, 4096, 8192, 16384)] +
              [(*h, 512, 4096, k) for h in ((64, 32, 8), (128, 32, 8)) for k in ("bf16", "q8_0", "q4_0")] +
              [(40, 8, 8, 512, 4096), (72, 16, 16, 512, 4096), (80, 32, 32, 512, 4096), (96, 32, 32, 512, 4096), (112, 32, 8, 512, 4096)],
    "more": [(64, 32, 8, 512, 32768), (128, 32, 8, 512, 32768), (128, 32, 8, 512, 16384, "q8_0"), (128, 32, 8, 512, 16384, "q4_0"),
             (256, 16, 4, 512, 4096, "q8_0"), (256, 16, 4, 512, 4096, "f16", True, 50.0), (128, 32, 8, 512, 4096, "f16", True, 30.0),
             (64, 64, 8, 512, 4096, "f16", True, 0.0, True), (64, 32, 8, 2048, 2048), (128, 32, 8, 2048, 2048)] +
            [(d, 32, 8, q, n) for d in (64, 128) for q in (64, 128, 192, 256) for n in (512, 4096)],
    "one": [(*h, 1, n, k) for h in (*HEADS, (128, 16, 16)) for n in (4096, 8192, 16384, 32768) for k in ("f16", "q8_0", "q4_0")],
    "few": [(*h, q, n) for h in ((64, 32, 8), (128, 32, 8), (256, 16, 4)) for q in (2, 4, 8, 16, 32) for n in (8192, 32768)],
}
WIDTH = re.compile(r"d(\d+),")


def times(path):
    """us of each node, by its name: the least of its runs."""
    least = {}
    with open(path, errors="replace") as f:
        for m in (re.search(r"name=(.*?),type=.*?([\d.]+) us/run", line) for line in f):
            if m:
                least[m.group(1)] = min(float(m.group(2)), least.get(m.group(1), math.inf))
    return least


def compare(plain, fagen, only):
    a, b = ({n: t for n, t in times(path).items() if re.search(only, n)} for path in (plain, fagen))
    ratios, both = [], [n for n in a if n in b]
    for name in both:
        ratios.append(a[name] / b[name])
        print(f"{name:40} {a[name]:9.1f} {b[name]:9.1f} {ratios[-1]:6.2f}")
    for name in sorted(a.keys() ^ b.keys()):
        print(f"{name:40} in one of them alone")
    widths = sorted({int(m.group(1)) for m in map(WIDTH.match, both) if m})
    for what, of in [("all", ratios)] + [(f"d {d}", [r for n, r in zip(both, ratios) if n.startswith(f"d{d},")]) for d in widths]:
        if of:
            print(f"{what}: {len(of)} nodes: mean {sum(of) / len(of):.3f}, geometric {math.exp(sum(map(math.log, of)) / len(of)):.3f}, "
                  f"least {min(of):.3f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(dest="what", required=True)
    w = sub.add_parser("write")
    w.add_argument("set", choices=SETS)
    w.add_argument("-o", required=True)
    w.add_argument("--op", type=int, default=74)
    c = sub.add_parser("compare")
    c.add_argument("plain")
    c.add_argument("fagen")
    for each in (w, c):
        each.add_argument("--only", default="", help="nodes whose names this expression finds")
    a = p.parse_args()
    if a.what == "compare":
        return compare(a.plain, a.fagen, a.only)
    lines = [line for line in (node(a.op, *row) for row in SETS[a.set]) if re.search(a.only, line.split()[-1])]
    with open(a.o, "w") as f:
        f.writelines(line + "\n" for line in lines)
    print(f"{a.o}: {len(lines)} nodes")


if __name__ == "__main__":
    main()
