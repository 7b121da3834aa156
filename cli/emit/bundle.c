/* bundle: chooses, compiles and writes: what fa_launch would run on each arch, as one C file. */
#include "batch.h"
#include "bundle_file.h"
#include "cli/files/file.h"
#include "emit.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "identifier.h"
#include "runtime/context/environment.h"
#include "runtime/runtime.h"
#include <stdlib.h>
#include <string.h>

/* Chosen and rendered; compiled later. */
static fa_status plan(const emit_args *a, emit_batch *batch, fa_context *ctx, const emit_target *t, const fa_problem *p)
{
    char line[FA_PROBLEM_TEXT];
    emit_job j = { .problem = *p, .arch = t->arch, .ptx = t->ptx };
    fa_status st = emit_pick(a, ctx, p, &j.selection, &j.source);
    if (st == FA_OK)
        st = emit_batch_add(batch, &j);
    if (st == FA_OK)
        return FA_OK;
    fa_source_free(&j.source);
    fa_problem_print(line, sizeof line, p);
    return fa_wrap(st, "%s on %s", line, t->arch->name);
}

/* What was compiled, into the bundle. */
static fa_status keep(cli *c, cli_bundle *b, emit_job *j)
{
    char line[FA_PROBLEM_TEXT], why[400];
    fa_problem_print(line, sizeof line, &j->problem);
    cli_note(c, "%s%s: %s: %s: %s, %zu bytes", j->arch->name, j->ptx ? " (PTX)" : "", line, j->selection.where, j->selection.why,
             j->entry.image_size);
    snprintf(why, sizeof why, "%s: %s", j->selection.where, j->selection.why);
    return cli_bundle_add(b, &j->problem, &j->selection.config, why, &j->source, &j->entry);
}

static void warn(void *user, const char *message)
{
    cli_note(user, "%s", message);
}

static fa_status compile(cli *c, const emit_args *a, emit_batch *batch, cli_bundle *b)
{
    fa_store *store = fa_store_open(NULL, warn, c);
    fa_compiler *compiler = fa_compiler_open(NULL);
    fa_status st = store && compiler ? emit_batch_run(batch, store, compiler, a->threads) : fa_fail(FA_NOMEM, "no memory for a compiler");
    for (size_t i = 0; st == FA_OK && i < batch->n; i++)
        st = keep(c, b, &batch->job[i]);
    fa_compiler_close(compiler);
    fa_store_close(store);
    return st;
}

static fa_status gather(cli *c, const emit_args *a, cli_bundle *b)
{
    static fa_problem problem[EMIT_PROBLEMS];
    size_t n = 0;
    emit_target t;
    emit_batch batch = { .n = 0 };
    fa_status st = emit_problems(a, problem, &n);
    const char *list = a->arch ? a->arch : "sm_80";
    size_t targets = 0;
    for (const char *l = list; st == FA_OK && *l; targets++) /* nothing is compiled before every name is known */
        st = emit_next_target(&l, &t);
    if (st == FA_OK && targets > EMIT_ARCHS)
        st = fa_fail(FA_INVALID, "--arch lists %zu; accepted: at most %d", targets, EMIT_ARCHS);
    while (st == FA_OK && *list) {
        fa_context *ctx = NULL;
        st = emit_next_target(&list, &t);
        if (st == FA_OK)
            st = emit_open(a, t.arch, &ctx);
        for (size_t i = 0; st == FA_OK && i < n; i++)
            st = plan(a, &batch, ctx, &t, &problem[i]);
        fa_destroy(ctx);
    }
    if (st == FA_OK)
        st = compile(c, a, &batch, b);
    emit_batch_free(&batch);
    return st;
}

/* The identifier: what was asked for, else the file's name up to its dot. */
static fa_status name_of(const emit_args *a, char *out, size_t n)
{
    const char *from = a->name ? a->name : a->output && strcmp(a->output, "-") ? strrchr(a->output, '/') : "fagen_bundle";
    from = a->name || !a->output || !strcmp(a->output, "-") ? from : from ? from + 1 : a->output;
    size_t len = a->name ? strlen(from) : strcspn(from, ".");
    const char *doubt = len < n ? cli_identifier_doubt(from, len) : "it is too long";
    if (doubt)
        return fa_fail(FA_INVALID, "%s is \"%.60s\": %s; accepted: a C identifier of less than %zu letters%s",
                       a->name ? "--name" : "the bundle's name", from, doubt, n, a->name ? "" : ": --name NAME gives another");
    snprintf(out, n, "%.*s", (int)len, from);
    return FA_OK;
}

/* A command that makes the same file. */
static void command_of(const emit_args *a, const cli_bundle *b, const char *name, fa_text *t)
{
    char line[FA_PROBLEM_TEXT];
    const char *file = a->output ? strrchr(a->output, '/') : NULL;
    fa_text_fmt(t, "fagen emit --bundle%s --arch %s", a->raw ? " --raw" : "", a->arch ? a->arch : "sm_80");
    if (a->sram)
        fa_text_fmt(t, " --sram %d", a->sram);
    if (a->config)
        fa_text_fmt(t, " --config %s", a->config);
    if (a->model_best)
        fa_text_str(t, " --model-best");
    if (a->chip)
        fa_text_fmt(t, " --chip '%s'", a->chip);
    fa_text_fmt(t, a->grid ? " --grid %s" : " --problem '", a->grid);
    for (uint32_t i = 0; i < b->rows && !a->grid; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++)
            again = !memcmp(&b->row[k].problem, &b->row[i].problem, sizeof(fa_problem));
        fa_problem_print(line, sizeof line, &b->row[i].problem);
        if (!again)
            fa_text_fmt(t, "%s%s", i ? ";" : "", line);
    }
    fa_text_fmt(t, "%s --name %s -o %s", a->grid ? "" : "'", name, file ? file + 1 : a->output ? a->output : "-");
}

static json_t *rows_json(const cli_bundle *b)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < b->rows; i++) {
        char line[FA_PROBLEM_TEXT];
        const cli_bundle_image *m = b->image[b->row[i].image];
        fa_problem_print(line, sizeof line, &b->row[i].problem);
        json_array_append_new(list, json_pack("{s:s,s:s,s:b,s:s,s:s,s:i,s:I,s:s}", "problem", line, "arch", m->entry.arch, "ptx",
                                              m->entry.ptx, "config", m->config, "why", b->row[i].why, "image", (int)b->row[i].image,
                                              "bytes", (json_int_t)m->entry.image_size, "source", m->source));
    }
    return list;
}

int emit_bundle(cli *c, const emit_args *a)
{
    char name[64];
    cli_bundle b = { .images = 0 };
    fa_text blob = { 0 }, text = { 0 }, command = { 0 };
    const fa_text *t = a->raw ? &blob : &text; /* what is written */
    bool file = a->output && strcmp(a->output, "-");
    const char *base = file ? strrchr(a->output, '/') : NULL;
    fa_status st = name_of(a, name, sizeof name);
    if (st == FA_OK && a->format)
        st = fa_fail(FA_INVALID, "--format and --bundle contradict each other; accepted in --arch: sm_90a for a cubin, compute_80 for PTX");
    if (st == FA_OK && a->host)
        st = fa_fail(FA_INVALID, "--host and --bundle contradict each other; accepted: --host for one kernel as a file of its own");
    if (st == FA_OK && a->raw && !a->output)
        st = fa_fail(FA_INVALID, "--raw writes binary: --output FILE says where to; \"-\" is standard output");
    if (st == FA_OK && c->json && !file)
        st = fa_fail(FA_INVALID, "--bundle and --json both write to standard output; accepted: --output FILE");
    if (st == FA_OK)
        st = cli_file_check(a->output);
    if (st == FA_OK)
        st = gather(c, a, &b);
    if (st == FA_OK) {
        command_of(a, &b, name, &command);
        cli_bundle_write(&b, name, &blob);
        if (!a->raw)
            cli_bundle_print(&b, name, base ? base + 1 : file ? a->output : "bundle", fa_text_cstr(&command), &blob, &text);
        st = text.oom || blob.oom || command.oom ? fa_fail(FA_NOMEM, "no memory for the bundle")
                                                 : cli_file_write(file ? a->output : "-", fa_text_cstr(t), t->n, NULL, 0);
    }
    int code = CLI_EXIT_OK;
    if (st != FA_OK)
        code = cli_fail(c, st);
    else if (c->json)
        code = cli_answer(c,
                          json_pack("{s:s,s:s,s:I,s:i,s:o}", "name", name, "output", a->output, "bytes", (json_int_t)t->n, "images",
                                    (int)b.images, "rows", rows_json(&b)),
                          CLI_EXIT_OK);
    else if (file)
        cli_note(c, "wrote %s: %u rows, %u images, %zu bytes; %s%s", a->output, b.rows, b.images, t->n,
                 a->raw ? "fa_bundle_open() takes them: " : "extern const fa_bundle ", name);
    fa_text_free(&blob);
    fa_text_free(&text);
    fa_text_free(&command);
    cli_bundle_free(&b);
    return code;
}
