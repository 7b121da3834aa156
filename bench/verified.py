#!/usr/bin/env python3
"""Runs many `fagen verify` side by side, each line of its input one's arguments, and counts the problems that were right.

    python3 bench/verified.py bin/fagen --seconds 200 --jobs 16 --of everything   some of each operation
                                                 --of fp8: products of 8 bits; wide: wide heads; programs: of scores, in each forward family
    python3 bench/verified.py bin/fagen --file lines.txt -- --device sim:sm_90a   lines of a file, and what each gets
Lines are begun in their order; what has not ended in time is interrupted, and tells how many were right until then. Ends with 0 where
none was wrong and some were right.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time

TOLD = re.compile(r"(\d+) of (\d+) cases are right")


def fp8():
    """Head_dims by sixteens, masks, groups, unequal lengths, sequences of lengths, pages, V by columns, scales, O of 8 bits."""
    for turn in range(3):
        for i, d in enumerate((128, 64, 256, 192, 96, 80, 112, 144, 160, 176, 208, 224, 240, 48, 32, 16)):
            i += 16 * turn
            kind, kv = "e5m2" if i % 4 == 3 else "e4m3", 1 << i % 3
            head = f"-d {d} -t {kind}"
            yield f"{head} --mask none,causal -n {33 + 7 * i},{128 + i},{300 + 11 * i} -H 4 --kv-heads {kv}"
            yield f"{head} --window {64 + 8 * i},{i % 3} -n {60 + i},{250 + 13 * i} -H 4 --kv-heads {kv}"
            yield f"{head} --mask none,causal --sq {1 + 9 * i} --sk {500 + 23 * i} -H 2 -b 2"
            yield f"{head} --mask none,causal -n {200 + 11 * i} -b 3 --features lengths -H 4 --kv-heads 2"
            yield f"{head} --window {100 + i},0 -n {333 - 5 * i} -b 3 --features lengths -H 4 --kv-heads 2"
            yield f"{head} --mask none,causal -n {150 + 13 * i} -b 2 --page {16 << i % 4} -H 2 --kv-heads 1"
            yield f"{head} --mask none,causal -n {96 + 16 * i} --features v-columns -H 2"
            scales = (",q_scale=1,k_scale=1,v_scale=1", ",v_scale=1", ",q_scale=1,k_scale=1")[i % 3]
            for mask, o in (("causal", "bf16"), ("none", "fp16"), ("causal", "e4m3")):
                yield (f"--problem {kind},d={d},dv={d},mask={mask},o={o},align=16{scales}{',o_scale=1' if o == 'e4m3' else ''},"
                       f"b=2,hq=4,hkv={kv},sq={77 + 9 * i},sk={177 + 9 * i}")


MLA = "-d 576 --dv 512 -t bf16 --features lengths,pages,v-in-k --page 64 --kv-heads 1"
WIDE = ("wide_wgmma:br=64,ctas=1,feeder=40,schedule=plain,bc={bc},box=64,stages_k={stages},stages_v={stages},q_bufs=1,grid={grid},ahead=0,"
        "sections=1,cluster={cluster},rescale=lazy,exp=0,convert=late,o_path=direct,parts={parts},combine={combine},q_held=0")
HALVES = ("wide_wgmma:br=64,ctas=1,feeder=24,schedule=halves,bc=64,box=64,stages_k=5,stages_v=1,q_bufs=1,grid=persistent,ahead=0,"
          "sections=2,cluster={},rescale=lazy,exp=0,convert=late,o_path=direct,parts=by_cost,combine=second_kernel,q_held=1")


def wide():
    """Heads of 264 to 576, by halves of columns, V inside K with every way to add up parts, gradients to 512."""
    for cluster in (2, 1):
        for i, d in enumerate((512, 384)):
            head = f"-d {d} -t {('bf16', 'fp16')[i]} -c {HALVES.format(cluster)}"
            yield f"{head} --mask none,causal -n {130 + 170 * i},{301 - 37 * i} -H 24 --kv-heads {6 * (i + 1)} -b 2"
            yield f"{head} --mask causal -n {300 + i} --sk {170 + 400 * i} -H 40"
            yield f"{head} --mask causal -n 700 --sk 30 -H 40 --kv-heads 1 -b 30"  # tiles with keys after some without
            yield f"{head} --window {100 + 90 * i},{3 * i} -n {500 + i} -H 12"
            yield f"{head} --mask none,causal -n {140 + i} --sk {2900 + 171 * i} -H 2"
            yield f"{head} --mask causal -n 260 -H 30 --score softcap:30"
    ways = [dict(bc=64, stages=2, grid="persistent", cluster=1, parts="by_cost", combine=how) for how in ("last_warp", "second_kernel")]
    ways += [dict(ways[0], bc=32, stages=4, parts=n) for n in (3, 8)] + [dict(ways[1], parts=16), dict(ways[0], grid="static")]
    ways += [dict(ways[0], grid="static", cluster=n, combine="cluster") for n in (2, 4)]
    ways.append(dict(ways[1], parts="by_length"))
    for i, way in enumerate(ways):
        lengths = f"-n {1 + i % 2},{3 + i % 3} --sk {700 + 97 * i}"
        for mask, heads, b in (("none", 128, 2), ("causal", 16, 5), ("none", 40, 3)):
            yield f"{MLA} --mask {mask} -H {heads} -b {b} {lengths} -c {WIDE.format(**way)}"
    for i in range(4):
        for mask, heads, b in (("none,causal", 128, 2 + i), ("none,causal", 16, 33), ("none,causal", 64, 3), ("causal", 32, 2)):
            yield f"{MLA} --mask {mask} -H {heads} -b {b} -n 1,2,{5 + i} --sk {300 + 411 * i}"
    pairs = (320, 320), (512, 512), (320, 256), (384, 384), (576, 512), (264, 136), (448, 512), (333, 401), (300, 264)
    for i, (d, dv) in enumerate(pairs):
        kind = "fp16" if i % 3 == 1 else "bf16"
        head = f"-d {d} --dv {dv} -t {kind} -H 4 --kv-heads {1 << i % 3}"
        yield f"{head} --mask none,causal -n {33 + 7 * i},{130 + i},{301 + 11 * i}"
        yield f"{head} --window {64 + 8 * i},{i % 3} -n {60 + i},{250 + 13 * i}"
        yield f"{head} --mask none,causal -n {200 + 11 * i},77 -b 3 --features lengths"
        yield f"{head} --mask causal -n {150 + 13 * i},96 -b 2 --page {16 << i % 3}"
        yield f"{head} --mask none,causal -n 1,{4 + i} --sk {900 + 31 * i} -b 2"
        yield f"{head} --mask causal -n {120 + i},260 --score softcap:30"
        if d <= 512:
            yield f"{head} --op backward --mask none,causal -n {65 + 9 * i},{200 + 7 * i}"
            yield f"{head} --op backward --mask causal -n {90 + 9 * i},133 -b 3 --features lengths"


SHIPPED = ("softcap:30", "alibi", "relative", "t5", "bias_bf16", "sink", "softcap_exact:2", "softcap_alibi:20", "temperature", "bias",
           "t5_decoder", "softcap_sink:5", "relative_bf16", "temperature_rows", "bias_f16", "softcap:3", "documents", "prefix", "padding",
           "tree", "chunked:64", "blocks", "matrix", "matrix_u8", "window:40,3")
FAMILIES = ("flash_fwd_wgmma", "flash_fwd_mma", "flash_fwd_ffma", "decode_mma", "decode_ffma", "decode_wgmma", "split_mma", "split_wgmma",
            "mixed_mma", "mixed_wgmma", "naive")


def programs():
    """Programs that ship, and some that were made up, in each forward family: numbers and configs are drawn; then what is chosen, in
    8 bits and wide heads too."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
    made_up = sorted(name for name in os.listdir(folder) if name.endswith(".lua"))
    for n in range(2):
        for f, family in enumerate(FAMILIES):
            turn = ("", " --features lengths", " --page 16")[f % 3] if n else ""
            features = " --features lengths" if family.startswith("mixed") else turn
            if family in ("split_mma", "naive") or family == "flash_fwd_ffma" and "page" in features:
                features = ""
            for i in range(6):
                name = SHIPPED[(6 * f + i + 9 * n) % len(SHIPPED)]
                yield f"--score {name} --family {family} --count 3 --seed {1000 * n + 37 * f + 5 * i}{features}"
            for i in range(3):
                name = made_up[(3 * f + i + 12 * n) % len(made_up)]
                yield f"--score-file {folder}/{name} --family {family} --count 2 --seed {1000 * n + 31 * f + 7 * i}{features}"
    for i, name in enumerate(SHIPPED):
        head = f"-d {(64, 128, 112, 96, 80)[i % 5]} -t {('bf16', 'fp16')[i % 2]} --score {name}"
        yield f"{head} --mask none,causal -n {150 + 17 * i},{260 + 11 * i} -H 4 --kv-heads {1 << i % 3}"
        yield f"{head} --mask causal --sq {1 + i % 9} --sk {900 + 71 * i} -H 16 --kv-heads 2 -b 2"
        yield f"{head} --mask causal -n {100 + 23 * i} -b 3 --page {16 << i % 3} -H 4 --kv-heads 2"
        if i < 6:
            yield f"-d {(320, 512)[i % 2]} -t bf16 --score {name} --mask causal -n {90 + 31 * i} -H 2"
    for i, name in enumerate(("softcap:30", "alibi", "sink", "softcap_exact:2", "softcap_alibi:20", "temperature")):
        yield f"-d {(64, 128)[i % 2]} -t e4m3 --score {name} --mask none,causal -n {130 + 37 * i} -H 2"


LOW = ("e4m3", "e5m2", "s8", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "nvfp4")
BACKWARD = ("flash_bwd_wgmma", "flash_bwd_mma", "flash_bwd_ffma", "wide_bwd_mma")


def everything():
    """Each operation: drawn cases of each family and what a launch has beside tensors, then what is chosen at sizes beyond those that are
    drawn, caches of few bits read and written among them, and some of each other list."""
    for n in range(2):
        for i, family in enumerate(FAMILIES):
            yield f"--family {family} --count 4 --seed {4000 + 500 * n + 23 * i}"
        for i, family in enumerate(BACKWARD):
            yield f"--op backward --family {family} --count 4 --seed {4100 + 500 * n + 19 * i}"
        for i, op in enumerate(("append", "merge", "backward")):
            yield f"--op {op} --count 4 --seed {4200 + 500 * n + 17 * i}"
        for i, features in enumerate(("lengths", "lengths,pages", "batch-invariant", "lse-strides", "no-workspace", "dropout")):
            yield f"--features {features} --count 4 --seed {4300 + 500 * n + 13 * i}"
        for i, kv in enumerate(LOW):
            yield f"--kv {kv} --count 3 --seed {4400 + 500 * n + 11 * i}"
    for i, d in enumerate((64, 128, 96, 256, 80, 72, 192, 104, 136, 176, 33, 8)):
        head = f"-d {d} -t {('bf16', 'fp16')[i % 2]}"
        yield f"{head} --mask none,causal -n {300 + 70 * i},{1000 + 31 * i} -H {(4, 6, 10)[i % 3]} --kv-heads {(1, 2, 5)[i % 3]}"
        yield f"{head} --window {90 + 40 * i},{i % 4} -n {900 + 53 * i} -H 3"
        yield f"{head} --mask none,causal --sq {1 + 7 * i} --sk {3000 + 777 * i} -H 8 --kv-heads {1 << i % 4} -b {1 + i % 5}"
        yield f"{head} --mask causal --sq {100 + 37 * i} --sk {2000 + 501 * i} -H 4 --kv-heads 2"
        yield f"{head} --mask causal -n {200 + 97 * i} -b 3 --page {16 << i % 3} -H 6 --kv-heads {(3, 2)[i % 2]}"
        yield f"{head} --mask none,causal -n {700 + 41 * i} -b 4 --features lengths -H 4 --kv-heads 4"
        yield f"{head} --op backward --mask none,causal -n {500 + 61 * i} -H {(4, 6)[i % 2]} --kv-heads {(2, 1, 2)[i % 3]}"
        yield f"{head} --op backward --mask causal -n {350 + 43 * i} -b 3 --features lengths -H 2"
    for i, kv in enumerate(LOW):
        scales = ((f" --kv-scale {how}" for how in ("folded", "token", "channel")) if kv in ("e4m3", "e5m2", "s8") else ("",))
        for j, scale in enumerate(scales):
            for d, hkv in ((128, 8), (64, 5), (192, 3)):
                head = f"-d {d} -t {('bf16', 'fp16')[(i + j) % 2]} --kv {kv}{scale}"
                yield f"{head} --mask none,causal --sq {1 + (i + j) % 4} --sk {2000 + 377 * i} -H {4 * hkv} --kv-heads {hkv} -b 3"
                yield f"{head} --mask causal --sq {5 + 3 * i} --sk {1500 + 91 * i} -H {2 * hkv} --kv-heads {hkv} -b 2 --page 64"
            yield f"-d 128 --kv {kv}{scale} --mask causal -n {260 + 33 * i} -H 4 --kv-heads 2"
        for n, b, hkv in ((1, 64, 8), (333, 3, 5), (2000, 2, 8)):
            yield f"--op append -d {(128, 64)[i % 2]} --kv {kv} -n {n} -b {b} -H {2 * hkv} --kv-heads {hkv}"
    for of in (fp8, programs, wide):
        yield from list(of())[::7]


OF = {"everything": everything, "fp8": fp8, "programs": programs, "wide": wide}


def parse(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    more = argv[argv.index("--") + 1:] if "--" in argv else []
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("fagen", help="the program")
    p.add_argument("--file", help="lines of arguments; text from a # on is a comment")
    p.add_argument("--of", choices=OF, help="a list that is kept here, in place of a file")
    p.add_argument("--jobs", type=int, default=8, help="side by side (default 8)")
    p.add_argument("--seconds", type=float, default=200, help="after which what runs is interrupted (default 200)")
    o = p.parse_args(argv[:len(argv) - len(more) - ("--" in argv)])
    if bool(o.file) == bool(o.of):
        p.error("one of --file and --of is needed")
    o.more = more
    return o


def main(argv=None):
    o = parse(argv)
    if o.file:
        with open(o.file) as f:
            lines = [x.split("#")[0].strip() for x in f]
    else:
        lines = list(OF[o.of]())
    lines, end, lock = [x for x in lines if x][::-1], time.monotonic() + o.seconds, threading.Lock()
    right = ran = begun = 0
    bad = []

    def work():
        nonlocal right, ran, begun
        while True:
            with lock:
                if not lines or time.monotonic() > end:
                    return
                line = lines.pop()
                begun += 1
            child = subprocess.Popen([o.fagen, "verify", *line.split(), *o.more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True)
            try:
                text, _ = child.communicate(timeout=max(1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGINT)
                try:
                    text, _ = child.communicate(timeout=10)
                except subprocess.TimeoutExpired:
                    child.kill()
                    text, _ = child.communicate()
            found = TOLD.findall(text)
            with lock:
                good, all_ = map(int, found[-1]) if found else (0, 0)
                right, ran = right + good, ran + all_
                if good != all_ or child.returncode not in (0, 130):
                    bad.append(line)
                told = text.strip().splitlines()[-1][:200] if text.strip() else f"ended with {child.returncode}"
                print(f"{good:4}/{all_:<4} {line}   {told if good != all_ or not all_ else ''}", flush=True)
                if good != all_:
                    print("\n".join("     " + x[:300] for x in text.splitlines()[-8:]), flush=True)
    workers = [threading.Thread(target=work) for _ in range(o.jobs)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    print(f"{right} of {ran} problems are right, of {begun} lines; {len(lines)} lines were not begun; {len(bad)} lines failed or told "
          "nothing")
    return 0 if right and right == ran else 1


if __name__ == "__main__":
    sys.exit(main())
