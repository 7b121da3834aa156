/* Memory that runs out while a template is rendered: an allocation fails, and the text is whole or the status says why not. By default
 * each of the first ones and one in SPARSE of the others, with FAGEN_TEST_FULL each. */
#include "fault.h"
#include "test_full.h"
#include "test_gen_toy.h"
#include <errno.h>

#define DENSE 120
#define SPARSE 43

static const char toy_cu[] = "//| for i = 1, 40 do\nfirst line $(i) of a text that outgrows its room, $(c.br)\n\n//| end\nlast\n";

static long each_fails(const char *dir, const char *whole, fault_kind kind)
{
    for (long n = 1;; n += full() || n < DENSE ? 1 : SPARSE) {
        fa_source s;
        const char *what = "";
        long live = fault_live();
        fault_arm(kind, n, ENOMEM);
        fa_status st = toy_render(dir, &s);
        bool fired = fault_disarm(&what);
        cr_assert(st == FA_OK || (fired && st == FA_NOMEM), "%s %ld: %s: %s", what, n, fa_status_name(st), fa_last_error());
        if (st == FA_OK)
            cr_assert_str_eq(s.text, whole, "%s %ld", what, n);
        else
            cr_assert(!s.text && !s.lined, "%s %ld", what, n);
        fa_source_free(&s);
        cr_assert_eq(fault_live(), live, "%ld blocks are left after %s %ld", fault_live() - live, what, n);
        if (!fired)
            return n - 1;
    }
}

Test(gen_memory, rendering)
{
    char dir[64];
    fa_source s;
    if (!fault_allocates())
        cr_skip_test("a sanitizer owns the allocator");
    toy_dir(dir, toy_cu);
    cr_assert_eq(toy_render(dir, &s), FA_OK, "%s", fa_last_error());
    long allocations = each_fails(dir, s.text, FAULT_ALLOC), reallocations = each_fails(dir, s.text, FAULT_GROW);
    cr_assert(allocations > 3 && reallocations > 20, "only %ld allocations and %ld reallocations", allocations, reallocations);
    fa_source_free(&s);
    toy_remove(dir, NULL);
}

/* A folder that cannot be listed is the caller's, memory that is short for it is not. */
Test(gen_memory, listing_the_folder)
{
    static const struct {
        int error;
        fa_status status;
        const char *words;
    } rows[] = { { EACCES, FA_IO, ": Permission denied; accepted: a folder" },
                 { EMFILE, FA_IO, ": Too many open files; accepted: a folder" },
                 { ENOMEM, FA_NOMEM, "Cannot allocate memory" } };
    char dir[64];
    fa_source s;
    toy_dir(dir, toy_cu);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        fault_arm_call("opendir", 1, rows[k].error);
        fa_status st = toy_render(dir, &s);
        cr_expect(fault_disarm(NULL));
        cr_expect_eq(st, rows[k].status, "row %zu: %s", k, fa_status_name(st));
        cr_expect(strstr(fa_last_error(), rows[k].words), "row %zu: %s", k, fa_last_error());
        fa_source_free(&s);
    }
    toy_remove(dir, NULL);
}
