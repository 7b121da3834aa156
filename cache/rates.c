/* rates: what probes measured on a chip. */
#include "rates.h"
#include "root.h"
#include "trusted_file.h"
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "rates.json"
#define BYTES 4096

static const struct {
    const char *name;
    size_t at;
} fields[] = { { "mma16", offsetof(fa_rates, mma16) },         { "wgmma16", offsetof(fa_rates, wgmma16) },
               { "exps", offsetof(fa_rates, exps) },           { "l2_bytes", offsetof(fa_rates, l2_bytes) },
               { "hbm_bytes", offsetof(fa_rates, hbm_bytes) }, { "launch", offsetof(fa_rates, launch) },
               { "clock", offsetof(fa_rates, clock) } };
#define FIELDS (sizeof fields / sizeof *fields)

/* The folder of the chip's records below a root. */
static int folder(const fa_root *r, const char *chip, bool make)
{
    char name[64];
    const char *trouble;
    int records = r->v1 < 0 ? -1 : fa_trusted_dir(r->v1, "records", make, &trouble);
    fa_file_name(name, sizeof name, chip, "");
    int dir = records < 0 ? -1 : fa_trusted_dir(records, name, make, &trouble);
    if (records >= 0)
        close(records);
    return dir;
}

bool fa_rates_save(fa_store *s, const char *chip, const char *date, const fa_rates *r)
{
    char temporary[48];
    const char *trouble;
    json_t *j = json_pack("{s:s,s:s}", "chip", chip, "date", date);
    for (size_t i = 0; i < FIELDS; i++) {
        double v;
        memcpy(&v, (const char *)r + fields[i].at, sizeof v);
        json_object_set_new(j, fields[i].name, json_real(isfinite(v) ? v : 0));
    }
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(j);
    int dir = text && s->writer >= 0 ? folder(&s->root[s->writer], chip, true) : -1, fd = -1;
    /* whole or not at all: written beside, then renamed */
    snprintf(temporary, sizeof temporary, "." FILE_NAME ".%ld", (long)getpid());
    if (dir >= 0)
        fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && fa_write_all(fd, text, strlen(text), &trouble) && fsync(fd) == 0;
    if (fd >= 0)
        ok &= close(fd) == 0;
    ok = ok && renameat(dir, temporary, dir, FILE_NAME) == 0;
    if (fd >= 0 && !ok)
        unlinkat(dir, temporary, 0);
    if (dir >= 0)
        close(dir);
    free(text);
    return ok;
}

static bool read_in(int dir, fa_rates *out)
{
    char *bytes = NULL;
    size_t n = 0;
    const char *trouble;
    if (fa_trusted_read(dir, FILE_NAME, BYTES, &bytes, &n, NULL, &trouble) != FA_FILE_OK)
        return false;
    json_t *j = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
    bool ok = json_is_object(j);
    for (size_t i = 0; i < FIELDS && ok; i++) {
        double v = json_number_value(json_object_get(j, fields[i].name));
        v = isfinite(v) && v > 0 ? v : 0;
        memcpy((char *)out + fields[i].at, &v, sizeof v);
    }
    json_decref(j);
    free(bytes);
    return ok;
}

bool fa_rates_load(fa_store *s, const char *chip, fa_rates *out)
{
    *out = (fa_rates){ 0 };
    for (size_t i = 0; i < s->n; i++) {
        int dir = folder(&s->root[i], chip, false);
        if (dir < 0)
            continue;
        bool ok = read_in(dir, out);
        close(dir);
        if (ok)
            return true;
    }
    return false;
}
