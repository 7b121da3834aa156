#!/usr/bin/env python3
"""What limits a kernel: a profile of one launch by Nsight Compute, in numbers and in plain words.

    python3 bench/limits.py --problem 128,causal,4096                          what fa_launch chooses
    python3 bench/limits.py --problem 128,none,16384 --config 'flash_fwd_mma:br=128,bc=64,warps=4' --save profile.csv
    python3 bench/limits.py --problem 128,none,16384 --peer cudnn              a peer, for comparison
    python3 bench/limits.py --problem 128,none,16384 --csv profile.csv         a saved profile; needs neither ncu nor a GPU
"""
import argparse
import json
import os
import re
import sys

from common import cells
from common import ncu

ACTIVE, ELAPSED = ".avg.pct_of_peak_sustained_active", ".avg.pct_of_peak_sustained_elapsed"
# A unit: its name in sentences, and the metrics that tell how busy it is, in percent of its peak; the first that is there counts.
UNITS = (
    ("matrix", "the matrix units", ("sm__pipe_tensor_cycles_active" + ACTIVE, "sm__pipe_tensor_op_hmma_cycles_active" + ACTIVE,
                                    "sm__inst_executed_pipe_tensor" + ACTIVE)),
    ("exp", "the special-function units (exponentials, conversions)", ("sm__pipe_xu_cycles_active" + ACTIVE,
                                                                       "sm__inst_executed_pipe_xu" + ACTIVE)),
    ("issue", "the issue of instructions", ("smsp__issue_active" + ACTIVE, "sm__inst_issued" + ACTIVE,
                                            "sm__inst_executed" + ACTIVE)),
    ("fma", "the FMA units", ("sm__pipe_fma_cycles_active" + ACTIVE, "sm__inst_executed_pipe_fma" + ACTIVE)),
    ("alu", "the ALUs (integers, comparisons)", ("sm__pipe_alu_cycles_active" + ACTIVE, "sm__inst_executed_pipe_alu" + ACTIVE)),
    ("shared", "shared memory as loads and stores use it", ("l1tex__data_pipe_lsu_wavefronts_mem_shared" + ELAPSED,
                                                            "l1tex__data_pipe_lsu_wavefronts" + ELAPSED)),
    ("l2", "the L2", ("lts__t_sectors" + ELAPSED, "lts__throughput" + ELAPSED)),
    ("dram", "device memory", ("dram__throughput" + ELAPSED, "gpu__dram_throughput" + ELAPSED)),
)
FACTS = (  # key, metrics of which the first that is there counts
    ("seconds", ("gpu__time_duration.sum",)),
    ("clock", ("sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second")),
    ("cycles", ("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg")),
    ("active", ("sm__cycles_active.avg",)),
    ("registers", ("launch__registers_per_thread",)),
    ("smem", ("launch__shared_mem_per_block_dynamic",)),
    ("grid", ("launch__grid_size",)),
    ("threads", ("launch__block_size",)),
    ("waves", ("launch__waves_per_multiprocessor",)),
    ("occupancy", ("sm__warps_active" + ACTIVE,)),
    ("gmma", ("sm__inst_executed_pipe_tensor_op_gmma.sum", "smsp__inst_executed_pipe_tensor_op_gmma.sum")),
    ("instructions", ("sm__inst_executed.sum", "smsp__inst_executed.sum")),
    ("wavefronts", ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",)),
    ("conflicts", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",)),
    ("local", ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "smsp__sass_inst_executed_op_local_ld.sum")),
    ("local_st", ("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", "smsp__sass_inst_executed_op_local_st.sum")),
    ("l2_hits", ("lts__t_sector_hit_rate.pct",)),
    ("dram_read", ("dram__bytes_read.sum",)),
    ("dram_write", ("dram__bytes_write.sum",)),
)
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio$")
STALLS = {  # ncu's reasons in words
    "gmma": "wgmma to end", "long_scoreboard": "global memory or the L2", "short_scoreboard": "shared memory or the special-function unit",
    "barrier": "a barrier of the block", "math_pipe_throttle": "a busy arithmetic pipe", "wait": "an instruction of fixed latency",
    "mio_throttle": "the queue to shared memory and special functions", "lg_throttle": "the queue to global memory",
    "not_selected": "another warp that issues", "selected": "(it issues)", "branch_resolving": "a branch",
    "dispatch_stall": "the dispatcher",
    "no_instruction": "the instruction cache", "sleeping": "its sleep", "membar": "a memory fence", "warpgroup_arrive": "its warpgroup",
    "drain": "stores at its end", "imc_miss": "constants", "tex_throttle": "the texture queue", "misc": "something else"}
PEER_KERNELS = "regex:flash|sdpa|fmha|attention|device_kernel"
FULL, BUSY = 80, 60          # percent of a unit's peak: it is the limit; it is likely to be
MATRIX_PER_CLOCK = 4096      # FLOPs of fp16 or bf16 per clock and multiprocessor of sm_90


def wanted():
    return [m for _, _, some in UNITS for m in some] + [m for _, some in FACTS for m in some if not m.startswith("launch__")]


def first(metrics, names):
    for n in names:
        if isinstance(metrics.get(n), (int, float)):
            return metrics[n], n
    return None, None


def analyse(kernel, cell=None, multiprocessors=132):
    """{"kernel", "units": {name: percent}, "facts", "stalls": {reason: warps per issue}, "missing": [what has no metric], "says": [..]}"""
    m = kernel["metrics"]
    units = {name: first(m, some)[0] for name, _, some in UNITS}
    facts = {name: first(m, some)[0] for name, some in FACTS}
    stalls = {found.group(1): v for n, v in m.items() if (found := STALL.match(n)) and isinstance(v, float)
              and not found.group(1).endswith("_not_issued")}
    out = {"kernel": kernel["kernel"], "units": {k: v for k, v in units.items() if v is not None},
           "facts": {k: v for k, v in facts.items() if v is not None},
           "stalls": dict(sorted(stalls.items(), key=lambda x: -x[1])),
           "missing": [f"{name} ({', '.join(some)})" for name, _, some in UNITS if units[name] is None]
           + [f"{name} ({', '.join(some)})" for name, some in FACTS if facts[name] is None] + ([] if stalls else ["stall reasons"])}
    out["says"] = [s for s in (*limit(out), *about_work(out, cell, multiprocessors), *about_launch(out), *about_memory(out, cell)) if s]
    return out


def waits(a, n=3):
    """The reasons for which warps do not issue, the most frequent first, in words."""
    some = {k: v for k, v in a["stalls"].items() if k not in ("selected", "not_selected")}
    total = sum(some.values())
    return ", ".join(f"{STALLS.get(k, k)} ({100 * v / total:.0f} %)" for k, v in list(some.items())[:n]) if total else "(not told)"


def limit(a):
    words = {name: text for name, text, _ in UNITS}
    ranked = sorted(a["units"].items(), key=lambda x: -x[1])
    if not ranked:
        yield "Nothing tells how busy the units are."
        return
    top, share = ranked[0]
    if share >= FULL:
        yield f"Limited by {words[top]}: {share:.0f} % of their peak."
    elif share >= BUSY:
        yield f"Most likely limited by {words[top]}, {share:.0f} % of their peak; the rest is waiting for {waits(a)}."
    else:
        yield (f"Limited by latency: no unit is above {BUSY} %, the busiest being {words[top]} with {share:.0f} %. "
               f"Warps wait for {waits(a)}.")
    others = [f"{words[n]} {v:.0f} %" for n, v in ranked[1:] if v >= FULL]
    if others:
        yield "At their limit as well: " + ", ".join(others) + "."
    matrix, special = a["units"].get("matrix"), a["units"].get("exp")
    if matrix and special and max(matrix, special) < FULL and 85 <= matrix + special <= 108:
        yield (f"Products ({matrix:.0f} %) and exponentials ({special:.0f} %) sum to about the whole time: they take turns more than "
               "they overlap.")


def about_work(a, cell, multiprocessors):
    f, matrix = a["facts"], a["units"].get("matrix")
    if not cell or not f.get("seconds"):
        return
    rate = cell.flops() / f["seconds"]
    clock = f" at {f['clock'] / 1e9:.2f} GHz" if f.get("clock") else ""
    yield f"{f['seconds'] * 1e6:.1f} us under the profiler, {rate / 1e12:.0f} TFLOP/s{clock}."
    if f.get("clock") and cell.dtype in ("bf16", "fp16"):
        useful = 100 * rate / (MATRIX_PER_CLOCK * multiprocessors * f["clock"])
        text = f"Useful products are {useful:.0f} % of the matrix peak at that clock"
        if useful > 105:
            text += ": the time or the clock of this profile is not of that problem"
        elif matrix:
            text += f"; the units were busy {matrix:.0f} %: " + (
                "masked, padded or slower products make up the difference" if matrix > 1.08 * useful else "next to nothing is wasted")
        yield text + "."


def about_launch(a):
    f = a["facts"]
    if f.get("grid"):
        yield (f"{f['grid']:.0f} blocks of {f.get('threads', 0):.0f} threads" + (f", {f['waves']:.2f} waves" if f.get("waves") else "")
               + (f"; {f['registers']:.0f} registers at the launch" if f.get("registers") else "")
               + (f", {f['smem'] / 1024:.0f} KiB of dynamic shared memory" if f.get("smem") else "")
               + (f"; occupancy {f['occupancy']:.0f} %" if f.get("occupancy") else "") + ".")
    if f.get("active") and f.get("cycles") and f["active"] < 0.93 * f["cycles"]:
        yield f"Multiprocessors stood idle {100 * (1 - f['active'] / f['cycles']):.0f} % of the time: a tail, or an uneven load."


def about_memory(a, cell):
    f = a["facts"]
    local = (f.get("local") or 0) + (f.get("local_st") or 0)
    if local:
        yield f"Local memory is used: {local:.0f} sectors; registers spill or an array is indexed at run time."
    if f.get("wavefronts") and f.get("conflicts") is not None and f["conflicts"] > 0.02 * f["wavefronts"]:
        yield f"Bank conflicts: {100 * f['conflicts'] / f['wavefronts']:.0f} % of the wavefronts of shared memory."
    if cell and f.get("dram_read") is not None:
        moved = f["dram_read"] + (f.get("dram_write") or 0)
        yield (f"Device memory moved {moved / 1e6:.0f} MB; Q, K, V and O are {cell.bytes() / 1e6:.0f} MB"
               + (f"; {f['l2_hits']:.0f} % hits in the L2." if f.get("l2_hits") is not None else "."))


def shown(a):
    out = [a["kernel"], ""] + [f"  {s}" for s in a["says"]] + ["", "  unit      % of peak"]
    out += [f"  {n:8} {v:6.1f}  {'#' * round(v / 2.5)}" for n, v in sorted(a["units"].items(), key=lambda x: -x[1])]
    if a["stalls"]:
        out += ["", "  warps waiting per instruction issued, for"]
        out += [f"  {v:6.2f}  {STALLS.get(n, n)} ({n})" for n, v in list(a["stalls"].items())[:10] if v >= 0.005]
    if a["missing"]:
        out += ["", "  Without a metric in this profile: " + "; ".join(a["missing"])]
    return "\n".join(out)


def command(o, cell):
    """What is profiled, and the regular expression of its kernel's name."""
    if o.peer:
        return [sys.executable, os.path.abspath(__file__), "--once", o.peer, "--problem", o.problem], PEER_KERNELS
    from common import fagen
    tool = os.path.join(os.path.dirname(fagen.library("fagen")), "..", "bin", "fagen")
    call = [tool, "run", "--problem", cell.problem(), "--device", "cuda:0"] + (["--config", o.config] if o.config else [])
    return call + (["--window", f"{cell.left},{cell.right}"] if cell.mask == "window" else []), "regex:^fa_"


def once(name, cell):
    """One launch of a peer: what ncu watches."""
    import torch
    from common import peers
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[cell.dtype]
    sets = [[torch.randn(cell.b, s, h, d, device="cuda", dtype=kind) for s, h, d in (
        (cell.sq, cell.hq, cell.d), (cell.sk, cell.hkv, cell.d), (cell.sk, cell.hkv, cell.dv))]]
    peer = peers.PEERS[name]()
    run = peer.runner(cell, sets)
    with peer.context(), torch.no_grad():
        run(0)
    torch.cuda.synchronize()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--problem", help="D,MASK,S, or as fagen prints it")
    p.add_argument("--config", help="this config; default: what fa_launch chooses")
    p.add_argument("--peer", help="profile cudnn, fa2 or fa3 instead")
    p.add_argument("--csv", metavar="FILE", help="analyse this output of ncu --csv; profile nothing")
    p.add_argument("--save", metavar="FILE", help="keep ncu's CSV")
    p.add_argument("--json", metavar="FILE", help="write the analysis")
    p.add_argument("--ncu", help="the program (default: from the PATH)")
    p.add_argument("--once", help=argparse.SUPPRESS)
    o = p.parse_args()
    try:
        cell = cells.parse(o.problem) if o.problem else None
    except ValueError as e:
        p.error(str(e))
    if not cell and not o.csv:
        p.error("--problem is missing")
    if o.once:
        return once(o.once, cell)
    try:
        if o.csv:
            with open(o.csv) as f:
                text, absent = f.read(), []
        else:
            text, absent = ncu.profile(*command(o, cell), wanted(), o.ncu)
        if o.save:
            with open(o.save, "w") as f:
                f.write(text)
        found = [analyse(k, cell) for k in ncu.parse(text)]
    except ncu.Error as e:
        raise SystemExit(str(e)) from None
    if cell:
        print(f"{cell.name()}, {o.peer or o.config or 'as chosen'}\n")
    print("\n\n".join(shown(a) for a in found))
    if absent:
        print("\n  This ncu does not have: " + ", ".join(absent))
    if o.json:
        with open(o.json, "w") as f:
            json.dump(found, f, indent=1)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
