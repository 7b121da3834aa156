/* bundle_file: the C text, for people first: what it holds, then the bytes. */
#include "bundle_file.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "gen/score/known.h"
#include "runtime/build/resources.h"
#include "runtime/bundle/columns.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 6 /* of a line: 8 bytes each */

static bool same_image(const cli_bundle_image *i, const fa_source *s, const fa_entry *e)
{
    bool same = i->entry.key.lo == e->key.lo && i->entry.key.hi == e->key.hi && i->data.steps == s->steps;
    for (int k = 0; same && k < s->steps; k++)
        same = !memcmp(&i->step[k].launch, &s->step[k], sizeof s->step[k]);
    return same;
}

static fa_status describe(cli_bundle_image *i, const fa_problem *p, const fa_config *c, const fa_source *s)
{
    const fa_operation *op = fa_operation_find(p->op);
    fa_config_print(i->config, sizeof i->config, c);
    fa_key_print(i->source, (fa_key){ s->hash[0], s->hash[1] });
    snprintf(i->params, sizeof i->params, "%s", s->params);
    i->data = (fa_blob_image){ .arch = i->entry.arch,
                               .config = i->config,
                               .source = i->source,
                               .check = i->check,
                               .op = op->name,
                               .params = i->params,
                               .layout = i->layout,
                               .bytes = (const unsigned char *)i->entry.image,
                               .size = (int32_t)i->entry.image_size,
                               .ptx = i->entry.ptx,
                               .workspace = s->workspace,
                               .steps = s->steps,
                               .step = i->step };
    for (int k = 0; k < s->steps; k++) {
        fa_resources r = fa_resources_parse(i->entry.log, s->step[k].entry);
        i->step[k] = (fa_blob_step){ .launch = s->step[k], .registers = r.registers, .spills = r.spill_stores + r.spill_loads };
    }
    fa_key_print(i->check, fa_blob_image_check(&i->data));
    return fa_blob_layout(i->layout, op, &s->workspace, s->params);
}

static fa_status add_image(cli_bundle *b, const fa_problem *p, const fa_config *c, const fa_source *s, fa_entry *e)
{
    cli_bundle_image **list = realloc(b->image, (b->images + 1) * sizeof *list), *i = calloc(1, sizeof *i);
    b->image = list ? list : b->image;
    if (!list || !i) {
        free(i);
        return fa_fail(FA_NOMEM, "bundle: no memory for image %u", b->images);
    }
    i->entry = *e;
    *e = (fa_entry){ .ptx = 0 };
    b->image[b->images++] = i;
    return describe(i, p, c, s);
}

/* Products of one arch may differ in the kernel: then both have a row, and a launch takes the first. */
static bool same_row(const cli_bundle *b, const cli_bundle_row *r, const fa_problem *p, const fa_source *s, const fa_entry *e)
{
    char x[160], y[160];
    const cli_bundle_image *i = b->image[r->image];
    fa_problem_print_key(x, sizeof x, &r->problem);
    fa_problem_print_key(y, sizeof y, p);
    return !strcmp(x, y) && fa_problem_bucket(&r->problem) == fa_problem_bucket(p) && !strcmp(i->entry.arch, e->arch) &&
           i->entry.ptx == e->ptx && same_image(i, s, e);
}

fa_status cli_bundle_add(cli_bundle *b, const fa_problem *p, const fa_config *c, const char *why, const fa_source *s, fa_entry *e)
{
    uint32_t i = 0;
    for (uint32_t k = 0; k < b->rows; k++)
        if (same_row(b, &b->row[k], p, s, e))
            return FA_OK;
    cli_bundle_row *list = realloc(b->row, (b->rows + 1) * sizeof *list);
    if (!list)
        return fa_fail(FA_NOMEM, "bundle: no memory for row %u", b->rows);
    b->row = list;
    while (i < b->images && !same_image(b->image[i], s, e))
        i++;
    fa_status st = i < b->images ? FA_OK : add_image(b, p, c, s, e);
    if (st != FA_OK)
        return st;
    list[b->rows] = (cli_bundle_row){ .problem = *p, .image = i };
    snprintf(list[b->rows++].why, sizeof list->why, "%s", why);
    return FA_OK;
}

void cli_bundle_free(cli_bundle *b)
{
    for (uint32_t i = 0; i < b->images; i++) {
        fa_entry_free(&b->image[i]->entry);
        free(b->image[i]);
    }
    free(b->image);
    free(b->row);
    *b = (cli_bundle){ .images = 0 };
}

void cli_bundle_write(const cli_bundle *b, const char *name, fa_text *out)
{
    fa_blob d = { .name = name, .version = FA_VERSION_STRING, .rows = b->rows, .images = b->images };
    d.row = calloc(b->rows + 1, sizeof *d.row);
    d.image = calloc(b->images + 1, sizeof *d.image);
    for (uint32_t i = 0; d.row && i < b->rows; i++) {
        const fa_program *program = fa_score_known(&b->row[i].problem);
        d.row[i] = (fa_blob_row){
            .problem = b->row[i].problem, .why = b->row[i].why, .score = program ? program->source : "", .image = (int32_t)b->row[i].image
        };
    }
    for (uint32_t i = 0; d.image && i < b->images; i++)
        d.image[i] = b->image[i]->data;
    if (d.row && d.image)
        fa_blob_write(&d, out);
    else
        out->oom = true;
    free(d.row);
    free(d.image);
}

/* Text that cannot end the comment it stands in. */
static void remark(fa_text *t, const char *s)
{
    for (; *s; s++)
        fa_text_add(t, (s[0] == '/' && t->n && t->s[t->n - 1] == '*') || !isprint((unsigned char)*s) ? " " : s, 1);
}

static void print_head(const cli_bundle *b, const char *name, const char *file, const char *command, fa_text *t)
{
    char line[FA_PROBLEM_TEXT];
    size_t bytes = 0;
    for (uint32_t i = 0; i < b->images; i++)
        bytes += b->image[i]->entry.image_size;
    fa_text_str(t, "/* ");
    remark(t, file);
    fa_text_fmt(t, ": attention kernels, compiled beforehand by fagen %s: %u rows, %u images, %zu bytes. Made again by\n *\n *     ",
                FA_VERSION_STRING, b->rows, b->images, bytes);
    remark(t, command);
    fa_text_fmt(
        t,
        "\n *\n * A program links this file with fagen and hands the bundle over; no NVRTC, template or disk cache is needed then:\n *\n"
        " *     extern const fa_bundle %s;\n *     const fa_bundle *const bundles[] = { &%s, NULL };\n"
        " *     options.bundles = bundles;\n *     options.bundle_only = 1;\n *     fa_create(&ctx, &options);\n *\n",
        name, name);
    for (uint32_t i = 0; i < b->rows; i++) {
        const cli_bundle_image *m = b->image[b->row[i].image];
        fa_problem_print(line, sizeof line, &b->row[i].problem);
        fa_text_fmt(t, " * %s%s: %s\n *     %s, image %u\n *     ", m->entry.arch, m->entry.ptx ? " (PTX)" : "", line, m->config,
                    b->row[i].image);
        remark(t, b->row[i].why);
        fa_text_str(t, "\n");
    }
    fa_text_str(t, " *\n * The images, and the hash of the CUDA text that each was compiled from:\n *\n");
    for (uint32_t i = 0; i < b->images; i++)
        fa_text_fmt(t, " *     %u: %s, %zu bytes of %s for %s\n", i, b->image[i]->source, b->image[i]->entry.image_size,
                    b->image[i]->entry.ptx ? "PTX" : "cubin", b->image[i]->entry.arch);
    fa_text_fmt(t,
                " */\n#include <fagen.h>\n\n#if FA_BUNDLE_FORMAT < %d\n#error \"fagen.h is of an older version than this bundle, which has "
                "format %d\"\n"
                "#endif\n\n",
                FA_BUNDLE_FORMAT, FA_BUNDLE_FORMAT);
}

static uint64_t word_at(const char *s)
{
    return fa_get_number((const unsigned char *)s, 8);
}

/* Words take fewer letters and less of a compiler's time than bytes. */
static void print_words(const fa_text *blob, fa_text *t)
{
    for (size_t at = 0, n = 1; at + 8 <= blob->n; at += 8, n++) {
        unsigned long long v = word_at(blob->s + at);
        fa_text_fmt(t, v < 10 ? "%llu,%s" : "0x%llx,%s", v, n % WORDS && at + 16 <= blob->n ? "" : "\n");
    }
}

void cli_bundle_print(const cli_bundle *b, const char *name, const char *file, const char *command, const fa_text *blob, fa_text *t)
{
    print_head(b, name, file, command, t);
    fa_text_fmt(
        t,
        "#ifndef FA_BUNDLE_LINKED /* by another bundle's file that is compiled together with this one */\n#define FA_BUNDLE_LINKED\n"
        "struct fa_bundle {\n    uint64_t magic;\n    const uint64_t *word; /* little-endian */\n    uint64_t bytes;\n};\n#endif\n\n"
        "static const uint64_t %s_words[%zu] = {\n",
        name, blob->n / 8);
    print_words(blob, t);
    fa_text_fmt(t,
                "};\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const fa_bundle %s;\n"
                "const fa_bundle %s = { 0x%016llx, %s_words, sizeof %s_words };\n#ifdef __cplusplus\n}\n#endif\n",
                name, name, (unsigned long long)word_at(FA_BUNDLE_LINKED_MAGIC), name, name);
}
