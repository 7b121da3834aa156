/* Kernels made by the fake compiler on fa_build_image()'s own path. */
#ifndef TEST_CACHE_FAKE_H
#define TEST_CACHE_FAKE_H
#include "fake_compiler.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>

static struct fake_compiler *fake;

/* After scratch_make(). */
static inline void fake_make(void)
{
    const char *path = below("fake");
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *fake) != 0)
        abort();
    fake = mmap(NULL, sizeof *fake, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fake == MAP_FAILED)
        abort();
    close(fd);
    setenv("FAKE_COMPILER", path, 1);
}

static inline fa_source fake_source(unsigned key)
{
    static char text[64];
    fa_source s;
    memset(&s, 0, sizeof s);
    snprintf(text, sizeof text, "the text of key %u", key);
    s.text = s.lined = text;
    s.text_size = strlen(text);
    s.hash[0] = key;
    s.hash[1] = ~(uint64_t)key;
    snprintf(s.name, sizeof s.name, "key%u.cu", key);
    return s;
}

/* 0: it came from the cache; 1: it was compiled; 2: neither, or another's bytes. */
static inline int fake_build(fa_store *store, fa_compiler *c, unsigned key)
{
    fa_source s = fake_source(key);
    fa_entry e;
    bool cached;
    if (fa_build_image(store, c, &s, "sm_80", 0, (fa_subject){ NULL, NULL }, false, &e, &cached) != FA_OK)
        return 2;
    int rc = strcmp(e.image, s.text) ? 2 : !cached;
    fa_entry_free(&e);
    return rc;
}

static inline fa_compiler *fake_compiler(void)
{
    const char *path = getenv("FAGEN_FAKE_COMPILER");
    cr_assert_not_null(path, "FAGEN_FAKE_COMPILER names the fake compiler; ctest sets it");
    return fa_compiler_open(path);
}
#endif
