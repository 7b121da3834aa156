/* version: which library runs: that of the project, in CMakeLists.txt. */
#include <fagen.h>

_Static_assert(FA_PROJECT_VERSION == FA_VERSION_MAJOR * 10000 + FA_VERSION_MINOR * 100 + FA_VERSION_PATCH,
               "runtime/fagen.h names another version than CMakeLists.txt");

uint32_t fa_version(void)
{
    return FA_PROJECT_VERSION;
}
