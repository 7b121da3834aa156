/* npy: a tensor's file. What is accepted is read to its last element. */
#include "cli/files/npy.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_copy(data, size, 0);
    cli_npy a;
    volatile double sum = 0;
    if (cli_npy_parse(&a, "input", s, size) == FA_OK) {
        FUZZ_CHECK(a.n >= 0 && a.n <= CLI_NPY_DIMS && (cli_npy_has_integers(&a) || a.dtype == FA_F16 || a.dtype == FA_F32));
        for (size_t i = 0; i < a.count; i++)
            sum += cli_npy_has_integers(&a) ? (double)cli_npy_integer(&a, i) : (double)cli_npy_at(&a, i);
    }
    (void)sum; /* volatile: the reads are what is tested */
    free(s);
    return 0;
}
