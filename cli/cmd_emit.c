/* emit: the kernel of a config as text, PTX or cubin. */
#include "ask.h"
#include "command.h"
#include "file.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "ranking.h"
#include "runtime/compiler.h"
#include "runtime/resources.h"
#include <stdlib.h>
#include <string.h>

typedef struct emit_args {
    cli_common common;
    cli_ask ask;
    cli_chip chip;
    const char *config, *output;
    int32_t format;
} emit_args;

enum { CU, PTX, CUBIN };
static const cli_word formats[] = { { "cu", CU }, { "ptx", PTX }, { "cubin", CUBIN }, { NULL, 0 } };

static const cli_option options[] = {
    { .name = "config", .letter = 'c', .kind = &cli_text, .at = offsetof(emit_args, config), .value = "CONFIG",
      .help = "family:name=value,... (default: the model's best)" },
    { .name = "format", .letter = 'f', .kind = &cli_choice, .at = offsetof(emit_args, format), .value = "FORMAT",
      .help = "what is written", .preset = "cu", .words = formats },
    { .name = "output", .letter = 'o', .kind = &cli_text, .at = offsetof(emit_args, output), .value = "FILE",
      .help = "where to (default: standard output; not for cubin)" },
    { .name = NULL },
};
static const cli_group groups[] = { CLI_ASK(emit_args), CLI_CHIP(emit_args), { "The kernel", options, 0 }, CLI_COMMON, { NULL, NULL, 0 } };

static json_t *steps_json(const fa_source *s, const fa_entry *e)
{
    json_t *steps = json_array();
    for (int i = 0; i < s->steps; i++) {
        fa_resources r = fa_resources_parse(e->log, s->step[i].entry);
        const fa_step *t = &s->step[i];
        json_array_append_new(steps, json_pack("{s:s,s:i,s:i,s:i,s:i,s:b,s:i,s:o,s:o,s:s}", "entry", t->entry, "threads", t->threads, "smem", t->smem,
                                               "per_sm", t->per_sm, "cluster", t->cluster, "counter", t->counter, "maps", t->n_maps, "registers",
                                               r.known ? json_integer(r.registers) : json_null(), "spills",
                                               r.known ? json_integer(r.spill_stores + r.spill_loads) : json_null(), "note", r.note));
    }
    return steps;
}

/* Where the result goes: a file, standard output, or a string of the document. */
static int deliver(cli *c, const emit_args *a, const fa_problem *p, const fa_config *config, const fa_arch *arch, const fa_source *s,
                   const fa_entry *e)
{
    const char *bytes = a->format == CU ? s->text : e->image;
    size_t n = a->format == CU ? s->text_size : e->image_size - (e->ptx != 0); /* without the NUL */
    fa_status st = FA_OK;
    if (a->output || !c->json)
        st = cli_file_write(a->output ? a->output : "-", bytes, n, NULL, 0);
    if (st != FA_OK)
        return cli_fail(c, st);
    if (c->json) {
        char problem[200], text[512], hash[40];
        fa_problem_print_key(problem, sizeof problem, p);
        fa_config_print(text, sizeof text, config);
        snprintf(hash, sizeof hash, "%016llx%016llx", (unsigned long long)s->hash[1], (unsigned long long)s->hash[0]);
        return cli_answer(c, json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:o,s:o,s:o}", "problem", problem, "config", text, "arch", arch->name, "format",
                                       formats[a->format].name, "source", hash, "bytes", (json_int_t)n, "kernels", steps_json(s, e), "output",
                                       a->output ? json_string(a->output) : json_null(), "text",
                                       a->output ? json_null() : json_stringn(bytes, n)),
                          CLI_EXIT_OK);
    }
    if (a->output && strcmp(a->output, "-"))
        cli_note(c, "wrote %s: %zu bytes", a->output, n);
    return CLI_EXIT_OK;
}

static int run(cli *c, const void *args, int n, char **words)
{
    const emit_args *a = args;
    fa_problem p;
    const fa_arch *arch;
    fa_gen *g = NULL;
    fa_config config;
    fa_source s = { 0 };
    fa_entry e = { 0 };
    fa_compiler *compiler = NULL;
    (void)n, (void)words;
    fa_status st = cli_ask_problem(&a->ask, &p);
    if (st == FA_OK)
        st = cli_chip_arch(&a->chip, &arch);
    if (st == FA_OK && a->format == CUBIN && (!a->output || !strcmp(a->output, "-")))
        st = fa_fail(FA_INVALID, "--format cubin is binary: --output FILE says where to");
    if (st == FA_OK && c->json && a->output && !strcmp(a->output, "-"))
        st = fa_fail(FA_INVALID, "--output - and --json both write to standard output; accepted: one of them");
    if (st == FA_OK)
        st = cli_gen_open(&g);
    if (st == FA_OK)
        st = cli_pick(g, &p, arch, a->chip.sram, a->config, &config);
    if (st == FA_OK)
        st = fa_render(g, &p, &config, arch, a->chip.sram, &s);
    fa_gen_close(g);
    if (st == FA_OK && a->format != CU) {
        compiler = fa_compiler_open(NULL);
        st = compiler ? fa_compile(compiler, &s, arch->name, a->format == PTX, &e) : fa_fail(FA_NOMEM, "no memory for a compiler");
    }
    int code = st == FA_OK ? deliver(c, a, &p, &config, arch, &s, &e) : cli_fail(c, st);
    fa_entry_free(&e);
    fa_compiler_close(compiler);
    fa_source_free(&s);
    return code;
}

const cli_command cli_emit = {
    .name = "emit", .summary = "the kernel of a config: readable CUDA, PTX or a cubin",
    .usage = "[problem] [--config CONFIG] [--format FORMAT] [-o FILE]",
    .about = "Renders a config, the model's best where none is named, to the text that fagen would compile; the same command gives the same bytes. "
             "Needs no GPU; ptx and cubin need NVRTC.",
    .examples = "fagen emit -d 128 --causal\nfagen emit -d 64 --arch sm_90a --format cubin -o attention.cubin\n"
                "fagen emit --problem 'fp16,d=64,mask=causal' --config 'flash_fwd_mma:br=64,bc=64,warps=4' -o kernel.cu",
    .groups = groups, .size = sizeof(emit_args), .run = run,
};
