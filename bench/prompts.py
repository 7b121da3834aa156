#!/usr/bin/env python3
"""Prompts beside their peers on one GPU in one run: sequences of their own lengths, chunks of prompts, mixed batches; in CUDA graphs,
interleaved, as decode.py does it.

Sections, all of them where none is named:
    packed     16k and 64k tokens of prompts end to end, of equal, uniform and log-uniform lengths
    chunks     512 to 8k new tokens after 8k to 128k of cache, contiguous and in pages
    mixed      chunks beside the tokens of others in one launch, and in two
    dense      48 dense batches of lengths that are no power of two, with the 95 % interval of each ratio
    bits       one sequence in 200 batches: the same bits each time, where the flag asks for them?
    invariant  what that flag costs on the table of decode.py
Every output is held against attention in fp32 before its contender is timed, and once more after it. The results go to a JSON file after
each case; the tables are made from it, here or later.

    python3 bench/prompts.py --seconds 500 -o prompts.json
    python3 bench/prompts.py chunks mixed --only 'd=128' --page 16
    python3 bench/prompts.py --replay prompts.json      needs neither PyTorch nor a GPU
    python3 bench/prompts.py --dry-run                  all sections at small sizes on the CPU, by stand-ins; needs PyTorch
    python3 bench/prompts.py --dry-run --simulator sm_90a bits
"""
import argparse
import sys

from sections import decode_cases
from sections import prompts_cases
from sections import prompts_report
from sections import section_run
from sections.decode_report import wrong

SECTIONS = ("packed", "chunks", "mixed", "dense", "bits", "invariant")
LEAST_OF_BITS = 20  # seconds that a case of bits may take, however short the time is: it has batches, not rounds


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    section_run.add_options(p, SECTIONS, "prompts")
    p.add_argument("--page", type=section_run.numbers, default=prompts_cases.PAGE_SIZES, metavar="N,..",
                   help="page sizes of the sections chunks and mixed (default 16,64)")
    p.add_argument("--batches", type=int, default=200, help="of the section bits (default 200)")
    p.add_argument("--dry-run", action="store_true", help="small sizes on the CPU: shows that the scripts run, and times nothing")
    p.add_argument("--simulator", metavar="ARCH", help="with --dry-run: fagen itself launches, on the simulator of sm_80 or sm_90a")
    o = section_run.read_options(p, argv, SECTIONS, "prompts", (("batches", 2),))
    if not o.page or min(o.page) < 1:
        p.error(f"--page is {o.page}; accepted: numbers of tokens, 1 and more")
    if o.simulator and not o.dry_run:
        p.error("--simulator is given without --dry-run; accepted: both")
    return o


def jobs(options):
    """(section, case) in the order in which they are measured."""
    cases = {"packed": prompts_cases.PACKED, "chunks": prompts_cases.CHUNKS, "mixed": prompts_cases.MIXED, "dense": prompts_cases.DENSE,
             "bits": prompts_cases.WATCHED, "invariant": decode_cases.TABLE}
    return [(s, c) for s in options.sections for c in decode_cases.select(cases[s], options.only)]


def measure(lab, options, section, case, seconds):
    from sections import prompts_bits
    from sections import prompts_sections
    return {"packed": lambda: prompts_sections.packed(lab, case, seconds),
            "chunks": lambda: prompts_sections.chunks(lab, case, seconds, options.page),
            "mixed": lambda: prompts_sections.mixed(lab, case, seconds, options.page),
            "dense": lambda: prompts_sections.dense(lab, case, seconds),
            "bits": lambda: prompts_bits.bits(lab, case, seconds and max(seconds, LEAST_OF_BITS), options.batches),
            "invariant": lambda: prompts_sections.invariant(lab, case, seconds)}[section]()


def run(options):
    if options.dry_run:
        from sections import prompts_rehearsal
        lab, some = prompts_rehearsal.Lab(options), prompts_rehearsal.small(jobs(options))
    else:
        from sections import decode_lab
        from sections import prompts_peers
        lab = decode_lab.Lab(options.config, options.without, options.rounds, options.lasts, options.seed, peers=prompts_peers.PEERS)
        some = jobs(options)
    return section_run.Run(options, lab, measure).all(some)


def main():
    options = parse()
    return section_run.main(options, jobs(options), lambda: run(options), prompts_report.markdown, wrong)


if __name__ == "__main__":
    sys.exit(main())
