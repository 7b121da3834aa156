#!/usr/bin/env python3
"""Decoding beside its peers on one GPU in one run: a few query rows against a long cache, in CUDA graphs, interleaved.

Sections, all of them where none is named:
    table    25 dense cases, L2 warm: every call of a graph reads the same tensors
    cold     the same cases, with so many K and V in turn that the L2 holds none of them
    pages    pages of 16 to 256 tokens and of 1, in shuffled order, beside the same keys and values without pages
    ragged   64 and 256 sequences whose lengths differ, in device memory
    host     the host's time of a hot launch over 80 layers; one graph replayed with other lengths each time
Every output is held against attention in fp32 before its contender is timed, and once more after it. The results go to a JSON file after
each case; the tables are made from it, here or later.

    python3 bench/decode.py --seconds 400 -o decode.json
    python3 bench/decode.py table cold --only 'sq=4|sk=1024'
    python3 bench/decode.py table --only 'sq=1,sk=8192,d=128' --config 'flash_fwd_mma:br=16,bc=64'
    python3 bench/decode.py --replay decode.json       needs neither PyTorch nor a GPU
"""
import argparse
import sys

from sections import decode_cases
from sections import decode_report
from sections import section_run
from sections.section_run import numbers

SECTIONS = ("table", "cold", "pages", "ragged", "host")


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    section_run.add_options(p, SECTIONS, "decode")
    p.add_argument("--page", type=numbers, default=decode_cases.PAGE_SIZES, metavar="N,..", help="page sizes of the section pages")
    p.add_argument("--page-cold", action="store_true", help="the section pages with the L2 cold")
    p.add_argument("--replays", type=int, default=1000, help="of the section host (default 1000)")
    o = section_run.read_options(p, argv, SECTIONS, "decode", (("replays", 1),))
    if not o.page or min(o.page) < 1:
        p.error(f"--page is {o.page}; accepted: numbers of tokens, 1 and more")
    return o


def jobs(options):
    """(section, case) in the order in which they are measured; the case of host is None."""
    cases = {"table": decode_cases.TABLE, "cold": decode_cases.TABLE, "pages": decode_cases.PAGED, "ragged": decode_cases.RAGGED}
    out = [(s, c) for s in options.sections if s in cases for c in decode_cases.select(cases[s], options.only)]
    return out + [("host", None)] * ("host" in options.sections)


def measure(lab, options, section, case, seconds):
    from sections import decode_host
    from sections import decode_sections
    if section == "host":
        found = decode_host.host(lab, options.replays, seconds=seconds)
        print(decode_report.host_text(found), flush=True)
        return found
    return {"table": lambda: decode_sections.dense(lab, case, seconds),
            "cold": lambda: decode_sections.dense(lab, case, seconds, cold=True),
            "pages": lambda: decode_sections.pages(lab, case, seconds, options.page, options.page_cold),
            "ragged": lambda: decode_sections.ragged(lab, case, seconds)}[section]()


def run(options):
    from sections import decode_lab
    lab = decode_lab.Lab(options.config, options.without, options.rounds, options.lasts, options.seed)
    return section_run.Run(options, lab, measure).all(jobs(options))


def main():
    options = parse()
    return section_run.main(options, jobs(options), lambda: run(options), decode_report.markdown, decode_report.wrong)


if __name__ == "__main__":
    sys.exit(main())
