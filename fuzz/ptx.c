/* ptx: the simulator's reader of PTX, from text to decoded instructions. */
#include "fuzz.h"
#include "sim/program.h"

static uint64_t place(void *next, const sim_variable *v)
{
    uint64_t at = *(uint64_t *)next;
    *(uint64_t *)next += v->size;
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size, 1), error[1024];
    uint64_t next = 0x10000000;
    sim_module *m = sim_module_load(text, strlen(text), place, &next, error);
    FUZZ_CHECK(m ? !error[0] : error[0] && memchr(error, 0, sizeof error));
    for (uint32_t k = 0; m && k < m->nkernels; k++)
        FUZZ_CHECK(m->kernels[k].name);
    sim_module_free(m);
    free(text);
    return 0;
}
