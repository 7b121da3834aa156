/* root: the names of what lies in one, and the advice that is told once per store. */
#include "root.h"
#include "trusted_file.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *fa_area_name(fa_area b)
{
    static const char *const areas[FA_AREAS] = { "kernels", "foreign", "quarantine" };
    return areas[b];
}

bool fa_root_refused(const fa_root *r)
{
    return r->trouble[0] && strcmp(r->trouble, strerror(ENOENT)) != 0;
}

void fa_entry_name(char out[FA_NAME_SIZE], fa_key k)
{
    fa_key_print(out, k);
    memcpy(out + 32, ".fak", 5);
}

int fa_root_folder(const fa_root *r, fa_key k, char name[FA_NAME_SIZE], int *kernels, const char **trouble)
{
    char folder[3];
    fa_entry_name(name, k);
    snprintf(folder, sizeof folder, "%.2s", name);
    *kernels = fa_trusted_dir(r->v1, "kernels", false, trouble);
    return *kernels < 0 ? -1 : fa_trusted_dir(*kernels, folder, false, trouble);
}

void fa_store_advise(fa_store *s, fa_cause cause, const char *fmt, ...)
{
    unsigned kept = FA_CAUSE_PUT | FA_CAUSE_RECORD; /* what keeps out the one keeps out the other: one word for both */
    unsigned told = (unsigned)cause & kept ? kept : (unsigned)cause;
    if (!s->warn || (atomic_fetch_or(&s->told, told) & told))
        return;
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    s->warn(s->user, message);
}
