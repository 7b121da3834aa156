/* version: which library runs. */
#include <fagen.h>

uint32_t fa_version(void)
{
    return FA_VERSION_MAJOR * 10000 + FA_VERSION_MINOR * 100 + FA_VERSION_PATCH;
}
