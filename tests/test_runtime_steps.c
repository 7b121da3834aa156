/* Steps of a source that are compiled apart: the text of each, threads that compile them, the image of all, and that no code changes. */
#include "fake_driver.h"
#include "gen/error.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "runtime/build/parts.h"
#include "runtime/build/step_text.h"
#include "runtime/build/workers.h"
#include "runtime/runtime.h"
#include "test_full.h"
#include "test_shipped.h"
#include <criterion/criterion.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>

TestSuite(runtime_steps, .timeout = 7200);

#define ONE "extern \"C\" __global__ void __launch_bounds__(32)\n    first(float *p) {\n  if (p) {\n    *p = 1.f;\n  }\n}\n"
#define TWO "extern \"C\" __global__ void second(float *p) { // calls no first(p)\n  first_of(p);\n}\n"
#define SHARED "__device__ __forceinline__ void\nfirst_of(float *p) { *p = 2.f; }\n"

static fa_source source_of(const char *text, int steps, const char *a, const char *b)
{
    fa_source s = { .text = (char *)text, .text_size = strlen(text), .steps = steps };
    s.hash[0] = (uint64_t)(uintptr_t)text;
    strcpy(s.name, "test.cu");
    strcpy(s.step[0].entry, a);
    strcpy(s.step[1].entry, b);
    return s;
}

static bool apart(const char *text, const char *a, const char *b)
{
    fa_source s = source_of(text, 2, a, b);
    return fa_step_text_apart(&s);
}

Test(runtime_steps, the_text_of_one)
{
    fa_source s = source_of(SHARED ONE TWO, 2, "first", "second");
    cr_assert(fa_step_text_apart(&s));
    for (int i = 0; i < 2; i++) {
        char *t = fa_step_text(&s, i);
        cr_assert_eq(strlen(t), s.text_size, "all lines stay where they are");
        cr_expect(!strncmp(t, SHARED, strlen(SHARED)));
        cr_expect_eq(strstr(t, ONE) != NULL, i == 0, "%s", t);
        cr_expect_eq(strstr(t, TWO) != NULL, i == 1, "%s", t);
        free(t);
    }
}

Test(runtime_steps, texts_that_stay_whole)
{
    cr_expect(apart(ONE TWO, "second", "first"));
    cr_expect_not(apart(ONE, "first", "second"), "a kernel is missing");
    cr_expect_not(apart(ONE TWO ONE, "first", "second"), "one is there twice");
    cr_expect_not(apart(ONE TWO, "first", "third"), "one is no step");
    cr_expect_not(apart(ONE TWO, "first", "first"), "two steps launch one kernel");
    cr_expect_not(apart(ONE "  " TWO, "first", "second"), "no beginning of a line");
    cr_expect_not(apart("extern \"C\" __global__ void first(float *p);\n" ONE TWO, "first", "second"), "a declaration");
    cr_expect_not(apart("__device__ int count;\n" ONE TWO, "first", "second"), "kernels that share memory");
    cr_expect_not(apart("__constant__ float x[2] = {1.f, 2.f};\n" ONE TWO, "first", "second"));
    fa_source s = source_of(ONE, 1, "first", "");
    cr_expect_not(fa_step_text_apart(&s), "a single one");
    s = source_of(SHARED ONE TWO, 2, "first", "second");
    cr_expect_eq(fa_image_kind(&s, FA_IMAGE_STEPS | FA_IMAGE_LEAN), FA_IMAGE_STEPS | FA_IMAGE_LEAN);
    cr_expect_eq(fa_image_kind(&s, FA_IMAGE_STEPS | FA_IMAGE_PTX), FA_IMAGE_PTX);
    cr_expect_eq(fa_image_kind(&s, FA_IMAGE_CUBIN), FA_IMAGE_CUBIN);
}

Test(runtime_steps, parts_are_found_again_or_refused)
{
    fa_entry part[2] = { { .image = (char *)"abc", .image_size = 3, .log = (char *)"x\n", .log_size = 2 },
                         { .image = (char *)"0123456789abcdef", .image_size = 16, .log = (char *)"y\n", .log_size = 2 } };
    fa_entry e = { .ptx = 0 };
    fa_part found[3];
    cr_assert(fa_parts_join(&e, part, 2));
    cr_expect_str_eq(e.log, "x\ny\n");
    cr_assert_eq(fa_parts_of(e.image, e.image_size, found, 3), 2);
    for (int i = 0; i < 2; i++)
        cr_expect(found[i].size == part[i].image_size && !memcmp(found[i].bytes, part[i].image, part[i].image_size) &&
                  (found[i].bytes - e.image) % 16 == 0);
    cr_expect_eq(fa_parts_of(e.image, e.image_size, found, 1), 0, "more than there is room for");
    for (size_t n = 16; n < e.image_size; n++)
        cr_expect_eq(fa_parts_of(e.image, n, found, 3), 0, "%zu of %zu bytes", n, e.image_size);
    for (size_t at = 8; at < 32; at += 8)
        for (int bit = 5; bit < 8; bit++) {
            e.image[at + 7] ^= (char)(1 << bit);
            cr_expect_eq(fa_parts_of(e.image, e.image_size, found, 3), 0);
            e.image[at + 7] ^= (char)(1 << bit);
        }
    cr_expect_eq(fa_parts_of("\177ELF and more of it", 19, found, 3), 1);
    cr_expect_eq(found[0].size, 19);
    fa_entry_free(&e);
}

static fa_status piece(void *user, int i)
{
    pthread_t *thread = user;
    thread[i] = pthread_self();
    return i == 2 || i == 3 ? fa_fail(FA_INVALID + (i == 3), "piece %d", i) : FA_OK;
}

Test(runtime_steps, the_first_that_fails_is_told)
{
    pthread_t thread[4];
    cr_assert_eq(fa_workers_run(2, piece, thread), FA_OK);
    cr_expect(pthread_equal(thread[0], pthread_self()) && !pthread_equal(thread[1], pthread_self()));
    cr_assert_eq(fa_workers_run(4, piece, thread), FA_INVALID);
    cr_expect_str_eq(fa_last_error(), "piece 2");
}

Test(runtime_steps, an_error_in_one_step_is_that_of_the_source)
{
    fa_compiler *c = fa_compiler_open(NULL);
    fa_source s = source_of(ONE "extern \"C\" __global__ void second(float *p) {\n  *p = wrong;\n}\n", 2, "first", "second");
    fa_entry e;
    cr_assert_eq(fa_compile(c, &s, "sm_90a", FA_IMAGE_STEPS, &e), FA_COMPILE);
    cr_expect(strstr(fa_last_error(), "test.cu(8)") && strstr(fa_last_error(), "wrong"), "%s", fa_last_error());
    fa_compiler_close(c);
}

/* The machine code of a kernel in a cubin, in *code; NULL: it is not there. */
static const char *code_of(const fa_part *cubin, const char *entry, size_t *size)
{
    char name[64];
    Elf64_Ehdr head;
    Elf64_Shdr section, names;
    snprintf(name, sizeof name, ".text.%s", entry);
    memcpy(&head, cubin->bytes, sizeof head);
    memcpy(&names, cubin->bytes + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
    for (int i = 0; i < head.e_shnum; i++) {
        memcpy(&section, cubin->bytes + head.e_shoff + (size_t)i * sizeof section, sizeof section);
        if (!strcmp(cubin->bytes + names.sh_offset + section.sh_name, name)) {
            *size = section.sh_size;
            return cubin->bytes + section.sh_offset;
        }
    }
    return NULL;
}

static void expect_same_code(fa_compiler *c, const fa_source *s, const char *name)
{
    fa_entry whole, steps;
    fa_part one, part[FA_SOURCE_STEPS];
    cr_assert_eq(fa_compile(c, s, "sm_90a", FA_IMAGE_LEAN, &whole), FA_OK, "%s", fa_last_error());
    cr_assert_eq(fa_compile(c, s, "sm_90a", FA_IMAGE_LEAN | FA_IMAGE_STEPS, &steps), FA_OK, "%s", fa_last_error());
    cr_assert(whole.key.lo != steps.key.lo);
    cr_assert_eq(fa_parts_of(whole.image, whole.image_size, &one, 1), 1);
    cr_assert_eq(fa_parts_of(steps.image, steps.image_size, part, FA_SOURCE_STEPS), s->steps, "%s", name);
    for (int i = 0; i < s->steps; i++) {
        const char *entry = s->step[i].entry;
        size_t m = 0, n = 1;
        const char *a = code_of(&one, entry, &m), *b = code_of(&part[i], entry, &n);
        cr_expect(a && b && m == n && !memcmp(a, b, n), "%s: %s is other code apart: %zu and %zu bytes", name, entry, m, n);
        fa_resources x = fa_resources_parse(whole.log, entry), y = fa_resources_parse(steps.log, entry);
        cr_expect(x.known && y.known && x.registers == y.registers && x.spill_stores == y.spill_stores && x.stack == y.stack,
                  "%s: %s: %d registers, apart %d", name, entry, x.registers, y.registers);
        cr_expect_str_eq(x.note, y.note, "%s: %s: \"%s\", apart \"%s\"", name, entry, x.note, y.note);
    }
    fa_entry_free(&whole);
    fa_entry_free(&steps);
}

/* By default one row; all with FAGEN_TEST_FULL=1. */
Test(runtime_steps, code_is_the_same_apart)
{
    fa_compiler *c = fa_compiler_open(NULL);
    fa_gen *g;
    fa_source s;
    uint64_t seen[SHIPPED];
    int checked = 0;
    cr_assert_eq(fa_gen_open(&g, NULL), FA_OK);
    for (size_t i = 0; i < SHIPPED && (full() || !checked); i++) {
        fa_problem p;
        fa_config k;
        cr_assert_eq(fa_problem_parse(&p, shipped[i].problem), FA_OK);
        cr_assert_eq(fa_config_parse(&k, shipped[i].config), FA_OK);
        cr_assert_eq(fa_render(g, &p, &k, fa_arch_find("h200"), 0, &s), FA_OK, "%s", fa_last_error());
        bool again = s.steps < 2;
        for (int n = 0; n < checked && !again; n++)
            again = seen[n] == s.hash[0];
        if (!again) {
            seen[checked++] = s.hash[0];
            expect_same_code(c, &s, shipped[i].config);
        }
        fa_source_free(&s);
    }
    cr_expect_gt(checked, 0);
    fa_gen_close(g);
    fa_compiler_close(c);
}

/* A library for each step, all given back; and the same out of a cache. */
Test(runtime_steps, each_step_is_loaded_and_unloaded)
{
    fa_context *ctx;
    fa_options o = FA_OPTIONS_INIT;
    const fa_kernel *k;
    fa_source s = source_of(SHARED ONE TWO, 2, "first", "second");
    o.cache_dir = "";
    cr_assert_eq(fa_create_on(&ctx, &o, fake_driver(), 0), FA_OK, "%s", fa_last_error());
    fake_ptx(false);
    cr_assert_eq(fa_build(ctx, &s, (fa_subject){ NULL, NULL }, &k), FA_OK, "%s", fa_last_error());
    cr_expect(k->steps == 2 && k->library[0] && k->library[1] && k->library[0] != k->library[1]);
    cr_expect(k->resources[0].known && k->resources[1].known);
    cr_expect_eq(fake_live_libraries(), 2);
    fa_destroy(ctx);
    cr_expect_eq(fake_live_libraries(), 0);
}
