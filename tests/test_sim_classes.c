/* Checks as classes: their severities, reports up to a limit, the table of the manual; and what is published practice. */
#include "test_sim_wgmma.h"

TestSuite(sim_classes, .init = open90a);

#define TWO_HOLES                                                                                                          \
    HEAD80 ".shared .align 16 .b8 buf[1024];\n" KERNEL("mov.u32 %r9, buf;\nld.shared.u32 %r1, [%r9];\nld.shared.u32 %r2, " \
                                                       "[%r9+4];\nst.global.u32 [%rd2], %r1;\nst.global.u32 [%rd2+4], %r2;")

static int warnings(char *to, size_t room) /* of the launches since the last call; to: their words */
{
    return sim_warnings(to, room);
}

Test(sim_classes, a_severity_for_every_class_that_is_not_fixed)
{
    char said[8192];
    CUdeviceptr a = buffer("0123456789abcdef", 16), b = buffer(NULL, 16);
    CUfunction f = load(TWO_HOLES);
    sim_counters c;
    sim_set_options(NULL);
    cr_assert_eq(launch(f, 1, 1, 0, a, b), CUDA_ERROR_LAUNCH_FAILED);
    cr_assert(strstr(sim_report(), "check: unwritten") && strstr(sim_report(), "offset 0") && !strstr(sim_report(), "offset 4"), "%s",
              sim_report());
    cr_assert_eq(warnings(said, sizeof said), 0);
    sim_counters_reset();
    checks("unwritten=warning");
    for (int twice = 0; twice < 2; twice++)
        cr_assert_eq(launch(f, 3, 1, 0, a, b), CUDA_SUCCESS, "%s", sim_report());
    sim_counters_get(&c);
    cr_assert_eq(c.warnings, 4, "%llu", (unsigned long long)c.warnings); /* two instructions, in two launches */
    cr_assert_eq(warnings(said, sizeof said), 2, "%s", said);            /* and of the process: each once */
    cr_assert(strstr(said, "offset 0") && strstr(said, "offset 4") && strstr(said, "check: unwritten"), "%s", said);
    cr_assert_eq(warnings(said, sizeof said), 0);
    checks("unwritten=off");
    cr_assert_eq(launch(f, 1, 1, 0, a, b), CUDA_SUCCESS);
    cr_assert_eq(warnings(said, sizeof said), 0);
    checks("unwritten=default");
    cr_assert_eq(launch(f, 1, 1, 0, a, b), CUDA_ERROR_LAUNCH_FAILED);
}

Test(sim_classes, the_environment_chooses_where_the_options_do_not)
{
    char said[4096];
    CUdeviceptr a = buffer("0123456789abcdef", 16), b = buffer(NULL, 16);
    CUfunction f = load(TWO_HOLES);
    setenv("FAGEN_SIM_CHECKS", "race=off,unwritten=warning", 1);
    sim_set_options(NULL);
    cr_assert_eq(launch(f, 1, 1, 0, a, b), CUDA_SUCCESS);
    cr_assert_eq(warnings(said, sizeof said), 2);
    checks("unwritten=error");
    cr_assert_eq(launch(f, 1, 1, 0, a, b), CUDA_ERROR_LAUNCH_FAILED);
    setenv("FAGEN_SIM_CHECKS", "unwriten=off", 1);
    cr_assert_eq(cu->cuInit(0), CUDA_ERROR_INVALID_VALUE);
    cr_assert(strstr(cu->detail(), "FAGEN_SIM_CHECKS: there is no check \"unwriten\"; accepted: unwritten, "), "%s", cu->detail());
}

Test(sim_classes, lists_are_read_whole_or_not_at_all)
{
    /* clang-format off */
    static const struct { const char *list, *words; } rows[] = {
        {"race", "\"\" is no severity"}, {"race=", "\"\" is no severity"}, {"race=maybe", "\"maybe\" is no severity; accepted: race=off, warning, error or default"},
        {"races=off", "there is no check \"races\""}, {"=off", "there is no check \"\""}, {",race=off", "there is no check"}, {"bounds=warning", "check bounds can be an error only"},
        {"race=off,deadlock=off", "check deadlock can be an error only"},
    };
    /* clang-format on */
    uint8_t severity[SIM_CHECKS] = { 0 };
    char error[512];
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        cr_expect(!sim_checks_parse(rows[r].list, severity, error) && strstr(error, rows[r].words), "%s: %s", rows[r].list, error);
        for (int k = 0; k < SIM_CHECKS; k++)
            cr_expect_eq(severity[k], SIM_BY_DEFAULT);
    }
    cr_assert(sim_checks_parse("", severity, error) && sim_checks_parse("all=warning,race=off,bounds=error", severity, error), "%s", error);
    for (int k = 0; k < SIM_CHECKS; k++)
        cr_expect_eq(severity[k],
                     k == SIM_CHECK_RACE       ? SIM_OFF
                     : k == SIM_CHECK_BOUNDS   ? SIM_ERROR
                     : sim_check_rows[k].fixed ? SIM_BY_DEFAULT
                                               : SIM_WARNING,
                     "%s", sim_check_rows[k].name);
}

static int count(const char *s, const char *words)
{
    int n = 0;
    for (; (s = strstr(s, words)); s++)
        n++;
    return n;
}

Test(sim_classes, reports_go_on_up_to_their_number)
{
    CUdeviceptr a = buffer("0123456789abcdef", 16), b = buffer(NULL, 64);
    /* a store whose lanes disagree, and two holes */
    CUfunction f = load(HEAD80 ".shared .align 16 .b8 buf[1024];\n" KERNEL(
        "mov.u32 %r9, buf;\nst.shared.u32 [%r9], %r0;\nld.shared.u32 %r1, [%r9+8];\nld.shared.u32 %r2, [%r9+4];\nst.global.u32 [%rd2], "
        "%r1;\nst.global.u32 [%rd2], %r2;\n"));
    static const struct {
        int reports, collision, unwritten;
    } rows[] = { { 0, 1, 0 }, { 1, 1, 0 }, { 2, 1, 1 }, { 3, 1, 2 }, { 8, 1, 2 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sim_set_options(&(sim_options){ .reports = rows[r].reports, .checks = { [SIM_CHECK_COLLISION] = SIM_ERROR } });
        cr_assert_eq(launch(f, 1, 32, 0, a, b), CUDA_ERROR_LAUNCH_FAILED);
        cr_expect(count(sim_report(), "check: collision") == rows[r].collision &&
                      count(sim_report(), "check: unwritten") == rows[r].unwritten,
                  "%d reports:\n%s", rows[r].reports, sim_report());
    }
    /* after a defect of a fixed class the other blocks run */
    uint32_t zero[16] = { 0 }, got[16];
    CUdeviceptr c = buffer(zero, sizeof zero);
    f = load(HEAD80 KERNEL("mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd3, %rd2, %rd3;\nsetp.eq.u32 %p1, %r1, 2;\n@%p1 "
                           "ld.global.u32 %r3, [%rd1+1600];\n"
                           "setp.eq.u32 %p1, %r1, 5;\n@%p1 trap;\nadd.u32 %r2, %r1, 100;\nst.global.u32 [%rd3], %r2;"));
    for (int threads = 1; threads <= 3; threads += 2) {
        sim_set_options(&(sim_options){ .reports = 9, .threads = threads });
        cu->cuMemcpyHtoD(c, zero, sizeof zero);
        cr_assert_eq(launch(f, 8, 1, 0, a, c), CUDA_ERROR_ILLEGAL_ADDRESS, "%s", sim_report()); /* that of the first block */
        cr_expect(count(sim_report(), "check: bounds") == 1 && count(sim_report(), "check: trap") == 1, "%s", sim_report());
        cr_expect(strstr(sim_report(), "check: bounds") < strstr(sim_report(), "check: trap"));
        fetch(got, c, sizeof got);
        for (uint32_t k = 0; k < 8; k++)
            cr_expect_eq(got[k], k == 2 || k == 5 ? 0 : 100 + k, "block %u: %u", k, got[k]);
    }
    sim_set_options(&(sim_options){ .reports = 1 });
    cu->cuMemcpyHtoD(c, zero, sizeof zero);
    cr_assert_eq(launch(f, 8, 1, 0, a, c), CUDA_ERROR_ILLEGAL_ADDRESS);
    fetch(got, c, sizeof got);
    cr_expect(got[1] == 101 && !got[3], "%u %u", got[1], got[3]);
}

/* Every class can be made to go on: nothing crashes when defects of all kinds are warnings. */
Test(sim_classes, defects_of_every_kind_as_warnings)
{
    static const char *const bodies[] = {
        "mov.u32 %r9, buf;\nshr.u32 %r8, %r0, 5;\nst.shared.u32 [%r9], %r8;\nld.shared.u32 %r1, [%r9];", /* race */
        ("mov.u32 %r9, buf;\nshl.b32 %r8, %r0, 2;\nadd.u32 %r9, %r9, %r8;\nmul.wide.u32 %rd3, %r0, 4;\nadd.s64 %rd3, %rd1, "
         "%rd3;\ncp.async.ca.shared.global [%r9], [%rd3], 4;\nld.shared.u32 %r1, [%r9];\n"
         "cp.async.wait_all;\nld.shared.u32 %r1, [%r9];"),                                 /* in flight */
        "setp.eq.u32 %p1, %r1, 5;\n@%p1 add.u32 %r2, %r2, 1;\nst.global.u32 [%rd2], %r2;", /* undefined */
        "ld.global.u32 %r1, [%rd2+256];\natom.global.add.u32 %r2, [%rd2+260], 1;\natom.shared.add.u32 %r3, [buf+8], 1;\nst.global.u32 "
        "[%rd2], %r1;\nst.global.u32 [%rd2], %r3;", /* unwritten */
    };
    static uint32_t data[256];
    char said[8192];
    for (size_t r = 0; r < sizeof bodies / sizeof *bodies; r++) {
        CUdeviceptr a = buffer(data, sizeof data), b = buffer(NULL, sizeof data);
        CUfunction f = load(with(HEAD80 ".shared .align 16 .b8 buf[1024];\n" KERNEL("$1"), bodies[r], "", ""));
        for (int way = 0; way < 6; way++) {
            sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 7 });
            cr_assert_neq(launch(f, 2, 64, 0, a, b), CUDA_SUCCESS, "row %zu", r);
            checks("all=warning");
            cr_assert_eq(launch(f, 2, 64, 0, a, b), CUDA_SUCCESS, "row %zu: %s", r, sim_report());
            cr_assert_geq(warnings(said, sizeof said), 1, "row %zu", r);
            checks("all=off");
            cr_assert_eq(launch(f, 2, 64, 0, a, b), CUDA_SUCCESS, "row %zu: %s", r, sim_report());
            cr_assert_eq(warnings(said, sizeof said), 0, "row %zu: %s", r, said);
        }
    }
}

/* docs/simulator.md has a line for each class, in this order, and none for another. */
Test(sim_classes, the_manual_has_the_table)
{
    static char manual[1 << 17], line[2048];
    FILE *f = fopen(DOCS "/simulator.md", "r");
    cr_assert_not_null(f);
    manual[fread(manual, 1, sizeof manual - 1, f)] = 0;
    fclose(f);
    const char *at = strstr(manual, "| check |");
    cr_assert_not_null(at);
    at = strchr(strchr(at, '\n') + 1, '\n') + 1;
    for (int k = 0; k < SIM_CHECKS; k++) {
        const sim_check_row *r = &sim_check_rows[k];
        const char *code = NULL;
        cu->cuGetErrorName((CUresult)r->code, &code);
        snprintf(line, sizeof line, "| `%s` | %s%s | %s | `%s` |\n", r->name, sim_severity_name(r->severity), r->fixed ? ", fixed" : "",
                 r->meaning, code + strlen("CUDA_ERROR_"));
        cr_assert(!strncmp(at, line, strlen(line)), "the manual's line is\n%.*snot\n%s", (int)strcspn(at, "\n") + 1, at, line);
        at += strlen(line);
    }
    cr_assert_neq(*at, '|', "%.80s", at);
}

/* ---- published practice ---- */

/* One elected thread tells that the buffer is free when its own warp has waited for the products of its warp group: what a fifth warp then
 * writes there reaches none of the four. */
static const char *released(shape s, int early)
{
    begin(&s, FENCE "\nsetp.eq.u32 %p3, %r0, 0;\nmov.u32 %r20, sm;\n@%p3 mbarrier.init.shared::cta.b64 [%r20+45056], 1;");
    add("setp.ge.u32 %%p4, %%r0, 128;\n@%%p4 bra PRODUCER;\n");
    ISSUE(&s, "1");
    if (early)
        add("@%%p3 mbarrier.arrive.shared::cta.b64 _, [%%r20+45056];\n");
    WAIT;
    if (!early)
        add("@%%p3 mbarrier.arrive.shared::cta.b64 _, [%%r20+45056];\n");
    add("bra DONE;\nPRODUCER:\nmbarrier.try_wait.parity.shared::cta.b64 %%p8, [%%r20+45056], 0;\n@!%%p8 bra PRODUCER;\n"
        "shl.b32 %%r21, %%r10, 2;\nadd.u32 %%r21, %%r21, %%r20;\nst.shared.u32 [%%r21+16384], %%r0;\nst.shared.u32 [%%r21], "
        "%%r0;\nret;\nDONE:\n");
    return end(&s);
}

Test(sim_classes, an_elected_thread_releases_after_its_wait)
{
    static memory m;
    static numbers x;
    static uint32_t want[64][256], got[64][256];
    shape s = { .n = 16, .a_shared = 1, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384) };
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    begin(&s, FENCE);
    ISSUE(&s, "1");
    WAIT;
    CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
    sim_set_options(NULL);
    cr_assert_eq(launch(load(end(&s)), 1, 128, SHARED, a, b), CUDA_SUCCESS, "%s", sim_report());
    fetch_d(b, &s, want);
    CUfunction right = load(released(s, 0)), early = load(released(s, 1));
    for (int way = 0; way < 24; way++) {
        CUdeviceptr d = buffer(NULL, 128 * 1024);
        sim_set_options(
            &(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2 < 2 ? way / 2 : 2), .seed = (uint64_t)way });
        checks("all=error");
        cr_assert_eq(launch(right, 1, 160, SHARED, a, d), CUDA_SUCCESS, "way %d: %s", way, sim_report());
        fetch_d(d, &s, got);
        for (int row = 0; row < 64; row++)
            cr_assert(!memcmp(got[row], want[row], 16 * 4), "way %d row %d", way, row);
        cr_assert_eq(launch(early, 1, 160, SHARED, a, d), CUDA_ERROR_LAUNCH_FAILED, "way %d", way);
        cr_assert(strstr(sim_report(), "race in shared memory: warp 4 writes"), "way %d: %s", way, sim_report());
        cu->cuMemFree(d);
    }
}

/* A product goes on from one that another warp has waited for already, before this warp issues it. */
Test(sim_classes, products_behind_an_early_end)
{
    static memory m;
    static numbers x;
    static uint32_t want[64][256], got[64][256];
    shape s = { .n = 16, .a_shared = 1, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384) };
    randomize(&s, &x, 0);
    fill(&m, &s, &x);
    begin(&s, FENCE);
    add("wgmma.fence.sync.aligned;\n");
    for (int k = 0; k < 4; k++) {
        product(&s, "1");
        add("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned %d;\n", k < 3);
    }
    CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
    CUfunction f = load(end(&s));
    for (int way = 0; way < 40; way++) {
        sim_set_options(&(sim_options){ .async = way ? SIM_LAZY : SIM_EAGER,
                                        .schedule = way ? SIM_RANDOM : SIM_IN_ORDER,
                                        .seed = (uint64_t)way,
                                        .unchecked = way & 1 });
        cr_assert_eq(launch(f, 1, 128, SHARED, a, b), CUDA_SUCCESS, "way %d: %s", way, sim_report());
        fetch_d(b, &s, way ? got : want);
        for (int row = 0; row < 64 && way; row++)
            cr_assert(!memcmp(got[row], want[row], 16 * 4), "way %d row %d", way, row);
    }
}

/* A warp outside of the group that has not waited, nor met one that has. */
Test(sim_classes, a_warp_that_does_not_know_of_the_wait)
{
    static memory m;
    shape s = { .n = 16, .a_shared = 1, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384) };
    for (int met = 0; met < 2; met++) {
        begin(&s, FENCE);
        add("setp.ge.u32 %%p4, %%r0, 128;\n@%%p4 bra OTHER;\n");
        ISSUE(&s, "1");
        WAIT;
        add("%sbra DONE;\nOTHER:\n%smov.u32 %%r20, sm;\nshl.b32 %%r21, %%r10, 2;\nadd.u32 %%r21, %%r21, %%r20;\nst.shared.u32 "
            "[%%r21+16384], %%r0;\nret;\nDONE:\n",
            met ? "bar.arrive 1, 160;\n" : "", met ? "bar.sync 1, 160;\n" : "");
        CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
        CUfunction f = load(end(&s));
        for (int way = 0; way < 6; way++) {
            sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 });
            CUresult got = launch(f, 1, 160, SHARED, a, b);
            cr_assert_eq(got, met ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, "way %d: %d %s", way, got, sim_report());
            cr_assert(met || strstr(sim_report(), "race in shared memory"), "way %d: %s", way, sim_report());
        }
    }
}

/* The reader's fence, after the barrier, is on the way from the store to the product. */
Test(sim_classes, a_fence_by_the_reader)
{
    static memory m;
    char said[4096];
    /* clang-format off */
    static const struct { const char *before, *after; CUresult by_default, strict; } rows[] = {
        {FENCE, "", CUDA_SUCCESS, CUDA_SUCCESS},
        {"", FENCE "\n", CUDA_SUCCESS, CUDA_ERROR_LAUNCH_FAILED},
        {"", "", CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED},
        {"", "setp.lt.u32 %p3, %r0, 64;\n@%p3 " FENCE "\n", CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED}, /* two of the four warps */
        {"", "and.b32 %r30, %r0, 31;\nsetp.eq.u32 %p3, %r30, 0;\n@%p3 " FENCE "\n", CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED}, /* one lane, for all */
    };
    /* clang-format on */
    shape s = { .n = 16, .a_shared = 1, .scale = 1, .a = tile_of(64, 0, 64, 0), .b = tile_of(64, 0, 16, 16384) };
    CUdeviceptr a = buffer(&m, sizeof m), b = buffer(NULL, 128 * 1024);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        begin(&s, rows[r].before);
        add("%s", rows[r].after);
        ISSUE(&s, "1");
        WAIT;
        CUfunction f = load(end(&s));
        for (int way = 0; way < 6; way++) {
            sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 });
            CUresult got = launch(f, 1, 128, SHARED, a, b);
            cr_assert_eq(got, rows[r].by_default, "row %zu: %d\n%s", r, got, sim_report());
            cr_assert_eq(warnings(said, sizeof said), 0, "%s", said);
            checks("proxy-fence-late=error");
            got = launch(f, 1, 128, SHARED, a, b);
            cr_assert_eq(got, rows[r].strict, "row %zu, strict: %d\n%s", r, got, sim_report());
        }
    }
}

/* Right by the letter, harmless in practice: warnings, not errors. */
Test(sim_classes, missing_formalities_are_warnings)
{
    char said[4096];
    CUdeviceptr a = buffer("0123456789abcdef0123456789abcdef", 32), b = buffer(NULL, 64);
    /* clang-format off */
    static const struct { const char *ptx, *check; unsigned threads; } rows[] = {
        {HEAD90A ".shared .align 16 .b8 buf[64];\n.shared .align 8 .b8 bar[8];\n"
         KERNEL("setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared::cta.b64 [bar], 1;\nbar.sync 0;\n@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;\n"
                "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%rd1], 32, [bar];\nW: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra W;\n"
                "ld.shared.u32 %r1, [buf];\nst.global.u32 [%rd2], %r1;"),
         "mbarrier-fence", 64},
        {HEAD90A ".visible .entry k(.param .u64 a, .param .u64 b)\n.maxntid 128, 1, 1\n.minnctapersm 2\n{\nsetmaxnreg.dec.sync.aligned.u32 96;\nsetmaxnreg.dec.sync.aligned.u32 88;\nret;\n}\n", "setmaxnreg-order", 128},
    };
    /* clang-format on */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        CUfunction f = load(rows[r].ptx);
        for (int way = 0; way < 6; way++) {
            sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 });
            cr_assert_eq(launch(f, 1, rows[r].threads, 0, a, b), CUDA_SUCCESS, "row %zu: %s", r, sim_report());
            cr_assert_eq(warnings(said, sizeof said), 1, "row %zu: %s", r, said);
            cr_assert(strstr(said, "check: ") && !strncmp(strstr(said, "check: ") + 7, rows[r].check, strlen(rows[r].check)), "row %zu: %s",
                      r, said);
            checks("all=error");
            cr_assert_eq(launch(f, 1, rows[r].threads, 0, a, b), CUDA_ERROR_LAUNCH_FAILED, "row %zu", r);
        }
    }
}

/* A wait for the phase after the next has the parity of one that is over: only who knows that the next one is over, too, may wait so. */
Test(sim_classes, a_parity_that_passes_over_a_phase)
{
#define WAITS(to, parity) #to ": mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], " #parity ";\n@!%p2 bra " #to ";\n"
#define KERNEL_OF(between, knows)                                                                                                        \
    HEAD90A ".shared .align 8 .b8 bar[8];\n.shared .align 8 .b8 go[8];\n" KERNEL(                                                        \
        "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared::cta.b64 [bar], 1;\n@%p1 mbarrier.init.shared::cta.b64 [go], 1;\nbar.sync " \
        "0;\n"                                                                                                                           \
        "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra TAKES;\n"                                                                                   \
        "setp.ne.u32 %p1, %r0, 32;\n@%p1 bra OVER;\n"                                                                                    \
        "mbarrier.arrive.shared::cta.b64 _, [bar];\n"                                                                                    \
        "G: mbarrier.try_wait.parity.shared::cta.b64 %p2, [go], 0;\n@!%p2 bra G;\n"                                                      \
        "mbarrier.arrive.shared::cta.b64 _, [bar];\n" between "mbarrier.arrive.shared::cta.b64 _, [bar];\nbra OVER;\nTAKES:\n" WAITS(    \
            A, 0) "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [go];\nmov.u32 %r1, 0;\n"                           \
                  "S: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 300;\n@%p2 bra S;\n" knows WAITS(B,                                    \
                                                                                                   0) "OVER:\nst.global.u32 [%rd2], 1;")
    static const char *const texts[] = {
        KERNEL_OF("", ""),
        KERNEL_OF("D: mbarrier.try_wait.parity.shared::cta.b64 %p2, [go], 1;\n@!%p2 bra D;\n",
                  WAITS(C, 1) "@%p1 mbarrier.arrive.shared::cta.b64 _, [go];\n"),
    };
    CUdeviceptr a = buffer(NULL, 64), b = buffer(NULL, 64);
    for (size_t r = 0; r < 2; r++) {
        CUfunction f = load(texts[r]);
        int faults = 0;
        for (int way = 0; way < 6; way++) {
            sim_set_options(&(sim_options){ .async = (sim_async)(way & 1), .schedule = (sim_schedule)(way / 2), .seed = 3 });
            checks("collision=off,race-global=off");
            CUresult got = launch(f, 1, 64, 0, a, b);
            cr_assert(got == CUDA_SUCCESS || strstr(sim_report(), "check: mbarrier-parity"), "text %zu: %s", r, sim_report());
            faults += got != CUDA_SUCCESS;
        }
        cr_assert(r ? !faults : faults, "text %zu: %d", r, faults);
    }
}
