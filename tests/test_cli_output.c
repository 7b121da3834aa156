/* What the command answers: documents with the promised fields, numbers of the literature, the same bytes twice, real tensors. */
#include "test_cli_run.h"
#include "test_full.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(cli_output, .init = cli_scratch_make, .fini = cli_scratch_remove, .timeout = 600);

static const struct {
    const char *words;
    const char *fields; /* blank-separated paths that are there */
} documents[] = {
    { "space -d 64 --causal --json", "problem arch budget total fitting smallest_rejected rejected.0.constraint rejected.0.count "
                                     "configs.0.config configs.0.seconds configs.0.smem" },
    { "space -d 64 --json --limit 1 --family naive", "configs.0.config" },
    { "space -d 64 --json --why flash_fwd_mma:br=64,bc=64,warps=2", "config fits smem regs constraint why" },
    { "model -d 64 --json", "problem arch tile.sram flops.matrix traffic.naive.total traffic.tiled2d.total traffic.flash1.total "
                            "traffic.flash2.total cost.seconds cost.bound" },
    { "emit -d 64 --json", "problem config where why arch source bytes kernels.0.entry kernels.0.smem text" },
    { "emit -d 64 --format ptx --json", "kernels.0.threads text format" },
    { "emit -d 64 --format cubin -o k.cubin --json", "kernels.0.registers output" },
    { "emit --bundle -d 64,72 --arch sm_80,compute_80 -o k.c --json -q",
      "name output bytes images rows.3.problem rows.3.arch rows.3.ptx rows.3.config rows.3.source" },
    { "emit --bundle --raw -d 64 --arch sm_80 --name k -o k.bundle --json -q", "name output bytes images rows.0.config" },
    { "cache ls --json", "roots.0.path kernels records.measured damaged bytes" },
    { "cache stat --json",
      "roots.0.path roots.0.kernels.files roots.0.foreign.files roots.0.quarantine.bytes roots.0.records.lines limit" },
    { "cache why -d 64 -n 64 --json", "problem config arch kind key hit path damaged quarantined foreign nearest kernels" },
    { "cache why -d 64 --arch sm_80 --json", "key hit kind" },
    { "cache verify --json", "files damaged removed lines unreadable_lines found" },
    { "cache prune --older 30d --dry-run --json", "root removed bytes left left_bytes files" },
    { "cache export x.archive --records --json", "output kernels records skipped bytes" },
    { "cache import x.archive --json", "input root trusted kernels kernels_there records records_there records_elsewhere" },
    { "cache export x.records --only-records --json", "output" },
    { "cache import x.records --json", "input root trusted kernels records records_there records_measured records_slower records_wrong" },
    { "archs --json", "archs.0.arch archs.0.products archs.0.sms archs.0.tflops16" },
    { "doctor --json", "fagen state checks.0.check checks.0.state" },
    { "show -d 64 -n 128 --json", "device.simulated problem config where why explain margin.model margin.model_best "
                                  "anatomy.key.key anatomy.key.text anatomy.key.arch anatomy.key.compiler anatomy.key.options "
                                  "anatomy.kernels.0.registers anatomy.kernels.0.spill_stores "
                                  "anatomy.occupancy.blocks_sm anatomy.occupancy.limiter anatomy.templates.0.file "
                                  "anatomy.templates.0.lines on_record modelled_on_record "
                                  "alternatives.0.config alternatives.0.behind records model_records" },
    { "show bf16,d=64 --ptx --json", "form text" },
    { "show bf16,d=64 --source --json", "form text" },
    { "run -d 64 -n 64 --heads 1 --counters --check --json",
      "device.arch explain seconds counters.instructions counters.global_read counters.tensors.0.tensor check.ok" },
    { "bench -d 64 -n 64 --heads 1 --mask causal --json",
      "simulator counts.0.config counts.0.why counts.0.ours.instructions counts.0.systems.naive.global_read "
      "counts.0.systems.flash1_fwd.global_write counts.0.systems.tiled.global_read" },
    { "bench --counts --systems none -d 64 -n 64 --heads 1 --device sim:sm_90a --json", "counts.0.ours.matrix" },
    { "verify --count 2 --json", "device ran failed skipped cases.0.case cases.0.ok" },
    { "verify -d 64 -n 48 --json", "ran cases.0.max_error" },
    { "verify --family flash_fwd_wgmma --count 1 --device sim:sm_90a --json", "ran cases.0.config" },
    { "tune -d 64 --arch sm_80 --limit 2 --json -q", "arch timed status problems.0.guess.config problems.0.winner problems.0.runs.config "
                                                     "problems.0.runs.from problems.0.candidates.0.outcome problems.0.kept" },
    { "sample -d 8 -n 4 --json -q", "files.2 dtype" },
    { "explore -d 64 --arch sm_80 --simulate 0 --json",
      "fagen problem asked.d arch.peaks.0.tflops budget sources.measured families.0.tunables.0.name "
      "columns.configs.0.name configs.0.1 records history counters tiles.0.points lengths.0.naive_us naive.held shipped" },
    { "space --nonsense --json", NULL },
};

Test(cli_output, documents)
{
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        json_t *j = cli_json(documents[i].words, documents[i].fields ? 0 : 1);
        char fields[512];
        snprintf(fields, sizeof fields, "%s", documents[i].fields ? documents[i].fields : "error.status error.message error.exit");
        for (char *save, *f = strtok_r(fields, " ", &save); f; f = strtok_r(NULL, " ", &save))
            cr_expect(cli_at(j, f), "%s: no %s", documents[i].words, f);
        json_decref(j);
    }
}

static bool holds(json_t *j, const char *path)
{
    return json_is_true(cli_at(j, path));
}

static json_int_t integer(json_t *j, const char *path)
{
    return json_integer_value(cli_at(j, path));
}

static const char *text(json_t *j, const char *path)
{
    const char *s = json_string_value(cli_at(j, path));
    return s ? s : "";
}

/* Records go the way of fa_records_import(), out of a text and, without --trust, out of an archive: verified, and after what was measured
 * here. */
Test(cli_output, records_are_carried)
{
    static const char *const files[] = { "r.records", "r.archive" };
    cli_result r = cli_run("FAGEN_CACHE_DIR=r1 tune -d 72 -n 64 --heads 1 --device sim:sm_80 --limit 1 -q");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cli_result_free(&r);
    json_decref(cli_json("FAGEN_CACHE_DIR=r1 cache export r.records --only-records --json", 0));
    json_decref(cli_json("FAGEN_CACHE_DIR=r1 cache export r.archive --records --json", 0));
    for (int i = 0; i < 2; i++) {
        char words[200];
        snprintf(words, sizeof words, "FAGEN_CACHE_DIR=r1 cache import %s --device sim:sm_80 --json", files[i]);
        json_t *j = cli_json(words, 0);
        cr_expect(integer(j, "records") == 0 && integer(j, "records_measured") == 1, "%s", files[i]);
        json_decref(j);
        snprintf(words, sizeof words, "FAGEN_CACHE_DIR=r%d cache import %s --device sim:sm_90a --json", i + 2, files[i]);
        j = cli_json(words, 0);
        cr_expect(integer(j, "records") == 0 && integer(j, "records_elsewhere") == 1, "%s", files[i]);
        json_decref(j);
        snprintf(words, sizeof words, "FAGEN_CACHE_DIR=r%d cache import %s --device sim:sm_80", i + 2, files[i]);
        r = cli_run(words);
        cr_expect(r.code == 0 && strstr(r.out, "1 records: 1 verified and added"), "%s: %s%s", files[i], r.out, r.err);
        cli_result_free(&r);
    }
    json_t *j = cli_json("FAGEN_CACHE_DIR=r4 cache import r.archive --trust --json", 0);
    cr_expect(integer(j, "records") == 1 && holds(j, "trusted"));
    json_decref(j);
}

/* From nothing to a kernel in another store, as a person would. */
Test(cli_output, cache_words)
{
    static const char run[] = "FAGEN_CACHE_DIR=c1 run -d 64 -n 80 --heads 1 --json",
                      why[] = "FAGEN_CACHE_DIR=c1 cache why -d 64 -n 80 --heads 1 --json";
    json_t *j = cli_json(why, 0);
    cr_expect(!holds(j, "hit") && json_is_null(cli_at(j, "nearest")));
    json_decref(j);
    json_decref(cli_json(run, 0));
    j = cli_json(why, 0);
    cr_expect(holds(j, "hit") && holds(j, "loaded"));
    char path[512];
    snprintf(path, sizeof path, "%s", text(j, "path"));
    json_decref(j);
    j = cli_json("FAGEN_CACHE_DIR=c1 cache why -d 64 -n 80 --heads 1 --causal --json", 0);
    cr_expect(!holds(j, "hit"));
    cr_expect_str_eq(text(j, "nearest.field"), "problem");
    json_decref(j);
    j = cli_json("FAGEN_CACHE_DIR=c1 NVRTC_APPEND_FLAGS=-w cache why -d 64 -n 80 --heads 1 --json", 0);
    cr_expect_str_eq(text(j, "nearest.field"), "options");
    cr_expect_eq(integer(j, "nearest.differences"), 1);
    json_decref(j);
    json_decref(cli_json("FAGEN_CACHE_DIR=c1 cache export c1.archive --json", 0));
    j = cli_json("FAGEN_CACHE_DIR=c2 cache import c1.archive --json", 0);
    cr_expect(integer(j, "kernels") == 1 && !holds(j, "trusted"));
    json_decref(j);
    j = cli_json("FAGEN_CACHE_DIR=c2 cache why -d 64 -n 80 --heads 1 --json", 0);
    cr_expect(!holds(j, "hit") && json_is_string(cli_at(j, "foreign")));
    json_decref(j);
    json_decref(cli_json("FAGEN_CACHE_DIR=c2 cache import c1.archive --trust --json", 0));
    j = cli_json("FAGEN_CACHE_DIR=c2 cache why -d 64 -n 80 --heads 1 --json", 0);
    cr_expect(holds(j, "hit") && !holds(j, "loaded"));
    json_decref(j);
    cr_assert(chmod(path, 0600) == 0 && truncate(path, 1000) == 0);
    j = cli_json("FAGEN_CACHE_DIR=c1 cache verify --json", 4);
    cr_expect(integer(j, "damaged") == 1 && integer(j, "removed") == 0);
    json_decref(j);
    j = cli_json(why, 0);
    cr_expect(!holds(j, "hit") && json_is_string(cli_at(j, "damaged")));
    json_decref(j);
    j = cli_json("FAGEN_CACHE_DIR=c1 cache verify --repair --json", 0);
    cr_expect(integer(j, "damaged") == 1 && integer(j, "removed") == 1);
    json_decref(j);
    cr_expect_neq(access(path, F_OK), 0);
    j = cli_json("FAGEN_CACHE_DIR=c2 cache prune --to 0 --dry-run --json", 0);
    cr_expect_eq(integer(j, "removed"), 1);
    json_decref(j);
    j = cli_json("FAGEN_CACHE_DIR=c2 cache prune --to 0 --json", 0);
    cr_expect(integer(j, "removed") == 1 && integer(j, "left") == 0);
    json_decref(j);
    j = cli_json("FAGEN_CACHE_DIR=c2 cache stat --json", 0);
    cr_expect(integer(j, "roots.0.kernels.files") == 0 && integer(j, "limit") == 4ll << 30);
    json_decref(j);
}

Test(cli_output, literature)
{
    json_t *j = cli_json("model -d 64 --n 2048 --dtype fp32 --heads 1 --br 64 --bc 64 --json", 0);
    cr_expect_eq(json_integer_value(cli_at(j, "traffic.naive.without_output")), 68681728);
    cr_expect_eq(json_integer_value(cli_at(j, "traffic.flash2.total")), 34603008);
    cr_expect_eq(json_integer_value(cli_at(j, "tile.sram")), 65536);
    cr_expect_eq(json_integer_value(cli_at(j, "flops.total")), 4ll * 2048 * 2048 * 64 + 5ll * 2048 * 2048);
    json_decref(j);
    j = cli_json("model -d 64 --n 2048 --dtype fp32 --heads 1 --br 64 --bc 64 --sram 64KiB --json", 0);
    cr_expect(json_is_true(cli_at(j, "tile.fits")));
    json_decref(j);
}

/* Chips, types, lengths and windows by the names that people use, on each command. */
Test(cli_output, names_that_people_use)
{
    static const struct {
        const char *words, *member, *is;
    } rows[] = {
        { "space -d 64 -n 1k --arch h100 --limit 1 --json", "arch", "sm_90a" },
        { "space -d 64 -n 1k --device sim:l40s --limit 1 -t float16 --json", "problem",
          "fp16,d=64,dv=64,mask=none,o=fp16,align=16,b=1,hq=16,hkv=16,sq=1024,sk=1024" },
        { "model -d 64 -n 2k --window 512 --dtype bfloat16 --json", "problem",
          "bf16,d=64,dv=64,mask=window,o=bf16,align=16,b=1,hq=16,hkv=16,sq=2048,sk=2048,window=512" },
        { "show -d 64 -n 128 --arch h100 --json", "device.chip", "H100 SXM" },
        { "show -d 64 -n 128 --device sim:h100 --json", "device.chip", "H100 SXM" },
        { "show -d 64 -n 128 --device sim:sm_90a --json", "device.chip", "Simulated sm_90a" },
        { "run -d 32 -n 64 --heads 1 --arch a100 --window 5,2 --check --json", "problem",
          "bf16,d=32,dv=32,mask=window,o=bf16,align=16,b=1,hq=1,hkv=1,sq=64,sk=64,window=7" },
        { "emit -d 64 --device sim:h100 --window 128 -o k.cu --json", "arch", "sm_90a" },
        { "explore -d 64 --device sim:l40s --simulate 0 --json", "arch.chip", "L40S" },
        { "tune -d 64 -n 1k --device sim:l40s --window 256 --limit 1 -q --json", "problems.0.problem",
          "bf16,d=64,dv=64,mask=window,o=bf16,align=16,b=1,hq=16,hkv=16,sq=1024,sk=1024,window=256" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *j = cli_json(rows[i].words, 0);
        const char *is = json_string_value(cli_at(j, rows[i].member));
        cr_expect(is && !strcmp(is, rows[i].is), "%s: %s is %s", rows[i].words, rows[i].member, is ? is : "not there");
        json_decref(j);
    }
    cli_result r = cli_run("doctor --device sim:h100");
    cr_expect(r.code == 0 && strstr(r.out, "sim:sm_90a") && strstr(r.out, "H100 SXM") && !strstr(r.out, "WARN"), "%s", r.out);
    cli_result_free(&r);
}

/* Figures of a pass are that pass's: bytes, products, memory; TFLOP/s count products alone. */
Test(cli_output, literature_of_gradients)
{
    json_t *j = cli_json("model --op backward -d 64 -n 1024 --heads 2 --dtype bf16 --json", 0);
    const double s = 2.0 * 1024 * 1024 * 2, t = 2.0 * 1024 * 64 * 2; /* bytes of S, of a tensor */
    cr_expect_eq(json_number_value(cli_at(j, "traffic.naive.read")), 5 * s + 5 * t);
    cr_expect_eq(json_number_value(cli_at(j, "traffic.naive.write")), 2 * s + 3 * t);
    cr_expect_eq(json_number_value(cli_at(j, "traffic.naive.held")), 3 * s);
    cr_expect_null(cli_at(j, "traffic.tiled2d"));
    cr_expect_eq(json_number_value(cli_at(j, "flops.matrix")), 2.0 * 1024 * 1024 * 10 * 64);
    cr_expect_float_eq(json_number_value(cli_at(j, "traffic.naive.intensity")),
                       json_number_value(cli_at(j, "flops.total")) / (7 * s + 8 * t), 1e-6);
    cr_expect_float_eq(json_number_value(cli_at(j, "cost.tflops")),
                       json_number_value(cli_at(j, "flops.matrix")) / json_number_value(cli_at(j, "cost.seconds")) * 1e-12, 1e-6);
    json_decref(j);
    cli_result r = cli_run("model --op merge -d 64 -n 1024");
    cr_expect(r.code == 0 && !strstr(r.out, "naive") && !strstr(r.out, "TFLOP/s"), "%s", r.out);
    cli_result_free(&r);
}

Test(cli_output, host_times)
{
    static const char *const rows[] = { "cold", "warm", "hot" };
    json_t *j = cli_json("bench --host -d 64 -n 64 --device sim:sm_80 --json", 0);
    for (size_t i = 0; i < 3; i++) {
        json_t *row = json_object_get(j, rows[i]);
        cr_expect_eq(json_integer_value(json_object_get(row, "samples")), i < 2 ? 5 : 45, "%s", rows[i]);
        cr_expect_gt(json_number_value(json_object_get(row, "seconds")), 0, "%s", rows[i]);
    }
    cr_expect_gt(json_number_value(cli_at(j, "cold.seconds")), json_number_value(cli_at(j, "hot.seconds")));
    json_decref(j);
}

static const char *const attends[] = {
    "--causal",
    "--dtype bf16",
    "--dtype fp16 --o-dtype fp32",
    "--dtype tf32 --window 9,3",
    "--dtype fp16 --causal --diagonal top-left --scale 0.5",
    "--dtype bf16 --window 5,-1 --diagonal offset --offset -3",
};

Test(cli_output, attend_against_fp64)
{
    cli_result r = cli_run("sample -d 64 --dv 32 --dtype fp32 --sq 37 --sk 53 --heads 4 --kv-heads 2");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cli_result_free(&r);
    for (size_t i = 0; i < sizeof attends / sizeof *attends; i++) {
        char words[256];
        snprintf(words, sizeof words, "attend --q q.npy --k k.npy --v v.npy -o o.npy --lse lse.npy --check --json %s", attends[i]);
        json_t *j = cli_json(words, 0);
        cr_expect(json_is_true(cli_at(j, "check.ok")), "%s", words);
        json_decref(j);
    }
    cr_expect_eq(cli_scratch_files() >= 5, 1);
}

/* The results so far are printed, and the exit code tells of the signal. */
Test(cli_output, interrupted)
{
    static const int signals[] = { SIGINT, SIGTERM };
    for (size_t i = 0; i < 2; i++) {
        int out[2], err[2], status;
        char first, text[4096];
        size_t n = 0;
        cr_assert(pipe(out) == 0 && pipe(err) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            dup2(out[1], 1);
            dup2(err[1], 2);
            close(out[0]);
            close(err[0]);
            execl(getenv("FAGEN_COMMAND"), "fagen", "verify", "--count", "10000000", "--json", (char *)NULL);
            _exit(127);
        }
        close(out[1]);
        close(err[1]);
        cr_assert_eq(read(err[0], &first, 1), 1); /* its first line: the cases have begun */
        kill(pid, signals[i]);
        FILE *f = fdopen(out[0], "r");
        json_t *j = json_loadf(f, 0, NULL);
        while (n < sizeof text - 1 && read(err[0], text + n, 1) == 1)
            n++;
        text[n] = 0;
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 130, "status %x: %s", status, text);
        cr_expect(json_is_true(cli_at(j, "interrupted")));
        cr_expect_eq(json_integer_value(cli_at(j, "ran")), (json_int_t)json_array_size(cli_at(j, "cases")));
        json_decref(j);
        fclose(f);
        close(err[0]);
    }
}

Test(cli_output, help_for_everything)
{
    static const char *const names[] = { "attend", "bench",  "cache", "doctor", "emit", "explore", "model",
                                         "run",    "sample", "show",  "space",  "tune", "verify" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char words[64];
        snprintf(words, sizeof words, "help %s", names[i]);
        cli_result a = cli_run(words);
        snprintf(words, sizeof words, "%s --help", names[i]);
        cli_result b = cli_run(words);
        cr_expect(a.code == 0 && b.code == 0 && strstr(a.out, "Examples") && strstr(a.out, "--json"), "%s", names[i]);
        cr_expect_str_eq(a.out, b.out);
        cli_result_free(&a);
        cli_result_free(&b);
    }
    cli_result r = cli_run("help exit-codes");
    cr_expect(r.code == 0 && strstr(r.out, "130"));
    cli_result_free(&r);
    r = cli_run("--version");
    cr_expect(r.code == 0 && !strncmp(r.out, "fagen 0.", 8));
    cli_result_free(&r);
}
