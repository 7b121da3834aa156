/* log: what ptxas says of a kernel; a cache entry carries it. */
#include "fuzz.h"
#include "runtime/build/resources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_copy(data, size, 1);
    fa_resources r = fa_resources_parse(s, "k");
    FUZZ_CHECK(memchr(r.note, 0, sizeof r.note));
    free(s);
    return 0;
}
