/* bundle: the C text, for people first: what it holds, then the launch rules, then the bytes. */
#include "bundle.h"
#include "gen/model.h"
#include "gen/error.h"
#include "gen/problem.h"
#include "runtime/resources.h"
#include "runtime/shelf.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 120 /* of the lines of bytes */

static bool same_image(const cli_bundle_image *i, const fa_source *s, const fa_entry *e)
{
    return i->entry.key.lo == e->key.lo && i->entry.key.hi == e->key.hi && i->steps.steps == s->steps &&
           !memcmp(i->steps.step, s->step, sizeof s->step);
}

static void describe(cli_bundle_image *i, const fa_config *c)
{
    fa_bundle_image *d = &i->data;
    fa_config_print(i->config, sizeof i->config, c);
    fa_key_print(i->source, (fa_key){i->steps.hash[0], i->steps.hash[1]});
    *d = (fa_bundle_image){.arch = i->entry.arch, .config = i->config, .source = i->source, .check = i->check,
                           .bytes = (const unsigned char *)i->entry.image, .size = i->entry.image_size, .ptx = i->entry.ptx,
                           .score_bytes = i->steps.workspace.n ? 4 : 0, .steps = i->steps.steps};
    for (int k = 0; k < d->steps; k++) {
        const fa_step *s = &i->steps.step[k];
        fa_resources r = fa_resources_parse(i->entry.log, s->entry);
        d->step[k] = (fa_bundle_step){.entry = s->entry, .threads = s->threads, .smem = s->smem, .br = fa_step_row_tile(s), .bc = s->grid.n > 3 ? s->grid.factor[1].by : 0, .pack = fa_step_packs(s),
                                      .per_sm = s->per_sm, .cluster = s->cluster, .counter = s->counter, .early = s->early, .registers = r.registers,
                                      .spills = r.spill_stores + r.spill_loads, .maps = s->n_maps};
        for (int m = 0; m < s->n_maps; m++)
            d->step[k].map[m] = (fa_bundle_map){s->map[m].operand, s->map[m].cols, s->map[m].rows, s->map[m].swizzle};
    }
    fa_key_print(i->check, fa_shelf_check(d));
}

static fa_status add_image(cli_bundle *b, const fa_config *c, const fa_source *s, fa_entry *e)
{
    cli_bundle_image **list = realloc(b->image, (b->images + 1) * sizeof *list), *i = calloc(1, sizeof *i);
    b->image = list ? list : b->image;
    if (!list || !i) {
        free(i);
        return fa_fail(FA_NOMEM, "bundle: no memory for image %u", b->images);
    }
    i->entry = *e;
    *e = (fa_entry){.ptx = 0};
    i->steps = *s;
    i->steps.text = i->steps.lined = NULL;
    describe(i, c);
    b->image[b->images++] = i;
    return FA_OK;
}

static bool same_row(const cli_bundle *b, const cli_bundle_row *r, const fa_problem *p, const fa_entry *e)
{
    char x[160], y[160];
    const cli_bundle_image *i = b->image[r->image];
    fa_problem_print_key(x, sizeof x, &r->problem);
    fa_problem_print_key(y, sizeof y, p);
    return !strcmp(x, y) && fa_problem_bucket(&r->problem) == fa_problem_bucket(p) && !strcmp(i->entry.arch, e->arch) && i->entry.ptx == e->ptx;
}

fa_status cli_bundle_add(cli_bundle *b, const fa_problem *p, const fa_config *c, const char *why, const fa_source *s, fa_entry *e)
{
    uint32_t i = 0;
    for (uint32_t k = 0; k < b->rows; k++)
        if (same_row(b, &b->row[k], p, e))
            return FA_OK;
    cli_bundle_row *list = realloc(b->row, (b->rows + 1) * sizeof *list);
    if (!list)
        return fa_fail(FA_NOMEM, "bundle: no memory for row %u", b->rows);
    b->row = list;
    while (i < b->images && !same_image(b->image[i], s, e))
        i++;
    fa_status st = i < b->images ? FA_OK : add_image(b, c, s, e);
    if (st != FA_OK)
        return st;
    list[b->rows] = (cli_bundle_row){.problem = *p, .image = i};
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
    *b = (cli_bundle){.images = 0};
}

/* A string literal. Three digits of octal, so that what follows cannot join them; '?' so that no trigraph comes to be. */
static void literal(fa_text *t, const char *s)
{
    fa_text_str(t, "\"");
    for (; *s; s++)
        if (*s == '"' || *s == '\\' || *s == '?' || !isprint((unsigned char)*s))
            fa_text_fmt(t, "\\%03o", (unsigned)(unsigned char)*s);
        else
            fa_text_add(t, s, 1);
    fa_text_str(t, "\"");
}

/* Text that cannot end the comment it stands in. */
static void remark(fa_text *t, const char *s)
{
    for (; *s; s++)
        fa_text_add(t, (s[0] == '/' && t->n && t->s[t->n - 1] == '*') || !isprint((unsigned char)*s) ? " " : s, 1);
}

static void print_head(const cli_bundle *b, const char *name, const char *file, const char *command, fa_text *t)
{
    char line[256];
    size_t bytes = 0;
    for (uint32_t i = 0; i < b->images; i++)
        bytes += b->image[i]->entry.image_size;
    fa_text_str(t, "/* ");
    remark(t, file);
    fa_text_fmt(t, ": attention kernels, compiled beforehand by fagen %s: %u rows, %u images, %zu bytes. Made again by\n *\n *     ",
                FA_VERSION_STRING, b->rows, b->images, bytes);
    remark(t, command);
    fa_text_fmt(t, "\n *\n * A program links this file with fagen and hands the bundle over; no NVRTC, template or disk cache is needed then:\n *\n"
                   " *     extern const fa_bundle %s;\n *     const fa_bundle *const bundles[] = { &%s, NULL };\n"
                   " *     options.bundles = bundles;\n *     options.bundle_only = 1;\n *     fa_create(&ctx, &options);\n *\n", name, name);
    for (uint32_t i = 0; i < b->rows; i++) {
        const cli_bundle_image *m = b->image[b->row[i].image];
        fa_problem_print(line, sizeof line, &b->row[i].problem);
        fa_text_fmt(t, " * %s%s: %s\n *     %s\n", m->entry.arch, m->entry.ptx ? " (PTX)" : "", line, m->config);
    }
    fa_text_str(t, " */\n#include <fagen.h>\n\n");
}

static void print_bytes(const cli_bundle_image *i, uint32_t at, fa_text *t)
{
    size_t start = 0;
    fa_text_fmt(t, "static const unsigned char image_%u[%zu] = { /* %s for %s of CUDA text %s */\n", at, i->entry.image_size,
                i->entry.ptx ? "PTX" : "cubin", i->entry.arch, i->source);
    start = t->n;
    for (size_t k = 0; k < i->entry.image_size; k++) {
        fa_text_fmt(t, "%u,", (unsigned)(unsigned char)i->entry.image[k]);
        if (t->n - start >= WIDTH || k + 1 == i->entry.image_size) {
            fa_text_str(t, "\n");
            start = t->n;
        }
    }
    fa_text_str(t, "};\n\n");
}

static void print_step(const fa_bundle_step *s, fa_text *t)
{
    fa_text_str(t, "        { ");
    literal(t, s->entry);
    fa_text_fmt(t, ", %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, {", s->threads, s->smem, s->br, s->bc, s->pack, s->per_sm, s->cluster, s->counter,
                s->early, s->registers, s->spills, s->maps);
    for (int m = 0; m < 4; m++)
        fa_text_fmt(t, "%s{ %d, %d, %d, %d }", m ? ", " : " ", s->map[m].tensor, s->map[m].cols, s->map[m].rows, s->map[m].swizzle);
    fa_text_str(t, " } },\n");
}

static void print_image(const cli_bundle_image *i, uint32_t at, fa_text *t)
{
    const fa_bundle_image *d = &i->data;
    static const fa_bundle_step nothing = {.entry = ""};
    fa_text_fmt(t, "    { \"%s\",\n      ", d->arch);
    literal(t, d->config);
    fa_text_fmt(t, ",\n      \"%s\", \"%s\", image_%u, sizeof image_%u, %d, %d, %d, {\n", d->source, d->check, at, at, d->ptx, d->score_bytes,
                d->steps);
    for (int k = 0; k < 4; k++)
        print_step(k < d->steps ? &d->step[k] : &nothing, t);
    fa_text_str(t, "      } },\n");
}

void cli_bundle_print(const cli_bundle *b, const char *name, const char *file, const char *command, fa_text *t)
{
    char line[256];
    print_head(b, name, file, command, t);
    fa_text_fmt(t, "#if FA_BUNDLE_FORMAT != %d\n#error \"fagen.h is of another version than this bundle: emit it anew\"\n#endif\n\n", FA_BUNDLE_FORMAT);
    for (uint32_t i = 0; i < b->images; i++)
        print_bytes(b->image[i], i, t);
    fa_text_str(t, "/* arch, config, hash of the CUDA text, checksum, bytes, PTX?, workspace bytes per score, kernels: each with its entry, threads,\n"
                   " * shared memory, br, bc, pack, per_sm, cluster, counter, early, registers, spilled bytes, number of tensor maps, the maps */\n"
                   "static const fa_bundle_image images[] = {\n");
    for (uint32_t i = 0; i < b->images; i++)
        print_image(b->image[i], i, t);
    fa_text_str(t, "};\n\n/* problem, why this config, image */\nstatic const fa_bundle_row rows[] = {\n");
    for (uint32_t i = 0; i < b->rows; i++) {
        fa_problem_print(line, sizeof line, &b->row[i].problem);
        fa_text_fmt(t, "    { \"%s\",\n      ", line);
        literal(t, b->row[i].why);
        fa_text_fmt(t, ", %u },\n", b->row[i].image);
    }
    fa_text_fmt(t, "};\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const fa_bundle %s;\n"
                   "const fa_bundle %s = { sizeof(fa_bundle), %d, \"%s\", \"%s\", UINT64_C(0x%016llx), rows, images, %u, %u };\n"
                   "#ifdef __cplusplus\n}\n#endif\n",
                name, name, FA_BUNDLE_FORMAT, name, FA_VERSION_STRING, (unsigned long long)fa_shelf_params(), b->rows, b->images);
}
