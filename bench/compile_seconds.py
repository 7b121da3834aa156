#!/usr/bin/env python3
"""CPU seconds that NVRTC takes to compile texts of kernels, by itself, in turns: the least of the rounds, registers and spilled bytes.

    fagen emit -d 64 --causal -b 4 -H 32 -n 4096 --arch h100 -o plain.cu
    fagen emit -d 64 --causal -b 4 -H 32 -n 4096 --arch h100 --score softcap:50 -o softcap.cu
    python3 bench/compile_seconds.py plain.cu softcap.cu [--rounds 5] [--arch sm_90a]

The first text is what the others are told as a share of. Needs NVRTC and no GPU. Seconds are of user time, so that other work on the host
disturbs them less than it does the clock; what stands in one run compares, from run to run they differ by a tenth.
"""
import argparse
import ctypes
import re
import resource

LIBRARIES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("text", nargs="+", help="files that fagen emit wrote")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--nvrtc", help="the library (default: the first of %s that loads)" % ", ".join(LIBRARIES))
    return p.parse_args(argv)


def load(path):
    for name in [path] if path else LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as e:
            last = e
    raise SystemExit(f"--nvrtc: {last}; accepted: the path of libnvrtc.so")


def compiled(nvrtc, text, arch):
    """User seconds, and the compiler's log."""
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"-default-device", b"--generate-line-info", b"--no-cache",
               b"--minimal", b"--ptxas-options=-v"]
    program, n = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - begun
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(n))
    log = ctypes.create_string_buffer(max(n.value, 1))
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if status:
        raise SystemExit(log.value.decode())
    return seconds, log.value.decode()


def main():
    o = parse()
    nvrtc, best, logs = load(o.nvrtc), {}, {}
    compiled(nvrtc, b"__global__ void first() {}", o.arch)  # the library's own beginning
    for _ in range(o.rounds):
        for path in o.text:
            with open(path, "rb") as f:
                seconds, logs[path] = compiled(nvrtc, f.read(), o.arch)
            best[path] = min(seconds, best.get(path, seconds))
    for path in o.text:
        registers = "/".join(re.findall(r"Used (\d+) registers", logs[path]))
        spilled = sum(map(int, re.findall(r"(\d+) bytes spill stores", logs[path])))
        print(f"{best[path]:.3f} s, {best[path] / best[o.text[0]]:.2f} of the first  {path}: {registers} registers, {spilled} bytes "
              "spilled")


if __name__ == "__main__":
    main()
