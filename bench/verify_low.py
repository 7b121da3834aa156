#!/usr/bin/env python3
"""Many problems over caches of few bits, each held against attention in fp64 by `fagen verify`, in few compiled texts.

A class of problems (format, head_dim, mask, features, scales, rows) is one run of the command with a list of lengths: what differs between
its problems is no part of the text, and all run the config of the longest, so that a kernel is compiled once for all of them. Classes run
side by side. The last line counts them.

    python3 bench/verify_low.py                            all formats on the first GPU
    python3 bench/verify_low.py --formats q8_0 --device sim:sm_90a --lengths 5
    python3 bench/verify_low.py --sanitizer compute-sanitizer --lengths 2
"""
import argparse
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import time

FORMATS = ("e4m3", "e5m2", "s8", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "nvfp4")
PLAIN = ("e4m3", "e5m2", "s8")  # no scales in their rows
# Name, options, least and most keys (and queries, where --sq says nothing); scales of formats without their own.
CLASSES = (
    ("decode", "-t bf16 -d 128 --mask none --sq 1 -b 3 -H 8 --kv-heads 2", 1, 4000, None),
    ("pages", "-t fp16 -d 128 --mask causal --sq 3 -b 3 -H 8 --kv-heads 4 --features lengths,pages --page 16", 3, 3000, "token"),
    ("many heads", "-t bf16 -d 64 --mask none --sq 1 -b 2 -H 16 --kv-heads 16 --features lengths", 1, 3000, "folded"),
    ("few rows", "-t bf16 -d 128 --mask causal --sq 12 -b 2 -H 8 --kv-heads 2 --features lengths", 12, 1500, "token"),
    ("prompt", "-t bf16 -d 128 --mask causal -b 1 -H 4 --kv-heads 2", 20, 400, "channel"),
)


def commands(options, kv, of, rng):
    """What tells the config that the longest problem of a class runs, and what verifies all with that one."""
    name, text, least, most, scales = of
    lengths = list(map(str, sorted(rng.sample(range(least, most), options.lengths))))
    given = ["--kv", kv, *text.split()] + (["--kv-scale", scales] if scales and kv in PLAIN else [])
    given += ["--device", options.device] if options.device else []
    shown = [options.fagen, "show", *given, "-n", lengths[-1]]
    return shown, options.sanitizer.split() + [options.fagen, "verify", *given, "-n", ",".join(lengths), "--seed", str(rng.randrange(1000))]


def run(name, commands, limit):
    """(name, right, all, what went wrong)"""
    try:
        shown = subprocess.run(commands[0], capture_output=True, text=True, timeout=limit)
        config = re.search(r"^config +(\S+)", shown.stdout, re.M)
        if not config:
            return name, 0, 0, (shown.stdout + shown.stderr)[-400:]
        done = subprocess.run([*commands[1], "-c", config[1]], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return name, 0, 0, "no verdict in time"
    text = done.stdout + done.stderr
    found = re.search(r"(\d+) of (\d+) cases are right", text)
    if not found:
        return name, 0, 0, text[-400:]
    right, count = int(found[1]), int(found[2])
    bad = done.returncode != 0 or right != count
    return name, right, count, text[-2000:] if bad else ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--formats", type=lambda s: s.split(","), default=FORMATS, metavar="F,..", help=", ".join(FORMATS))
    p.add_argument("--lengths", type=int, default=16, metavar="N", help="problems of a class (default 16: 800 of all)")
    p.add_argument("--device", help="as of fagen verify")
    p.add_argument("--fagen", default=shutil.which("fagen") or "bin/fagen", metavar="FILE", help="the command (default: on PATH, or bin/fagen)")
    p.add_argument("--sanitizer", default="", metavar="COMMAND", help="what runs the command, as 'compute-sanitizer --error-exitcode 1'")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="of a class")
    options = p.parse_args()
    for f in options.formats:
        if f not in FORMATS:
            p.error(f"--formats: {f}; accepted: {', '.join(FORMATS)}")
    rng = random.Random(options.seed)
    todo = [(f"{kv}, {of[0]}", commands(options, kv, of, rng)) for of in CLASSES for kv in options.formats]
    begun, right, count, bad = time.time(), 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, *x, options.limit) for x in todo]):
            name, r, n, wrong = done.result()
            right, count, bad = right + r, count + n, bad + bool(wrong)
            print(f"{name}: {r} of {n}" + (f"; {wrong}" if wrong else ""), flush=True)
    print(f"{right} of {count} problems are right in {len(todo)} classes, {bad} classes without a clean run, {time.time() - begun:.0f} s")
    return 0 if count and right == count and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
