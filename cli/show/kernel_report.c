/* kernel_report: the compiler asked, the template's #line directives counted. */
#include "kernel_report.h"
#include "cli/text/say.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "runtime/build/build.h"
#include <stdlib.h>
#include <string.h>

/* The lines between two directives are of the file and number that the first names. */
static void count_lines(cli_kernel_report *a, const fa_source *s)
{
    int32_t at = -1, line = 0;
    for (const char *p = s->lined; p && *p; p += strcspn(p, "\n"), p += *p != 0) {
        char name[40];
        if (sscanf(p, "#line %d \"templates/%39[^\"]\"", &line, name) == 2) {
            for (at = 0; at < a->files && strcmp(a->file[at].name, name);)
                at++;
            if (at == a->files && at < CLI_KERNEL_REPORT_FILES) {
                a->files++;
                memcpy(a->file[at].name, name, sizeof name);
                a->file[at].first = line;
            }
        } else if (at >= 0 && at < a->files) {
            a->file[at].first = line < a->file[at].first ? line : a->file[at].first;
            a->file[at].last = line > a->file[at].last ? line : a->file[at].last;
            a->file[at].lines++;
            line++;
        }
    }
}

static fa_status compile(cli_kernel_report *a, fa_store *store, fa_compiler *compiler, const fa_problem *p, const fa_config *c)
{
    const fa_nvrtc *nvrtc;
    fa_compile_options o;
    size_t at = 0;
    fa_status st = fa_compiler_nvrtc(compiler, &nvrtc);
    if (st != FA_OK)
        return st;
    snprintf(a->compiler, sizeof a->compiler, "%s", nvrtc->identity);
    fa_compile_options_make(&o, nvrtc, a->arch->name, fa_image_kind(a->source, FA_IMAGE_STEPS));
    for (int i = 0; i < o.n && at < sizeof a->options; i++)
        at += (size_t)snprintf(a->options + at, sizeof a->options - at, "%s%s", i ? " " : "", o.list[i]);
    st = fa_compiler_key(compiler, a->source, a->arch->name, FA_IMAGE_STEPS, &a->key);
    return st == FA_OK ? fa_build_image(store, compiler, a->source, a->arch->name, FA_IMAGE_STEPS, (fa_subject){ p, c }, false, &a->cubin,
                                        &a->cached)
                       : st;
}

void cli_kernel_report_make(cli_kernel_report *out, fa_gen *g, fa_store *store, fa_compiler *compiler, const fa_problem *p,
                            const fa_config *c, const fa_arch *arch, const fa_source *source)
{
    fa_problem shape = *p;
    *out = (cli_kernel_report){ .source = source, .arch = arch };
    count_lines(out, source);
    if (compile(out, store, compiler, p, c) != FA_OK)
        snprintf(out->trouble, sizeof out->trouble, "%s", fa_last_error());
    for (int i = 0; i < source->steps; i++)
        out->resources[i] = fa_resources_parse(out->cubin.log, source->step[i].entry);
    fa_problem_fill_shape(&shape);
    if (fa_model_cost(g, &shape, c, arch, out->resources[0].known ? out->resources[0].registers : 0, &out->cost) != FA_OK)
        out->cost = (fa_cost){ .seconds = 0 };
}

void cli_kernel_report_free(cli_kernel_report *a)
{
    fa_entry_free(&a->cubin);
}

json_t *cli_kernel_report_json(const cli_kernel_report *a)
{
    char key[33], text[33];
    json_t *steps = json_array(), *files = json_array();
    fa_key_print(key, a->key);
    fa_key_print(text, (fa_key){ a->source->hash[0], a->source->hash[1] });
    for (int i = 0; i < a->source->steps; i++) {
        const fa_resources *r = &a->resources[i];
        const fa_step *s = &a->source->step[i];
        json_array_append_new(steps, json_pack("{s:s,s:i,s:i,s:o,s:o,s:o,s:s}", "entry", s->entry, "threads", s->threads, "smem", s->smem,
                                               "registers", r->known ? json_integer(r->registers) : json_null(), "spill_stores",
                                               r->known ? json_integer(r->spill_stores) : json_null(), "spill_loads",
                                               r->known ? json_integer(r->spill_loads) : json_null(), "note", r->note));
    }
    for (int i = 0; i < a->files; i++)
        json_array_append_new(files, json_pack("{s:s,s:i,s:i,s:i}", "file", a->file[i].name, "first", a->file[i].first, "last",
                                               a->file[i].last, "lines", a->file[i].lines));
    return json_pack("{s:{s:o,s:s,s:s,s:o,s:s},s:o,s:o,s:{s:i,s:s,s:o},s:o,s:o,s:o}", "key", "key",
                     a->compiler[0] ? json_string(key) : json_null(), "text", text, "arch", a->arch->name, "compiler",
                     a->compiler[0] ? json_string(a->compiler) : json_null(), "options", a->options, "cached", json_boolean(a->cached),
                     "kernels", steps, "occupancy", "blocks_sm", a->cost.blocks_sm, "limiter", a->cost.limiter ? a->cost.limiter : "",
                     "warps", cli_json_number(a->cost.occupancy), "model_seconds",
                     a->cost.seconds > 0 ? cli_json_number(a->cost.seconds) : json_null(), "templates", files, "trouble",
                     a->trouble[0] ? json_string(a->trouble) : json_null());
}

void cli_kernel_report_print(const cli_kernel_report *a, bool simulated)
{
    char hex[33];
    for (int i = 0; i < a->source->steps; i++) {
        const fa_resources *r = &a->resources[i];
        const fa_step *s = &a->source->step[i];
        cli_say(stdout, "resources  %s: ", s->entry);
        if (r->known && r->spill_stores + r->spill_loads == 0)
            cli_say(stdout, "%d registers, no spills", r->registers);
        else if (r->known)
            cli_say(stdout, "%d registers, %d + %d bytes spilled", r->registers, r->spill_stores, r->spill_loads);
        else
            cli_say(stdout, "about %d registers (estimate: not compiled)", a->source->min_regs);
        cli_say(stdout, ", %d threads, %d bytes of shared memory\n", s->threads, s->smem);
        if (r->note[0])
            cli_say(stdout, "slow       %s: %s\n", s->entry, r->note);
    }
    if (a->cost.seconds > 0)
        cli_say(stdout, "occupancy  %d blocks per SM, limited by %s: %.0f %% of its warps\n", a->cost.blocks_sm, a->cost.limiter,
                100 * a->cost.occupancy);
    if (a->trouble[0])
        cli_say(stdout, "cubin      none: %s\n", a->trouble);
    else
        cli_say(stdout, "cubin      %zu bytes, %s%s\n", a->cubin.image_size, a->cached ? "out of the disk cache" : "compiled now",
                simulated ? "; a chip's: the simulator runs PTX, whose key the line `kernel` has" : "");
    if (a->compiler[0]) {
        fa_key_print(hex, a->key);
        cli_say(stdout, "key        %s of\n", hex);
    }
    fa_key_print(hex, (fa_key){ a->source->hash[0], a->source->hash[1] });
    cli_say(stdout, "  text     %s\n  arch     %s\n", hex, a->arch->name);
    if (a->compiler[0])
        cli_say(stdout, "  options  %s\n  compiler %s\n", a->options, a->compiler);
    fputs("templates  ", stdout);
    for (int i = 0; i < a->files; i++)
        cli_say(stdout, "%s%s %d-%d (%d lines)", i ? ", " : "", a->file[i].name, a->file[i].first, a->file[i].last, a->file[i].lines);
    putchar('\n');
}
