/* Registers of A that wgmma reads are never those that a load alone writes: ptxas 13.0 gives registers that a bare load wrote before a
 * loop, and that wgmma reads in it, to the probabilities, too. The simulator runs the text and cannot see it. */
#include "test_cli_run.h"
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(loaded_operands, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 120);

#define REGISTERS 16384

/* The number of the next %r before end; *at comes after it. -1: none. */
static int next_register(const char **at, const char *end)
{
    const char *r = *at;
    while (r < end && strncmp(r, "%r", 2))
        r++;
    if (r >= end)
        return -1;
    char *after;
    const long n = strtol(r + 2, &after, 10);
    *at = after > r + 2 ? after : r + 2;
    return after > r + 2 ? (int)n : next_register(at, end); /* %rd is an address */
}

static void operands_are_chosen(const char *words)
{
    static bool loaded[REGISTERS], moved[REGISTERS]; /* by ld.global; by mov, as where a row that is not there is zeros */
    int products = 0, loads = 0;
    cli_result r = cli_run(words);
    cr_assert_eq(r.code, 0, "%s: %s", words, r.err);
    memset(loaded, 0, sizeof loaded);
    memset(moved, 0, sizeof moved);
    for (const char *at = r.out; (at = strstr(at, "mov.u32"));) {
        const char *const end = strchr(at, ',');
        const int n = next_register(&at, end);
        if (n >= 0 && n < REGISTERS)
            moved[n] = true;
        at = end;
    }
    for (const char *at = r.out; (at = strstr(at, "ld.global")); loads++) {
        const char *const end = strchr(at, '[');
        for (int n; (n = next_register(&at, end)) >= 0;)
            if (n < REGISTERS)
                loaded[n] = true;
        at = end;
    }
    for (const char *at = r.out; (at = strstr(at, "wgmma.mma_async")); products++) {
        const char *a = strchr(strchr(at, '}'), '{'), *const line = strchr(at, '\n');
        if (!a || a > line) { /* A lies in shared memory */
            at = line;
            continue;
        }
        const char *const end = strchr(a, '}');
        for (int n; (n = next_register(&a, end)) >= 0;) {
            cr_assert_lt(n, REGISTERS);
            cr_expect(!loaded[n] || moved[n], "%s: %%r%d goes from a load to a product", words, n);
        }
        at = end;
    }
    cr_expect_geq(products, 4, "%s: %d products", words, products);
    cr_expect_geq(loads, 8, "%s: %d loads", words, loads);
    cli_result_free(&r);
}

Test(loaded_operands, of_few_rows_on_wgmma_are_chosen)
{
    operands_are_chosen(
        "emit --arch sm_90a --format ptx -o - -d 64 -t fp16 --causal -c "
        "decode_wgmma:br=64,bk=64,row_warps=4,key_warps=1,stages=4,ctas=2,kv_lanes=8,combine=second_kernel,sm_shares=1,min_turns=4");
    operands_are_chosen(
        "emit --arch sm_90a --format ptx -o - -d 128 -t bf16 -c "
        "decode_wgmma:br=64,bk=64,row_warps=4,key_warps=2,stages=3,ctas=1,kv_lanes=1,combine=last_block,sm_shares=1,min_turns=4");
}
