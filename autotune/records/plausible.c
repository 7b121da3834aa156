/* plausible: what a table of checks says of a record from elsewhere. */
#include "plausible.h"
#include "gen/batch_kind.h"
#include "gen/error.h"
#include "gen/model.h"
#include "gen/problem.h"
#include "gen/space.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ABOVE_SUSTAINED 0.85 /* of the floor: clocks and memory go above what the table has as sustained */
#define OTHER_PRODUCT 0.25   /* of the floor, of a chip that no row of the table is of */
#define LONGEST 1e4          /* seconds of a launch */
#define DAY 86400

/* The row of the record's chip; *own: the row is of that product, not of another of the same architecture. */
static const fa_arch *row_of(const fa_record *r, bool *own)
{
    const fa_arch *named = fa_arch_find(r->arch), *row;
    const char *product;
    *own = false;
    if (!named || strcmp(named->name, r->arch) != 0)
        return NULL;
    row = fa_arch_of_device(named->cc / 10, named->cc % 10, r->chip);
    for (size_t i = 0; (named = fa_arch_product(i, &product)) != NULL; i++)
        *own = *own || (named == row && strcasestr(r->chip, product));
    return row;
}

static double peak_of(const fa_problem *p, const fa_arch *a)
{
    double per_clock = p->dtype == FA_F32    ? a->ffma_flop
                       : p->dtype == FA_TF32 ? fmax(a->mma_tf32_flop, a->wgmma16_flop / 2)
                                             : fmax(a->mma16_flop, a->wgmma16_flop);
    return per_clock * a->sm_count * a->clock_ghz * 1e9;
}

/* Keys of a sequence that some query sees. */
static double keys_seen(const fa_problem *p)
{
    double window = p->mask == FA_MASK_WINDOW ? (double)p->window + p->sq : p->sk;
    return fmin(p->sk, window);
}

/* Seconds that no launch of the problem takes less than: the products over visible pairs at the peak of the units, and the bytes of Q, of K
 * and V that some query sees, and of O, each once, at that of memory; of sequences with lengths of their own the least that their drawing
 * allows (verify/operands/ragged.h). */
static double floor_of(const fa_record *r, const fa_arch *row, bool own)
{
    fa_problem p = r->problem;
    fa_problem_fill_shape(&p);
    if (p.mask == FA_MASK_WINDOW && p.window == 0)
        p.window = FA_MODEL_WINDOW;
    bool lengths = p.features & FA_FEATURE_LENGTHS;
    double sequences = !lengths ? p.b : fa_problem_few_rows(&p) ? fmax(1, p.b / 2.0) : 1; /* keys from sk / b to sk, evenly */
    double rows = lengths ? 0 : (double)p.b * p.sq * p.hq, bytes = 0, flops = 0;
    if (p.op != FA_MERGE) {
        bytes += rows * p.d * fa_dtype_bytes(p.dtype) + sequences * keys_seen(&p) * p.hkv * (double)fa_problem_key_bytes(&p);
        flops = lengths ? 0 : fa_model_matrix_flops(&p, fa_band_of_problem(&p));
    }
    bytes += rows * p.dv * fa_dtype_bytes(p.o_dtype);
    return (own ? ABOVE_SUSTAINED : OTHER_PRODUCT) * fmax(flops / peak_of(&p, row), bytes / (row->hbm_gbs * 1e9));
}

/* What a text member must be, so that nothing else is taken for it. */
static bool version_known(const char *text)
{
    int major, minor, patch, own_major, own_minor;
    char more;
    if (sscanf(text, "%d.%d.%d%c", &major, &minor, &patch, &more) != 3 || sscanf(FA_VERSION_STRING, "%d.%d", &own_major, &own_minor) != 2)
        return false;
    return major >= 0 && minor >= 0 && patch >= 0 && (major < own_major || (major == own_major && minor <= own_minor));
}

static bool date_possible(const char *text, int64_t now)
{
    static const char form[] = "0000-00-00T00:00:00Z";
    char tomorrow[24];
    size_t n = strlen(text);
    for (size_t i = 0; i < n && i < sizeof form - 1; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return n == sizeof form - 1 && (!now || strcmp(text, fa_text_date(tomorrow, sizeof tomorrow, now + DAY)) <= 0);
}

static fa_status check_config(fa_gen *g, const fa_record *r, const fa_arch *row)
{
    fa_point pt = { .fits = false };
    fa_cost cost;
    fa_status st = fa_model_named(g, &r->problem, &r->config, row, 0, 0, &pt, &cost);
    return st == FA_OK || pt.fits ? FA_OK : st == FA_NOMEM ? st : fa_fail(FA_INVALID, "config: %s", fa_last_error());
}

fa_status fa_record_plausible(fa_gen *g, const fa_record *r, int64_t now)
{
    bool own, measured = r->how == FA_MEASURED;
    const fa_arch *row = row_of(r, &own);
    if (r->outcome != FA_RAN)
        return fa_fail(FA_INVALID, "outcome is %s; accepted: ok, of a config that ran", fa_outcome_name(r->outcome));
    if (!row)
        return fa_fail(FA_INVALID, "arch is \"%s\"; accepted: %s", r->arch, fa_arch_names());
    if (!r->chip[0] || (!measured && strcmp(r->chip, r->arch) != 0))
        return fa_fail(FA_INVALID, "chip is \"%s\"; accepted: %s", r->chip, measured ? "the name of a device" : r->arch);
    if (!version_known(r->version))
        return fa_fail(FA_INVALID, "version is \"%s\"; accepted: that of a fagen up to " FA_VERSION_STRING, r->version);
    if (!date_possible(r->date, now))
        return fa_fail(FA_INVALID, "date is \"%s\"; accepted: as 2026-11-21T04:31:00Z, not to come", r->date);
    if (measured && (!r->verified || r->count < 1))
        return fa_fail(FA_INVALID, "a measured record of %d samples, verified: %s; accepted: 1 or more, verified", r->count,
                       r->verified ? "true" : "false");
    if (!(r->seconds > 0 && r->seconds < LONGEST) || !(r->spread >= 0) || !(r->warm >= 0) || r->spills < 0 || r->smem < 0 || r->regs < 0)
        return fa_fail(FA_INVALID,
                       "seconds %g, spread %g, warm %g, registers %d, spills %d, smem %d; accepted: seconds above 0, to %g, "
                       "none of the others below 0",
                       r->seconds, r->spread, r->warm, r->regs, r->spills, r->smem, LONGEST);
    if ((r->low != 0 || r->high != 0) && !(r->low > 0 && r->low <= r->seconds && r->seconds <= r->high))
        return fa_fail(FA_INVALID, "low %g, seconds %g, high %g; accepted: in ascending order", r->low, r->seconds, r->high);
    double floor = floor_of(r, row, own);
    if (r->seconds < floor)
        return fa_fail(FA_INVALID, "seconds is %.4g, below the roofline: no %s takes less than %.4g for this problem", r->seconds, r->chip,
                       floor);
    return check_config(g, r, row);
}
