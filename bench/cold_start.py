#!/usr/bin/env python3
"""Processes that start at once and prepare the same kernels: without a cache, with a shared one that is empty, with one that is full.

    bench/cold_start.py [--library build/lib/libfagen.so] [--processes 1,2,4,8] [--problems 4] [--rounds 5]

Needs NVRTC and no GPU: kernels are prepared for the simulator. The three are taken in turn in each round, and the medians of the wall times from
the common start to the last process's end are told. A shared cold directory should never be slower than none."""
import argparse
import ctypes
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time


class Problem(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32)] + [(n, ctypes.c_int32) for n in
                                              "dtype d dv mask o_dtype align b hq hkv sq sk".split()]


def worker(library, cache, count, barrier, ends):
    os.environ["FAGEN_CACHE_DIR"] = cache
    os.environ["FAGEN_DEVICE"] = "sim:sm_80"
    fa = ctypes.CDLL(library)
    fa.fa_last_error.restype = ctypes.c_char_p
    barrier.wait()
    begin = time.monotonic()
    ctx = ctypes.c_void_p()
    status = fa.fa_create(ctypes.byref(ctx), None)
    for i in range(count):
        p = Problem(size=ctypes.sizeof(Problem), dtype=2, d=64 + 16 * (i // 2), mask=i % 2)
        status = status or fa.fa_prepare(ctx, ctypes.byref(p))
    if status:
        raise SystemExit(fa.fa_last_error().decode())
    fa.fa_destroy(ctx)
    ends.put((begin, time.monotonic()))


def run(library, cache, processes, count):
    barrier, ends = multiprocessing.Barrier(processes), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=worker, args=(library, cache, count, barrier, ends)) for _ in range(processes)]
    for w in workers:
        w.start()
    times = [ends.get(timeout=600) for _ in workers]
    for w in workers:
        w.join()
        if w.exitcode:
            raise SystemExit(f"a process ended with {w.exitcode}")
    return max(t[1] for t in times) - min(t[0] for t in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/lib/libfagen.so")
    parser.add_argument("--processes", default="1,2,4,8")
    parser.add_argument("--problems", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    library = os.path.abspath(a.library)
    print(f"{os.cpu_count()} cores; {a.problems} kernels; medians of {a.rounds} rounds, seconds (least to most)")
    print("processes  no cache            shared, cold        shared, warm        cold / none")
    for processes in map(int, a.processes.split(",")):
        taken = {"none": [], "cold": [], "warm": []}
        for _ in range(a.rounds):
            shared = tempfile.mkdtemp(prefix="fagen-cold-")
            taken["none"].append(run(library, "", processes, a.problems))
            taken["cold"].append(run(library, shared, processes, a.problems))
            taken["warm"].append(run(library, shared, processes, a.problems))
            shutil.rmtree(shared)
        cells = [f"{statistics.median(t):.3f} ({min(t):.3f}-{max(t):.3f})" for t in taken.values()]
        ratio = statistics.median(taken["cold"]) / statistics.median(taken["none"])
        print(f"{processes:9d}  {cells[0]:18s}  {cells[1]:18s}  {cells[2]:18s}  {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
