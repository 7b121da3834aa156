/* Small entries whose keys follow from their descriptions, as real ones' do, without a compiler. */
#ifndef TEST_CACHE_ENTRIES_H
#define TEST_CACHE_ENTRIES_H
#include "cache/entry.h"
#include "cache/metadata.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline fa_metadata metadata_of(uint64_t n)
{
    fa_metadata a = { .text = { n, ~n }, .n_options = 2, .format = FA_FORMAT_VERSION };
    strcpy(a.problem, "bf16,d=64,dv=64,mask=none,o=bf16,align=16");
    snprintf(a.config, sizeof a.config, "flash_fwd_mma:br=%d,bc=64,warps=4", (int)(n % 1000));
    strcpy(a.source, "test.cu");
    strcpy(a.options[0], "--gpu-architecture=sm_80");
    strcpy(a.options[1], "--std=c++17");
    strcpy(a.arch, "sm_80");
    strcpy(a.compiler, "nvrtc 13.0 feed");
    strcpy(a.fagen, "0.1.0");
    strcpy(a.date, "2026-11-21T04:31:00Z");
    return a;
}

/* The n-th byte of the image of entry n: every entry is another. */
static inline char image_byte(uint64_t n, size_t i)
{
    return (char)(n * 31 + i * 7 + i / 251);
}

static inline fa_entry entry_made(uint64_t n, size_t size)
{
    fa_metadata a = metadata_of(n);
    fa_entry e = { .key = fa_metadata_key(&a), .arch = "sm_80", .ptx = 0, .image_size = size };
    fa_text t = { 0 };
    if (!fa_metadata_print(&a, &t) || !(e.image = malloc(size + 1)))
        abort();
    for (size_t i = 0; i < size; i++)
        e.image[i] = image_byte(n, i);
    e.image[size] = 0;
    e.log = strdup("a log");
    e.log_size = 5;
    e.metadata = t.s;
    e.metadata_size = t.n;
    return e;
}

static inline fa_key key_made(uint64_t n)
{
    fa_metadata a = metadata_of(n);
    return fa_metadata_key(&a);
}

/* 1: a hit with the bytes of entry n. 0: a miss. -1: bytes of something else. */
static inline int entry_hit(fa_store *s, uint64_t n, size_t size)
{
    fa_entry e;
    if (!fa_entry_get(s, key_made(n), "sm_80", &e))
        return 0;
    int good = e.image_size == size;
    for (size_t i = 0; i < size && good; i++)
        good = e.image[i] == image_byte(n, i);
    fa_entry_free(&e);
    return good ? 1 : -1;
}

static inline bool entry_put(fa_store *s, uint64_t n, size_t size)
{
    fa_entry e = entry_made(n, size);
    bool ok = fa_entry_put(s, &e);
    fa_entry_free(&e);
    return ok;
}
#endif
