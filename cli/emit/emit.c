/* emit: the kernel of a config as text, PTX or cubin. */
#include "emit.h"
#include "cli/files/file.h"
#include "cli/session/config_text.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "host.h"
#include "runtime/build/compiler.h"
#include "runtime/build/resources.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CU, PTX, CUBIN };
static const cli_word formats[] = { { "cu", CU }, { "ptx", PTX }, { "cubin", CUBIN }, { NULL, 0 } };

#define FIELD(f) .at = offsetof(emit_args, f)
#define LENGTH .min = 1, .max = FA_MAX_LENGTH
/* clang-format off */
static const cli_option problem_options[] = {
    { .name = "op", .type = &cli_choices, FIELD(op), .value = "LIST", .help = "what is computed (default forward)", .words = cli_ops },
    { .name = "head-dim", .letter = 'd', .type = &cli_ints, FIELD(d), .value = "LIST",
      .help = "head_dim of Q and K (default 128)", .min = 1,
      .max = FA_MAX_HEAD_DIM },
    { .name = "dv", .type = &cli_int, FIELD(dv), .value = "D",
      .help = "head_dim of V and O (default: as Q)", .min = 1, .max = FA_MAX_HEAD_DIM },
    { .name = "dtype", .letter = 't', .type = &cli_choices, FIELD(dtype), .value = "LIST",
      .help = "of Q, K, V (default bf16)", .words = cli_dtypes },
    { .name = "o-dtype", .type = &cli_choice, FIELD(o_dtype), .value = "TYPE", .help = "of O (default: as Q)", .words = cli_dtypes },
    { .name = "mask", .type = &cli_choices, FIELD(mask), .value = "LIST",
      .help = "which keys are visible (default none)", .words = cli_masks },
    { .name = "causal", FIELD(causal), .help = "the same as --mask causal" },
    CLI_WINDOW_ROW(offsetof(emit_args, window)),
    { .name = "batch", .letter = 'b', .type = &cli_int, FIELD(b), .value = "B", .help = "batch", LENGTH },
    { .name = "heads", .letter = 'H', .type = &cli_int, FIELD(hq), .value = "H", .help = "query heads", .min = 1, .max = 1 << 16 },
    { .name = "kv-heads", .type = &cli_int, FIELD(hkv), .value = "H",
      .help = "key/value heads (default: as query heads)", .min = 1, .max = 1 << 16 },
    { .name = "n", .letter = 'n', .type = &cli_ints, FIELD(n), .value = "LIST", .help = "sequence length of queries and keys", LENGTH },
    { .name = "sq", .type = &cli_int, FIELD(sq), .value = "N", .help = "query length", LENGTH },
    { .name = "sk", .type = &cli_int, FIELD(sk), .value = "N", .help = "key length", LENGTH },
    { .name = "align", .type = &cli_ints, FIELD(align), .value = "LIST",
      .help = "bytes: rows start at multiples of it: 2, 4, 8 or 16", .min = 2,
      .max = 16 },
    CLI_FEATURE_ROWS(offsetof(emit_args, features), offsetof(emit_args, page)),
    CLI_LOW_ROWS(offsetof(emit_args, low)),
    CLI_SCORE_ROWS(offsetof(emit_args, score)),
    { .name = "problem", .type = &cli_text, FIELD(problem), .value = "TEXT",
      .help = "all of it in one text, as fagen prints it: 'bf16,d=128,mask=causal,b=2,hq=16,sq=4096,sk=4096'; several between semicolons" },
    { .name = NULL },
};
static const cli_option chip_options[] = {
    { .name = "arch", .type = &cli_text, FIELD(arch), .value = "LIST",
      .help = "sm_80, sm_90a, ..., or a product such as a100 or h200 (default: that of FAGEN_DEVICE, else of the GPU of this machine, "
                "else sm_80); in a bundle also compute_80, ..., for PTX" },
    { .name = "device", .type = &cli_text, FIELD(device), .value = "DEVICE",
      .help = "the arch of a device instead: cuda, cuda:N, or sim:ARCH" },
    { .name = "sram", .type = &cli_bytes, FIELD(sram), .value = "BYTES",
      .help = "shared memory per block that a kernel may use, as 65536 or 64KiB (default: all the chip offers)", .min = 1, .max = 1 << 20 },
    { .name = NULL },
};
static const cli_option options[] = {
    { .name = "config", .letter = 'c', .type = &cli_text, FIELD(config), .value = "CONFIG",
      .help = "family:name=value,... (default: what fa_launch would run; of a part, the model's best that it can mean)" },
    { .name = "model-best", FIELD(model_best), .help = "the model's best of the whole space instead, whatever is measured or ships" },
    { .name = "chip", .type = &cli_text, FIELD(chip), .value = "NAME",
      .help = "whose measured records and shipped winners count, as 'NVIDIA H200' (default: the GPU of that arch in this machine)" },
    { .name = "format", .letter = 'f', .type = &cli_choice, FIELD(format), .value = "FORMAT",
      .help = "what is written", .preset = "cu", .words = formats },
    { .name = "host", FIELD(host), .help = "add the launcher and a main that checks one problem: a file that nvcc builds alone" },
    { .name = "output", .letter = 'o', .type = &cli_text, FIELD(output), .value = "FILE",
      .help = "where to; \"-\" is standard output (default: standard output; cubin has none)" },
    { .name = NULL },
};
static const cli_option bundle_options[] = {
    { .name = "bundle", FIELD(bundle), .help = "write a C file with the compiled kernels of every problem and arch of the lists" },
    { .name = "grid", .letter = 'g', .type = &cli_text, FIELD(grid), .value = "NAME",
      .help = "a named set of problems, as of fagen tune: default, llm-prefill, llm-decode-like, llm-decode, llm-verify, llm-low-bits, llm-mixed, training, vit, all, scores" },
    { .name = "raw", FIELD(raw),
      .help = "write the bytes of the bundle instead of C: a program reads or maps the file, and fa_bundle_open takes them" },
    { .name = "name", .type = &cli_text, FIELD(name), .value = "NAME",
      .help = "of the fa_bundle in it (default: the file's name up to its dot)" },
    { .name = "threads", .letter = 'j', .type = &cli_int, FIELD(threads), .value = "N",
      .help = "compile threads (default: one per core, at most 8)",
      .min = 1, .max = 64 },
    { .name = NULL },
};
/* clang-format on */
static const cli_group groups[] = { { "The problem; lists, for a bundle, give every combination", problem_options, 0 },
                                    { "The chip", chip_options, 0 },
                                    { "The kernel", options, 0 },
                                    { "A bundle", bundle_options, 0 },
                                    CLI_COMMON,
                                    { NULL, NULL, 0 } };

/* One problem and one arch: what fits one kernel's text. */
static fa_status only(const emit_args *a, fa_problem *p, const fa_arch **arch)
{
    static fa_problem all[EMIT_PROBLEMS];
    size_t n;
    const cli_chip chip = { .arch = a->arch, .sram = a->sram };
    if (a->name || a->grid || a->raw)
        return fa_fail(FA_INVALID, "--%s is of a bundle; accepted: together with --bundle", a->name ? "name" : a->grid ? "grid" : "raw");
    fa_status st = emit_problems(a, all, &n);
    if (st == FA_OK && n > 1)
        st = fa_fail(FA_INVALID, "the lists give %zu problems; accepted without --bundle: one", n);
    if (st == FA_OK)
        *p = all[0];
    return st == FA_OK ? cli_chip_arch(&chip, arch) : st;
}

static json_t *steps_json(const fa_source *s, const fa_entry *e)
{
    json_t *steps = json_array();
    for (int i = 0; i < s->steps; i++) {
        fa_resources r = fa_resources_parse(e->log, s->step[i].entry);
        const fa_step *t = &s->step[i];
        json_array_append_new(steps,
                              json_pack("{s:s,s:i,s:i,s:i,s:i,s:b,s:b,s:i,s:o,s:o,s:s}", "entry", t->entry, "threads", t->threads, "smem",
                                        t->smem, "per_sm", t->per_sm, "cluster", t->cluster, "counter", t->counter, "early", t->pdl, "maps",
                                        t->n_maps, "registers", r.known ? json_integer(r.registers) : json_null(), "spills",
                                        r.known ? json_integer(r.spill_stores + r.spill_loads) : json_null(), "note", r.note));
    }
    return steps;
}

/* Where the result goes, which is `whole` where that is not NULL: a file, standard output, or a string of the document. */
static int deliver(cli *c, const emit_args *a, const fa_problem *p, const fa_selection *selection, const fa_arch *arch, const fa_source *s,
                   const fa_entry *e, const fa_text *whole)
{
    const char *bytes = whole ? whole->s : a->format == CU ? s->text : e->image;
    size_t n = whole ? whole->n : a->format == CU ? s->text_size : e->image_size - (e->ptx != 0); /* without the NUL */
    fa_status st = FA_OK;
    if (!a->output && !c->json && (a->format == CU || e->ptx) && isatty(STDOUT_FILENO))
        cli_say(stdout, "%s", bytes);
    else if (a->output || !c->json)
        st = cli_file_write(a->output ? a->output : "-", bytes, n, NULL, 0);
    if (st != FA_OK)
        return cli_fail(c, st);
    if (c->json) {
        char problem[FA_PROBLEM_TEXT], text[512], hash[40];
        fa_problem_print_key(problem, sizeof problem, p);
        cli_config_text(text, &selection->config);
        snprintf(hash, sizeof hash, "%016llx%016llx", (unsigned long long)s->hash[1], (unsigned long long)s->hash[0]);
        return cli_answer(c,
                          json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:o,s:o,s:o}", "problem", problem, "config", text, "where",
                                    selection->where, "why", selection->why, "arch", arch->name, "format", formats[a->format].name,
                                    "source", hash, "bytes", (json_int_t)n, "kernels", steps_json(s, e), "output",
                                    a->output ? json_string(a->output) : json_null(), "text",
                                    a->output ? json_null() : json_stringn(bytes, n)),
                          CLI_EXIT_OK);
    }
    if (a->output && strcmp(a->output, "-"))
        cli_note(c, "wrote %s: %zu bytes; %s: %s", a->output, n, selection->where, selection->why);
    return CLI_EXIT_OK;
}

static int run(cli *c, const void *args, int n, char **words)
{
    emit_args there = *(const emit_args *)args;
    const emit_args *a = &there;
    fa_problem p;
    const fa_arch *arch;
    fa_context *ctx = NULL;
    fa_selection selection;
    fa_source s = { 0 };
    fa_entry e = { 0 };
    fa_compiler *compiler = NULL;
    (void)n, (void)words;
    fa_status st = !there.arch    ? emit_default_arch(&there.arch, there.device)
                   : there.device ? fa_fail(FA_INVALID, "--arch and --device are two ways to name the chip; accepted: one of them")
                                  : FA_OK;
    if (st != FA_OK)
        return cli_fail(c, st);
    if (a->bundle)
        return emit_bundle(c, a);
    st = only(a, &p, &arch);
    if (st == FA_OK && a->format == CUBIN && !a->output)
        st = fa_fail(FA_INVALID, "--format cubin is binary: --output FILE says where to; \"-\" is standard output");
    if (st == FA_OK && c->json && a->output && !strcmp(a->output, "-"))
        st = fa_fail(FA_INVALID, "--output - and --json both write to standard output; accepted: one of them");
    if (st == FA_OK)
        st = cli_file_check(a->output);
    if (st == FA_OK)
        st = emit_open(a, arch, &ctx);
    if (st == FA_OK)
        st = emit_pick(a, ctx, &p, &selection, &s);
    fa_destroy(ctx);
    fa_text whole = { 0 };
    if (st == FA_OK && a->host) {
        fa_text_add(&whole, s.text, s.text_size);
        st = a->format == CU ? emit_host(&whole, arch, a->sram, &p, &selection.config, &s, &a->window)
                             : fa_fail(FA_INVALID, "--host and --format %s contradict each other; accepted: cu", formats[a->format].name);
    }
    if (st == FA_OK && a->format != CU) {
        compiler = fa_compiler_open(NULL);
        st = compiler ? fa_compile(compiler, &s, arch->name, a->format == PTX, &e) : fa_fail(FA_NOMEM, "no memory for a compiler");
    }
    int code = st == FA_OK ? deliver(c, a, &p, &selection, arch, &s, &e, a->host ? &whole : NULL) : cli_fail(c, st);
    fa_text_free(&whole);
    fa_entry_free(&e);
    fa_compiler_close(compiler);
    fa_source_free(&s);
    return code;
}

const cli_command cli_emit = {
    .name = "emit",
    .summary = "the kernel of a config: readable CUDA, PTX or a cubin; or many, compiled, in a C file",
    .usage = "[problem] [--config CONFIG] [--format FORMAT] [-o FILE] | --bundle [problems] --arch LIST -o FILE.c",
    .about = "Renders the config that fa_launch would run there, from the records of the chip, what ships, or the model, or the one that "
             "is named, to the text "
             "that fagen would compile. The text names its config: with --config the same command gives the same bytes. "
             "Needs no GPU; ptx and cubin need NVRTC. With --host the text has the launcher and a main that checks one problem, too: nvcc "
             "builds that file alone. With --bundle: a C file with the compiled kernels that fa_launch would run for each "
             "problem on "
             "each arch, and how they are launched. A program that hands it to fa_create needs no NVRTC. With --raw the bytes alone, for "
             "programs that map a file.",
    .examples = "fagen emit -d 128 --causal\nfagen emit -d 128 --causal -n 1k --arch h100 --host -o kernel.cu\nfagen emit -d 64 --arch "
                "sm_90a --format cubin -o attention.cubin\n"
                "fagen emit --problem 'fp16,d=64,mask=causal' --config 'flash_fwd_mma:br=64,bc=64,warps=4' -o kernel.cu\n"
                "fagen emit --bundle -d 64,128 --mask none,causal -n 1024,4096 --arch sm_80,sm_90a -o fa_kernels.c",
    .groups = groups,
    .size = sizeof(emit_args),
    .run = run,
};
