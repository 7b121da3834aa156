/* reference: times that were measured once on a chip and travel with the command, so that the design space opens with clocks where
 * nothing was tuned yet. They rank and explain; what is launched never depends on them.
 *
 * A table is a text of lines, fields parted by tabs, made by bench/reference.py and embedded from cli/reference/:
 *   product, chip, arch, version, compiler, driver NAME   of every row; product: fa_arch's name of the chip
 *   quality WORD ...                                      the names that rows count from 1; 0 is none
 *   problem TEXT DATE                                     of the rows below, in the order in which the search tried them
 *   family NAME TUNABLE ...                               of the rows below
 *   VALUE ... us low high warm spread count MHz degrees registers quality
 * Times are in microseconds. Empty is not known. Lines that begin with # are for people. */
#ifndef FA_CLI_EXPLORE_REFERENCE_H
#define FA_CLI_EXPLORE_REFERENCE_H
#include "cache/record.h"

/* The rows of the problem's class that were measured on the chip of the arch, as records, oldest first; none where there is no table of
 * that chip. `source` is zero: a row does not know the text of its kernel. The caller frees them with fa_records_free. */
fa_records cli_reference_load(const fa_problem *p, const fa_arch *a);

/* The same from one table's text, for tests. */
fa_records cli_reference_parse(const char *text, const fa_problem *p, const fa_arch *a);
#endif
