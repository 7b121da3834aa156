/* shelf: bundles are data from outside the library: every number is looked at once, the bytes when they are first loaded. */
#include "shelf.h"
#include "context.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/source.h"
#include "gen/problem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>


/* The list that both the host and the kernels are made from: whatever is changed there changes this number. */
uint64_t fa_shelf_params(void)
{
#define X(c, cuda, name, comment) #c " " #name ";"
    static const char text[] = FA_SCALARS(X);
#undef X
    return XXH3_64bits(text, sizeof text);
}

static void add_text(XXH3_state_t *h, const char *s)
{
    XXH3_128bits_update(h, s, strlen(s) + 1);
}

static void add_number(XXH3_state_t *h, uint64_t v)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> 8 * i);
    XXH3_128bits_update(h, bytes, sizeof bytes);
}

fa_key fa_shelf_check(const fa_bundle_image *image)
{
    XXH3_state_t h;
    XXH3_128bits_reset(&h);
    XXH3_128bits_update(&h, image->bytes, image->size);
    add_number(&h, image->size);
    add_text(&h, image->arch);
    add_text(&h, image->config);
    add_text(&h, image->source);
    add_number(&h, (uint64_t)image->ptx);
    add_number(&h, (uint64_t)image->score_bytes);
    for (int i = 0; i < image->steps; i++) {
        const fa_bundle_step *s = &image->step[i];
        const int32_t v[] = {s->threads, s->smem, s->br, s->bc, s->pack, s->per_sm, s->cluster, s->counter, s->early, s->registers, s->spills, s->maps};
        add_text(&h, s->entry);
        for (size_t k = 0; k < sizeof v / sizeof *v; k++)
            add_number(&h, (uint64_t)v[k]);
        for (int m = 0; m < s->maps; m++)
            XXH3_128bits_update(&h, &s->map[m], sizeof s->map[m]);
    }
    XXH128_hash_t x = XXH3_128bits_digest(&h);
    return (fa_key){.lo = x.low64, .hi = x.high64};
}

/* A number of the data and what it may be. */
typedef struct range {
    const char *name;
    int64_t v, least, most;
} range;

static fa_status in_range(const range *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (r[i].v < r[i].least || r[i].v > r[i].most)
            return fa_fail(FA_INVALID, "%s is %lld; accepted: %lld to %lld", r[i].name, (long long)r[i].v, (long long)r[i].least,
                           (long long)r[i].most);
    return FA_OK;
}
#define IN_RANGE(rows) in_range(rows, sizeof(rows) / sizeof *(rows))

static fa_status check_map(const fa_bundle_map *m)
{
    const range rows[] = {{"tensor", m->tensor, 0, 3}, {"cols", m->cols, 1, 256}, {"rows", m->rows, 1, 256}};
    fa_status st = IN_RANGE(rows);
    if (st == FA_OK && m->swizzle != 0 && m->swizzle != 32 && m->swizzle != 64 && m->swizzle != 128)
        st = fa_fail(FA_INVALID, "swizzle is %d; accepted: 0, 32, 64, 128", m->swizzle);
    return st;
}

static fa_status check_step(const fa_bundle_step *s)
{
    size_t n = s->entry ? strnlen(s->entry, sizeof((fa_step *)0)->entry) : 0;
    if (n < 1 || n >= sizeof((fa_step *)0)->entry)
        return fa_fail(FA_INVALID, "entry is %s%.40s; accepted: a name of 1 to %zu letters", s->entry ? "" : "NULL", s->entry ? s->entry : "",
                       sizeof((fa_step *)0)->entry - 1);
    const range rows[] = {{"threads", s->threads, 1, 1024},     {"smem", s->smem, 0, 1 << 20},      {"br", s->br, 0, 1 << 20},
                          {"bc", s->bc, 0, 1 << 20},            {"pack", s->pack, 0, 1},            {"per_sm", s->per_sm, 0, 32},
                          {"cluster", s->cluster, 1, FA_CLUSTER_MAX}, {"counter", s->counter, 0, 1}, {"early", s->early, 0, 1},
                          {"maps", s->maps, 0, 4}};
    fa_status st = IN_RANGE(rows);
    for (int m = 0; st == FA_OK && m < s->maps; m++)
        st = fa_wrap(check_map(&s->map[m]), "map %d", m);
    return st;
}

static fa_status check_image(const fa_bundle_image *i)
{
    fa_key k;
    if (!i->arch || !i->config || !i->source || !i->check || !i->bytes)
        return fa_fail(FA_INVALID, "arch, config, source, check or bytes is NULL; accepted: what fagen wrote");
    const fa_arch *arch = fa_arch_find(i->arch);
    if (!arch || strcmp(arch->name, i->arch))
        return fa_fail(FA_INVALID, "arch is \"%.40s\"; accepted: %s", i->arch, fa_arch_names());
    if (!fa_key_parse(&k, i->source) || !fa_key_parse(&k, i->check))
        return fa_fail(FA_INVALID, "source is \"%.40s\", check is \"%.40s\"; accepted: 32 hex digits each", i->source, i->check);
    const range rows[] = {{"size", (int64_t)i->size, 64, 1 << 30}, {"ptx", i->ptx, 0, 1}, {"score_bytes", i->score_bytes, 0, 64},
                          {"steps", i->steps, 1, 4}};
    fa_status st = IN_RANGE(rows);
    if (st == FA_OK && (i->ptx ? i->bytes[i->size - 1] != 0 : memcmp(i->bytes, "\x7f" "ELF", 4) != 0))
        st = fa_fail(FA_INVALID, "bytes: not %s", i->ptx ? "PTX text that ends in a NUL" : "a cubin");
    for (int s = 0; st == FA_OK && s < i->steps; s++)
        st = fa_wrap(check_step(&i->step[s]), "step %d", s);
    return st;
}

static fa_status check_bundle(const fa_bundle *b)
{
    if (b->size < sizeof *b || b->format != FA_BUNDLE_FORMAT)
        return fa_fail(FA_INVALID, "size is %u, format %u; accepted: %zu, %d: emit it anew with this fagen", b->size, b->format, sizeof *b,
                       FA_BUNDLE_FORMAT);
    if (!b->name || !b->version || (!b->row && b->rows) || (!b->image && b->images))
        return fa_fail(FA_INVALID, "name, version, row or image is NULL; accepted: what fagen wrote");
    if (b->params != fa_shelf_params())
        return fa_wrap(fa_fail(FA_INVALID, "its kernels take other parameters (%016llx, fagen %.20s); accepted by fagen %s: %016llx: emit it anew",
                               (unsigned long long)b->params, b->version, FA_VERSION_STRING, (unsigned long long)fa_shelf_params()),
                       "%.60s", b->name);
    for (uint32_t i = 0; i < b->images; i++) {
        fa_status st = check_image(&b->image[i]);
        if (st != FA_OK)
            return fa_wrap(st, "%.60s: image %u", b->name, i);
    }
    return FA_OK;
}

static fa_status take_row(fa_shelf_row *out, const fa_bundle *b, uint32_t i)
{
    const fa_bundle_row *r = &b->row[i];
    if (!r->problem || !r->why || r->image >= b->images)
        return fa_fail(FA_INVALID, "%.60s: row %u: problem or why is NULL, or image %u is none of %u; accepted: what fagen wrote", b->name, i,
                       r->image, b->images);
    *out = (fa_shelf_row){.bundle = b, .row = r, .image = &b->image[r->image]};
    out->arch = fa_arch_find(out->image->arch);
    fa_status st = fa_problem_parse(&out->problem, r->problem);
    if (st == FA_OK)
        st = fa_config_parse(&out->config, out->image->config);
    return fa_wrap(st, "%.60s: row %u", b->name, i);
}

fa_status fa_shelf_open(fa_shelf *out, const fa_bundle *const *bundles)
{
    size_t n = 0;
    fa_status st = FA_OK;
    *out = (fa_shelf){NULL, 0};
    for (int k = 0; st == FA_OK && bundles && bundles[k]; k++) {
        st = fa_wrap(check_bundle(bundles[k]), "options: bundle %d", k);
        n += bundles[k]->rows;
    }
    if (st != FA_OK || !n)
        return st;
    out->row = calloc(n, sizeof *out->row);
    if (!out->row)
        return fa_fail(FA_NOMEM, "options: bundles: %zu bytes of host memory", n * sizeof *out->row);
    for (int k = 0; st == FA_OK && bundles[k]; k++)
        for (uint32_t i = 0; st == FA_OK && i < bundles[k]->rows; i++)
            st = fa_wrap(take_row(&out->row[out->n++], bundles[k], i), "options: bundle %d", k);
    if (st != FA_OK)
        fa_shelf_close(out);
    return st;
}

void fa_shelf_close(fa_shelf *s)
{
    free(s->row);
    *s = (fa_shelf){NULL, 0};
}

/* How far an image's chip is from the device: 0 = its own; -1 = it does not run there. Kernels of features of one chip ("sm_90a") run on
 * no other; a cubin runs on later chips of the same major version, PTX on all later ones. Own cubins come before own PTX. */
static int chip_distance(const fa_shelf_row *r, const fa_device *d)
{
    bool own = strcmp(r->arch->name, d->arch.name) == 0, features = r->arch->name[strlen(r->arch->name) - 1] == 'a';
    if ((!r->image->ptx && d->driver->takes_ptx) || (!own && (features || r->arch->cc > d->arch.cc)))
        return -1;
    if (own)
        return r->image->ptx && !d->driver->takes_ptx ? 1 : 0;
    if (!r->image->ptx)
        return r->arch->cc / 10 == d->arch.cc / 10 ? 1 + d->arch.cc - r->arch->cc : -1;
    return 1000 + d->arch.cc - r->arch->cc;
}

/* Steps of log2 between the buckets of two shapes. */
static int shape_distance(const fa_problem *a, const fa_problem *b)
{
    uint32_t x = fa_problem_bucket(a), y = fa_problem_bucket(b);
    int far = 0;
    for (int at = 0; at < FA_BUCKET_BITS; at += 6)
        far += abs((int)(x >> at & 63) - (int)(y >> at & 63));
    return far;
}

static bool fits(const fa_bundle_image *i, int32_t budget)
{
    for (int s = 0; s < i->steps; s++)
        if (i->step[s].smem > budget)
            return false;
    return true;
}

const fa_shelf_row *fa_shelf_find(const fa_shelf *s, const fa_problem *p, const fa_device *d, int32_t budget, fa_shelf_fit fit)
{
    const fa_shelf_row *best = NULL;
    long nearest = 0;
    for (size_t i = 0; i < s->n; i++) {
        const fa_shelf_row *r = &s->row[i];
        int chip = !fa_problem_hindrance(&r->problem, p) && fits(r->image, budget) ? chip_distance(r, d) : -1;
        if (chip < 0 || (fit == FA_SHELF_OWN && (strcmp(r->arch->name, d->arch.name) || r->problem.align != p->align)))
            continue;
        long far = ((long)chip * 32 + (p->align - r->problem.align)) * 256 + shape_distance(&r->problem, p);
        if (!best || far < nearest) {
            best = r;
            nearest = far;
        }
    }
    return best;
}

void fa_shelf_source(fa_source *out, const fa_bundle_image *image)
{
    fa_key hash = {0, 0};
    memset(out, 0, sizeof *out);
    fa_key_parse(&hash, image->source);
    snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(image->config, ":"), image->config);
    out->hash[0] = hash.lo;
    out->hash[1] = hash.hi;
    out->steps = image->steps;
    fa_workspace_parse(&out->workspace, image->score_bytes ? "scores fp32 b hq sq sk" : "");
    fa_values_all(out->params, fa_operation_find(FA_FORWARD));
    fa_packing_of(&out->packing, fa_operation_find(FA_FORWARD), &out->workspace, out->params);
    for (int i = 0; i < image->steps; i++) {
        const fa_bundle_step *s = &image->step[i];
        fa_step *t = &out->step[i];
        strncpy(t->entry, s->entry, sizeof t->entry - 1);
        t->threads = s->threads, t->smem = s->smem;
        char grid[64], keys[24] = "";
        if (s->bc)
            snprintf(keys, sizeof keys, "sk/%d ", s->bc);
        snprintf(grid, sizeof grid, "%s/%d %s%s b", s->pack ? "rows" : "sq", s->br, keys, s->pack ? "hkv" : "hq");
        fa_product_parse(&t->grid, grid);
        t->per_sm = s->per_sm, t->cluster = s->cluster, t->counter = s->counter, t->early = s->early;
        t->n_maps = s->maps;
        for (int m = 0; m < s->maps; m++)
            t->map[m] = (fa_map){s->map[m].tensor, s->map[m].cols, s->map[m].rows, s->map[m].swizzle};
    }
}

static fa_status load(fa_context *ctx, const fa_shelf_row *r, fa_key key, fa_kernel **out)
{
    fa_source s;
    fa_entered in;
    /* a copy: no driver says how it wants the bytes aligned */
    fa_entry e = {.key = key, .ptx = r->image->ptx, .image = malloc(r->image->size), .image_size = r->image->size};
    if (!e.image)
        return fa_fail(FA_NOMEM, "%llu bytes of host memory", (unsigned long long)r->image->size);
    memcpy(e.image, r->image->bytes, r->image->size);
    fa_shelf_source(&s, r->image);
    fa_status st = fa_context_enter(ctx, &in);
    if (st == FA_OK) {
        st = fa_kernel_load(out, &ctx->device, &e, &s);
        fa_context_leave(ctx, &in);
    }
    free(e.image);
    for (int i = 0; st == FA_OK && i < r->image->steps; i++)
        if (r->image->step[i].registers) { /* what ptxas said of this very cubin: the driver does not tell of spills */
            (*out)->resources[i].known = true;
            (*out)->resources[i].registers = r->image->step[i].registers;
            (*out)->resources[i].spill_stores = r->image->step[i].spills;
        }
    return st;
}

fa_status fa_shelf_load(fa_context *ctx, const fa_shelf_row *r, const fa_kernel **out)
{
    fa_key told, key = fa_shelf_check(r->image);
    fa_source s;
    fa_kernel *k = NULL;
    char hex[33];
    *out = NULL;
    fa_key_print(hex, key);
    if (!fa_key_parse(&told, r->image->check) || told.lo != key.lo || told.hi != key.hi)
        return fa_fail(FA_INVALID, "bundle %.60s: image %u: its checksum is %s; accepted: %s, as when it was written: emit it anew", r->bundle->name,
                       r->row->image, hex, r->image->check);
    fa_shelf_source(&s, r->image);
    *out = fa_context_kernel(ctx, key, s.steps, s.step);
    if (*out)
        return FA_OK;
    fa_status st = load(ctx, r, key, &k);
    if (st != FA_OK)
        return fa_wrap(st, "bundle %.60s: image %u", r->bundle->name, r->row->image);
    snprintf(k->from, sizeof k->from, "bundle");
    fa_log_say(&ctx->log, FA_LOG_INFO, "kernel %s for %s from the bundle %s", s.name, r->image->arch, r->bundle->name);
    *out = fa_context_keep(ctx, k);
    return FA_OK;
}
