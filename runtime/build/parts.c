/* parts: a magic word, how many there are, their sizes; then the bytes of each at a multiple of 16. */
#include "parts.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 16

static const char magic[8] = "FAGPARTS";

static size_t aligned(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t head_of(uint64_t n)
{
    return aligned(sizeof magic + sizeof n + n * sizeof(uint64_t));
}

bool fa_parts_join(fa_entry *out, const fa_entry *part, int n)
{
    uint64_t count = (uint64_t)n;
    size_t at = head_of(count), size = at, log = 0;
    for (int i = 0; i < n; i++) {
        size += aligned(part[i].image_size);
        log += part[i].log_size;
    }
    out->image = calloc(1, size + 1);
    out->log = calloc(1, log + 1);
    if (!out->image || !out->log)
        return false; /* the caller frees both */
    memcpy(out->image, magic, sizeof magic);
    memcpy(out->image + sizeof magic, &count, sizeof count);
    for (int i = 0; i < n; i++) {
        uint64_t bytes = part[i].image_size;
        memcpy(out->image + sizeof magic + (1 + (size_t)i) * sizeof bytes, &bytes, sizeof bytes);
        memcpy(out->image + at, part[i].image, part[i].image_size);
        at += aligned(part[i].image_size);
        memcpy(out->log + out->log_size, part[i].log, part[i].log_size);
        out->log_size += part[i].log_size;
    }
    out->image_size = size;
    return true;
}

int fa_parts_of(const char *image, size_t size, fa_part *out, int most)
{
    uint64_t n, bytes;
    if (size < sizeof magic + sizeof n || memcmp(image, magic, sizeof magic) != 0) {
        *out = (fa_part){ image, size };
        return 1;
    }
    memcpy(&n, image + sizeof magic, sizeof n);
    if (n < 1 || n > (uint64_t)most || head_of(n) > size)
        return 0;
    size_t at = head_of(n);
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&bytes, image + sizeof magic + (1 + i) * sizeof bytes, sizeof bytes);
        if (bytes > size - at || aligned(bytes) > size - at)
            return 0;
        out[i] = (fa_part){ image + at, bytes };
        at += aligned(bytes);
    }
    return (int)n;
}
