/* A context on the driver that only remembers, with a cache of its own or bare. */
#ifndef FA_TESTS_FAKE_CONTEXT_H
#define FA_TESTS_FAKE_CONTEXT_H
#include "fake_driver.h"
#include "runtime/runtime.h"
#include "test_cache_scratch.h"
#include <criterion/criterion.h>
#include <stdatomic.h>

#define OK(call) cr_assert_eq((call), FA_OK, "%s", fa_last_error())

static fa_context *ctx;
static atomic_int compiled; /* kernels, since the suite began */

static void count_compiled(void *user, int level, const char *message)
{
    (void)user, (void)level;
    if (strstr(message, "from the compiler"))
        atomic_fetch_add(&compiled, 1);
}

__attribute__((unused)) static void open_context(void)
{
    fa_options o = FA_OPTIONS_INIT;
    scratch_make();
    o.cache_dir = scratch;
    o.log = count_compiled;
    o.log_level = FA_LOG_INFO;
    cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK, "%s", fa_last_error());
}

__attribute__((unused)) static void close_context(void)
{
    fa_destroy(ctx);
    cr_assert_eq(fake_live_libraries(), 0);
    cr_assert_eq(fake_retained(0) + fake_retained(1), 0);
    scratch_remove();
}

__attribute__((unused)) static void open_bare_context(void)
{
    fa_options o = FA_OPTIONS_INIT;
    o.cache_dir = "";
    cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK, "%s", fa_last_error());
}

__attribute__((unused)) static void close_bare_context(void)
{
    fa_destroy(ctx);
}
#endif
