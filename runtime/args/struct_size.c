/* struct_size: bounds, then zeros. */
#include "struct_size.h"
#include "gen/error.h"

#define MOST 4096 /* bytes of a struct of any header, to come too */

fa_status fa_struct_size_check(const void *s, uint32_t size, size_t least, size_t known, const char *name)
{
    if (size < least || size > MOST)
        return fa_fail(FA_INVALID,
                       "%s: size is %u; accepted: sizeof(fa_%s) = %zu, set by its INIT macro; of another version's header %zu to %d", name,
                       size, name, known, least, MOST);
    for (size_t i = known; i < size; i++)
        if (((const char *)s)[i])
            return fa_fail(FA_INVALID, "%s: size is %u and byte %zu is set; this library knows %zu bytes: it is older than the header",
                           name, size, i, known);
    return FA_OK;
}
