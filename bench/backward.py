#!/usr/bin/env python3
"""Gradients beside their peers on one GPU in one run: fa_launch with op = FA_BACKWARD, the forward left out; in CUDA graphs, interleaved,
as decode.py does it. Data is random, 16k tokens.

Sections, all where none is named:
    mha    d 64, 96, 128, 192, 256, causal and without a mask, heads 2048 wide together
    gqa    d 128, likewise, with heads of queries to heads of keys as 64/8, 32/4 and 16/4
    packed d 64, 128 with heads 2048 wide, and 128 with 32/8, causal and without a mask: sequences end to end by cu_seqlens, of 2048 tokens
           each, uniform up to 4095, log-uniform from 16 to 16384; beside them flash_bwd_mma as `mma`, and equal lengths as a dense batch
Dense lengths are 16k, 8k, 2k and 512, the most telling cases first; --all adds 4k and 1k. Every gradient is held against fp32 before its
contender is timed, and once more after it. With --off-grid SEEDS the
cases are --count random ones of each section and seed in the place of the grid; of each kind, as `packed d=64 causal heads`, the first
--each. The results go to a JSON file after each case; the tables are made from it, here or later.

    python3 bench/backward.py --seconds 400 -o backward.json
    python3 bench/backward.py --cells 'd=128.*s=(16384|512),' --deterministic
    python3 bench/backward.py --cells 'd=64,' --family flash_bwd_mma --config 'flash_bwd_mma:br=64,bc=128'
    python3 bench/backward.py packed --cells 'd=128.*log-uniform' --rounds 3
    python3 bench/backward.py --replay backward.json       needs neither PyTorch nor a GPU
    python3 bench/backward.py --dry-run                    small sizes on the CPU, by stand-ins; needs PyTorch
    python3 bench/backward.py --dry-run --simulator sm_90a --cells 'd=64,'
"""
import argparse
import re
import sys

from sections import backward_cases
from sections import backward_report
from sections import section_run
from sections.decode_report import wrong

SECTIONS = backward_cases.SECTIONS


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    section_run.add_options(p, SECTIONS, "backward")
    p.add_argument("--cells", metavar="REGEX", help="the same as --only")
    p.add_argument("--all", action="store_true", help="lengths of 4k and 1k too")
    p.add_argument("--off-grid", type=backward_cases.seeds_of, metavar="SEEDS",
                   help="random heads, batches and lengths at d 64, 96 and 128 in the place of the grid, by a seed or some: 701-704")
    p.add_argument("--count", type=int, default=30, help="with --off-grid: cases of each section and seed (default 30)")
    p.add_argument("--each", type=int, help="with --off-grid: the first so many of each section, head_dim, mask, and of groups or none")
    p.add_argument("--family", action="append", default=[], metavar="NAME",
                   help="the config of this family that the model takes for the fastest, beside what fa_launch chooses; may be given again")
    p.add_argument("--deterministic", action="store_true",
                   help="each of fagen's kernels with FA_DETERMINISTIC too, and FlashAttention-4's at every head_dim")
    p.add_argument("--dry-run", action="store_true", help="small sizes on the CPU: shows that the scripts run, and times nothing")
    p.add_argument("--simulator", metavar="ARCH", help="with --dry-run: fagen itself launches, on the simulator of sm_80 or sm_90a")
    o = section_run.read_options(p, argv, SECTIONS, "backward")
    if o.cells and o.only:
        p.error("--cells and --only are two ways to say one thing; accepted: one of them")
    o.only = o.only or o.cells
    try:
        re.compile(o.only or "")
    except re.error as e:
        p.error(f"--cells is \"{o.only}\": {e}; accepted: a regular expression of Python")
    if o.simulator and not o.dry_run:
        p.error("--simulator is given without --dry-run; accepted: both")
    o.config = o.family + o.config
    return o


def jobs(options):
    """(section, case) in the order in which they are measured."""
    if options.off_grid is None:
        some = backward_cases.cases(options.sections, backward_cases.LENGTHS if options.all else backward_cases.QUICK)
    else:
        some = backward_cases.off_grid(options.sections, options.off_grid, options.count, options.each)
    return [(s, c) for s, c in some if re.search(options.only or "", c.name())]


def measure(lab, options, section, case, seconds):
    from sections import backward_sections
    of = backward_sections.packed if section == "packed" else backward_sections.gradients
    return of(lab, case, seconds, options.deterministic)


def lever(options, some):
    """Whether configs are named: by the user, or by the contenders of packed sequences."""
    return bool(options.config) or ("packed" in (s for s, _ in some) and not set(backward_cases.FORCED) <= set(options.without))


def run(options):
    if options.dry_run:
        from sections import backward_rehearsal
        some = backward_rehearsal.small(jobs(options))
        lab = backward_rehearsal.Lab(options, lever(options, some))
    else:
        from sections import backward_peers
        from sections import backward_sections
        some = jobs(options)
        lab = backward_sections.Lab(options.config, options.without, options.rounds, options.lasts, options.seed,
                                    peers=backward_peers.PEERS, lever=lever(options, some))
    return section_run.Run(options, lab, measure, backward_report.line).all(some)


def main():
    options = parse()
    return section_run.main(options, jobs(options), lambda: run(options), backward_report.markdown, wrong)


if __name__ == "__main__":
    sys.exit(main())
