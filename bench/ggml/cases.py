"""ggml's own attention cases with the library and all of its claims, in parts side by side.

    python3 bench/ggml/cases.py test-backend-ops lib/libfagen_ggml.so -o . [--jobs 40] [--seconds 200] [--share 1/2] [--again cases.log]

Tells how many cases the program lists, how many ggml's backend supports without the library, how many of them ran, right or not, and how
many nodes the library computed. OUT/cases.log has each part, what of it was not right, and what was left to ggml.
"""
import argparse
import collections
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

CASE = re.compile(r"FLASH_ATTN_EXT\((.*?)\): (.*)")
COLOUR = re.compile(r"\033\[[0-9;]*m")
ENDS = re.compile(r"a backend ends: (\d+) nodes computed.*?(\d+) MiB")
TYPES = ("iq4_nl", "q5_1", "q5_0", "q4_1", "q4_0", "q8_0", "f32", "bf16", "f16")  # those whose kernels compile longest first
QUERIES = (1, 3, 32, 75)


def unlike(words):
    return f"(?!{'|'.join(f'{w},' for w in words)})"


def parts():
    """Expressions for the option -p: each case matches one of them."""
    yield from (f"^hsk={d},.*,nb={n},mask={m},.*type_K={t}," for t in TYPES for d in (64, 72) for n in (32, 75, 3, 1) for m in (1, 0))
    some = f"({'|'.join(map(str, QUERIES))})"
    for d in (64, 72):
        yield f"^hsk={d},.*,nb={some},.*type_K={unlike(TYPES)}"
        yield f"^hsk={d},.*,nb={unlike(QUERIES)}"
    yield from (f"^hsk=128,.*,nb={n},.*logit_softcap={cap}" for cap in (0, 10) for n in QUERIES)
    yield f"^hsk=128,.*,nb={unlike(QUERIES)}"
    for d in (192, 96, 256, 576, 512, 320, 40, 80):
        yield from (f"^hsk={d},.*,nb={n},mask={m}" for n in QUERIES for m in (0, 1))
        yield f"^hsk={d},.*,nb={unlike(QUERIES)}"
    yield f"^hsk={unlike((40, 64, 72, 80, 96, 128, 192, 256, 320, 512, 576))}"


def run(a, mode, seconds, more=(), part=None):
    """Return code (124: out of time), standard output and standard error."""
    words = [a.program, mode, "-b", "CUDA0", "-o", "FLASH_ATTN_EXT", *(("-p", part) if part else ())]
    try:
        r = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=seconds, env={**os.environ, **dict(more)})
        return r.returncode, r.stdout, r.stderr
    except subprocess.TimeoutExpired as e:
        return 124, *((text or b"").decode(errors="replace") for text in (e.stdout, e.stderr))


def cases(text):
    """Each case and what is told of it."""
    return [(m.group(1), m.group(2).strip()) for m in map(CASE.search, COLOUR.sub("", text).splitlines()) if m]


def unended(log, expressions):
    """Parts of a log that did not end well."""
    with open(log) as f:
        rows = [re.match(r"(.*): (\d+), \d+ cases, ", line) for line in f]
    return [m.group(1) for m in rows if m and m.group(1) in expressions and m.group(2) not in ("0", "1")]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("library")
    p.add_argument("-o", required=True)
    p.add_argument("--jobs", type=int, default=8)
    p.add_argument("--seconds", type=float, default=3600)
    p.add_argument("--share", default="1/1", help="I/N: part I, from 1, and each Nth after it")
    p.add_argument("--again", help="a cases.log of another run, whose parts that did not end come first")
    a = p.parse_args()
    end = time.time() + a.seconds
    library = {"GGML_BACKEND_PATH": os.path.abspath(a.library), "FAGEN_GGML": "all,log"}.items()
    code, out, err = run(a, "support", a.seconds)
    listed, supported = collections.Counter(c for c, _ in cases(out)), sum(word == "SUPPORTED" for _, word in cases(out))
    if not listed:
        raise SystemExit(f"{a.program} support: {code}: {out[-400:]} {err[-400:]}")
    expressions = list(parts())
    apart = [c for c in listed if sum(bool(re.search(e, c)) for e in expressions) != 1]
    first, each = map(int, a.share.split("/"))
    again = unended(a.again, expressions) if a.again else []
    expressions = again + [e for e in expressions[first - 1::each] if e not in again]
    listed = collections.Counter({c: n for c, n in listed.items() if any(re.search(e, c) for e in expressions)})
    print(f"{listed.total()} cases, {len(expressions)} parts; supported by ggml in all {supported}; in no part or in two: {apart}",
          flush=True)
    seen, words, told = collections.Counter(), collections.Counter(), collections.Counter()
    nodes = most = 0
    late = []

    def one(part):
        begin = time.time()
        return part, *run(a, "test", max(end - begin, 1), library, part), time.time() - begin

    with ThreadPoolExecutor(a.jobs) as pool, open(os.path.join(a.o, "cases.log"), "w") as log:
        for part, code, out, err, took in pool.map(one, expressions):
            rows, lines = cases(out), [line for line in err.splitlines() if "fagen: " in line]
            wrong = [f"{c}: {word}" for c, word in rows if word != "OK"]
            log.write("\n".join([f"{part}: {code}, {len(rows)} cases, {took:.0f} s", *wrong, *lines, ""]))
            seen.update(c for c, _ in rows)
            words.update("not supported" if word.startswith("not supported") else word for _, word in rows)
            told.update(line for line in lines if "left to ggml" in line or "alone" in line)
            for m in map(ENDS.search, lines):
                nodes, most = (nodes + int(m.group(1)), max(most, int(m.group(2)))) if m else (nodes, most)
            late += [(part, code)] if code not in (0, 1) else []
    print(f"{seen.total()} ran, {(listed - seen).total()} did not: {dict(words)}; {nodes} nodes computed by the library, a backend's "
          f"memory at most {most} MiB; parts that did not end well: {late}")
    for line, n in told.most_common():
        print(n, line)


if __name__ == "__main__":
    main()
