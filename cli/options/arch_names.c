/* arch_names: the rows and products of gen/arch.h. */
#include "arch_names.h"
#include "args.h"
#include "gen/error.h"
#include <string.h>

static const char simulator[] = "sim:";

/* The i-th name that --arch takes: architectures, then products; NULL past the last. */
static const char *name_at(const void *user, size_t i)
{
    const char *product;
    (void)user;
    if (i < fa_arch_count())
        return fa_arch_at(i)->name; /* that of two products comes twice */
    return fa_arch_product(i - fa_arch_count(), &product) ? product : NULL;
}

/* Of n letters of text. */
static fa_status find(const fa_arch **out, const char *option, const char *before, const char *text, size_t n)
{
    char name[48];
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, text);
    *out = fa_arch_find(name);
    if (*out)
        return FA_OK;
    const char *near = cli_nearest(name, name_at, NULL);
    return fa_fail(FA_INVALID,
                   "--%s is \"%s%.*s\"%s%s%s%s accepted: %s%s, or a product such as a100, h100 or l40s (fagen archs lists them)", option,
                   before, n < 40 ? (int)n : 40, text, near ? "; did you mean " : "", near ? before : "", near ? near : "",
                   near ? "?" : ";", before[0] ? "after sim: " : "", fa_arch_names());
}

fa_status cli_arch_find(const fa_arch **out, const char *option, const char *name)
{
    return find(out, option, "", name, strlen(name));
}

static bool is_simulator(const char *device)
{
    return !strncmp(device, simulator, sizeof simulator - 1);
}

fa_status cli_device_check(const char *option, const char *device)
{
    const fa_arch *a;
    fa_status st = FA_OK;
    if (!is_simulator(device))
        return FA_OK;
    for (const char *s = device + sizeof simulator - 1; st == FA_OK;) {
        size_t n = strcspn(s, ",:");
        if (strncmp(s, "sm_", 3)) /* the simulator knows more archs than are tuned for */
            st = find(&a, option, simulator, s, n);
        s += n;
        if (*s != ',')
            break;
        s++;
    }
    return st;
}

const fa_arch *cli_device_arch(const char *device)
{
    char name[48];
    if (!is_simulator(device))
        return NULL;
    device += sizeof simulator - 1;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(device, ",:"), device);
    return fa_arch_find(name);
}
