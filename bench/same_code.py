#!/usr/bin/env python3
"""Is it the same machine code? Renders kernels with two folders of templates; those whose texts differ are compiled, and their code compared.

    git archive main templates | tar -x -C old
    python3 bench/same_code.py old/templates                          every kernel that ships, beside this tree's templates
    python3 bench/same_code.py old/templates --rows FILE --only decode
Needs NVRTC and no GPU: a change of words or of who prints them leaves all code as it was, and shows so. A row is of the form of
tests/shipped_text.txt, `[HASH] PROBLEM CONFIG`. Code is each entry's instructions, its registers and barriers, its constants and its static
shared memory; line tables are left out. Exits with 1 where the code of some row differs, or
no row renders.
"""
import argparse
import collections
import os
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import model

HERE = os.path.dirname(os.path.abspath(__file__))
SHIPPED = os.path.join(HERE, "..", "tests", "shipped_text.txt")
TEMPLATES = os.path.join(HERE, "..", "templates")
CODE = (".text.", ".nv.constant", ".nv.shared.", ".nv.global")
NOBITS = 8


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old", help="the folder of the old templates")
    p.add_argument("new", nargs="?", default=TEMPLATES, help="that of the new (default: this tree's)")
    p.add_argument("--rows", default=SHIPPED, help="a file of rows (default: what ships)")
    p.add_argument("--only", default="", help="rows that hold this")
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    return p.parse_args(argv)


def rows_of(path, only):
    """(problem, config) of each line that holds `only`, none twice."""
    with open(path) as f:
        rows = [tuple(line.split()[-2:]) for line in f if only in line and line.strip()]
    return list(dict.fromkeys(rows))


def emit(templates, row, arch, form, cache):
    """What fagen emits for a row: a text, or a cubin. A config that an arch or these templates do not have: the reason, as a str."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        r = subprocess.run([model.command(), "emit", "--problem", row[0], "--config", row[1], "--arch", arch, "--format", form, "-o", out],
                           env={**os.environ, "FAGEN_TEMPLATE_DIR": os.path.abspath(templates), "FAGEN_CACHE_DIR": cache},
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if r.returncode != 0:
            return r.stderr.strip()
        with open(out, "rb") as f:
            return f.read()


def code_of(image):
    """The sections of an ELF image that hold code, by name: bytes or size, and what the section's header says of registers and barriers."""
    at, entry, count, names = struct.unpack_from("<Q10xHHH", image, 0x28)
    header = [struct.unpack_from("<IIQQQQIIQQ", image, at + i * entry) for i in range(count)]
    text = header[names][4]
    out = {}
    for name, kind, flags, _, offset, size, _, info, _, _ in header:
        name = image[text + name:image.index(b"\0", text + name)].decode()
        if name.startswith(CODE):
            out[name] = (size if kind == NOBITS else image[offset:offset + size], flags, info >> 24)
    return out


def compare(options, row, cache):
    """'text', 'code', 'differs' or 'none' of a row, and a word on it."""
    old, new = (emit(t, row, options.arch, "cu", cache) for t in (options.old, options.new))
    if isinstance(old, str) or isinstance(new, str):
        return ("none", old) if old == new else ("differs", f"old: {old if isinstance(old, str) else 'renders'}; "
                                                            f"new: {new if isinstance(new, str) else 'renders'}")
    if old == new:
        return "text", ""
    images = [emit(t, row, options.arch, "cubin", cache) for t in (options.old, options.new)]
    for image in images:
        if isinstance(image, str):
            return "differs", image
    codes = [code_of(image) for image in images]
    if not any(n.startswith(".text.") for n in codes[0]):
        return "differs", "an image without instructions"
    if codes[0] == codes[1]:
        return "code", ""
    return "differs", ", ".join(sorted(n for n in codes[0].keys() | codes[1].keys() if codes[0].get(n) != codes[1].get(n)))


def main():
    options = parse()
    rows = rows_of(options.rows, options.only)
    if not rows:
        raise SystemExit(f"no row of {options.rows} holds \"{options.only}\"")
    seen = collections.Counter()
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(options.jobs) as pool:
        for row, (what, word) in zip(rows, pool.map(lambda row: compare(options, row, cache), rows)):
            seen[what] += 1
            if what in ("differs", "none"):
                print(f"{what}: {' '.join(row)}: {word}", flush=True)
    print(f"{len(rows)} kernels: {seen['text']} of equal text, {seen['code']} of equal code, {seen['differs']} differ, "
          f"{seen['none']} that neither has")
    return 1 if seen["differs"] or seen["none"] == len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
