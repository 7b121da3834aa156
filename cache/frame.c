/* frame: an entry as the bytes of its file, and back; what does not check is not taken apart. */
#include "entry.h"
#include "root.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header is written as it lies in memory, little-endian");

typedef struct header {
    char magic[8];
    uint32_t version, ptx;
    uint64_t key_lo, key_hi;
    char arch[16];
    uint64_t metadata_size, image_size, log_size; /* in this order after the header, then the checksum */
} header;
_Static_assert(sizeof(header) == 72, "no padding");

const char fa_entry_no_memory[] = "out of memory";

static const char magic[8] = "fagen.K\n";
#define SUM_SIZE sizeof(XXH128_canonical_t)

void fa_entry_free(fa_entry *e)
{
    if (!e)
        return;
    free(e->image);
    free(e->log);
    free(e->metadata);
    memset(e, 0, sizeof *e);
}

static char *copy(const char *from, uint64_t n)
{
    char *to = malloc(n + 1);
    if (to) {
        memcpy(to, from, n);
        to[n] = 0;
    }
    return to;
}

const char *fa_entry_unpack(fa_entry *out, const char *bytes, size_t size, bool with_image)
{
    header h;
    memset(out, 0, sizeof *out);
    if (size < sizeof h + SUM_SIZE)
        return "shorter than a header";
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return "not a kernel entry";
    if (h.version != FA_FORMAT_VERSION)
        return "another format version";
    uint64_t room = size - sizeof h - SUM_SIZE;
    if (h.metadata_size > room || h.image_size > room - h.metadata_size || h.log_size != room - h.metadata_size - h.image_size)
        return "lengths do not add up";
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, size - SUM_SIZE));
    if (memcmp(&sum, bytes + size - SUM_SIZE, SUM_SIZE) != 0)
        return "checksum does not match";
    if (h.ptx > 1 || memchr(h.arch, 0, sizeof out->arch) == NULL)
        return "fields out of range";
    out->key = (fa_key){ h.key_lo, h.key_hi };
    memcpy(out->arch, h.arch, sizeof out->arch);
    out->ptx = (int32_t)h.ptx;
    out->metadata_size = h.metadata_size;
    out->image_size = h.image_size;
    out->log_size = h.log_size;
    const char *p = bytes + sizeof h;
    out->metadata = copy(p, h.metadata_size);
    out->image = with_image ? copy(p + h.metadata_size, h.image_size) : NULL;
    out->log = copy(p + h.metadata_size + h.image_size, h.log_size);
    if (!out->metadata || !out->log || (with_image && !out->image)) {
        fa_entry_free(out);
        return fa_entry_no_memory;
    }
    return NULL;
}

char *fa_entry_pack(const fa_entry *e, size_t *size)
{
    header h = { .version = FA_FORMAT_VERSION,
                 .ptx = e->ptx ? 1 : 0,
                 .key_lo = e->key.lo,
                 .key_hi = e->key.hi,
                 .metadata_size = e->metadata_size,
                 .image_size = e->image_size,
                 .log_size = e->log_size };
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.arch, e->arch, sizeof e->arch);
    const struct {
        const void *bytes;
        size_t size;
    } part[] = { { &h, sizeof h }, { e->metadata, e->metadata_size }, { e->image, e->image_size }, { e->log, e->log_size } };
    size_t n = SUM_SIZE;
    for (size_t i = 0; i < 4; i++) {
        if (part[i].size > FA_FILE_CAP)
            return NULL;
        n += part[i].size;
    }
    char *buf = n > FA_FILE_CAP ? NULL : malloc(n);
    if (!buf)
        return NULL;
    char *p = buf;
    for (size_t i = 0; i < 4; i++)
        if (part[i].size) {
            memcpy(p, part[i].bytes, part[i].size);
            p += part[i].size;
        }
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(buf, n - SUM_SIZE));
    memcpy(p, &sum, SUM_SIZE);
    *size = n;
    return buf;
}
