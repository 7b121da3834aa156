/* lengths: the best config of each length beside naive attention and the systems, by the model, and by what is on record. */
#include "explore.h"
#include "gen/extent.h"
#include "gen/literature.h"
#include "gen/problem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int explore_system_of(const explore *e, const fa_config *c)
{
    for (int i = 0; i < e->systems.n; i++)
        if (!strcmp(c->family, e->systems.name[i]))
            return i;
    return -1;
}

#define SHORTEST 256
#define LONGEST 65536
#define LAUNCH_SECONDS 3e-6 /* as the model counts one */

_Static_assert(EXPLORE_LENGTHS <= FA_MODEL_SHAPES, "all lengths are priced at once");

typedef struct fastest {
    explore *e;
    const fa_space *space;
} fastest;

/* Whether a record of the problem's own shape has a failure of the config. */
static bool rejected(const explore *e, const fa_config *c, const fa_problem *p)
{
    if (!e->rejections || p->sq != e->problem.sq || p->sk != e->problem.sk)
        return false;
    for (size_t i = 0; i < e->n; i++)
        if (e->config[i].rejected && fa_config_equal(&e->config[i].point.config, c))
            return true;
    return false;
}

static void take(void *user, size_t length, size_t point, const fa_cost *cost)
{
    fastest *f = user;
    explore_length *l = &f->e->length[length];
    if ((l->seconds > 0 && l->seconds <= cost->seconds) || rejected(f->e, &f->space->points[point].config, &l->problem))
        return;
    l->seconds = cost->seconds;
    l->bytes = fa_traffic_total(&cost->traffic);
    l->config = f->space->points[point].config;
}

#define FEW 16 /* queries are few where keys are so many times as many */

/* The problem at another key length. The ratio of the lengths stays; few queries stay as many as they are. */
static fa_problem at_length(const fa_problem *p, int64_t sk)
{
    fa_problem q = *p;
    int64_t few = (int64_t)p->sq * FEW <= p->sk, sq = few ? p->sq : p->sq * sk / p->sk;
    q.sk = (int32_t)sk;
    q.sq = (int32_t)(sq > 0 ? sq : 1);
    return q;
}

static bool has(const explore *e, const fa_problem *p)
{
    for (int i = 0; i < e->lengths; i++)
        if (e->length[i].problem.sk == p->sk && e->length[i].problem.sq == p->sq)
            return true;
    return false;
}

static void add(explore *e, const fa_problem *p)
{
    if (e->lengths < EXPLORE_LENGTHS && !has(e, p))
        e->length[e->lengths++] = (explore_length){ .problem = *p };
}

static bool same_heads(const fa_problem *a, const fa_problem *b)
{
    return a->b == b->b && a->hq == b->hq && a->hkv == b->hkv;
}

/* The fastest of the system at the length, -1 = of what is none; of a config the newest time counts. */
static double on_record(const explore *e, const fa_problem *p, int system)
{
    const fa_record *best = NULL;
    for (size_t i = e->records.n; i-- > 0;) {
        const fa_record *r = &e->records.r[i];
        bool newest = true;
        if (!explore_is_time(e, r) || !same_heads(&r->problem, p) || r->problem.sq != p->sq || r->problem.sk != p->sk ||
            explore_system_of(e, &r->config) != system)
            continue;
        for (size_t k = i + 1; newest && k < e->records.n; k++) {
            const fa_record *n = &e->records.r[k];
            newest = !(explore_is_time(e, n) && same_heads(&n->problem, p) && n->problem.sq == p->sq && n->problem.sk == p->sk &&
                       fa_config_equal(&n->config, &r->config));
        }
        if (newest && explore_is_shorter(r, best))
            best = r;
    }
    return best ? best->seconds : 0;
}

static int by_length(const void *a, const void *b)
{
    const explore_length *x = a, *y = b;
    return x->problem.sk == y->problem.sk  ? (x->problem.sq > y->problem.sq) - (x->problem.sq < y->problem.sq)
           : x->problem.sk > y->problem.sk ? 1
                                           : -1;
}

void explore_peaks(const fa_arch *a, int dtype, explore_peak out[EXPLORE_PEAKS])
{
    bool half = fa_dtype_bytes(dtype) == 2;
    double sm = a->sm_count * a->clock_ghz / 1e3; /* per clock and SM to 1e12 per second */
    out[0] = (explore_peak){ "wgmma", half ? a->wgmma16_flop * sm : 0 };
    out[1] = (explore_peak){ "mma.sync", half ? a->mma16_flop * sm : dtype == FA_TF32 ? a->mma_tf32_flop * sm : 0 };
    out[2] = (explore_peak){ "FMA", dtype == FA_F32 ? a->ffma_flop * sm : 0 };
}

bool explore_is_streamed(const explore *e)
{
    explore_peak peak[EXPLORE_PEAKS];
    double most = 0;
    explore_peaks(e->arch, e->problem.dtype, peak);
    for (int i = 0; i < EXPLORE_PEAKS; i++)
        most = peak[i].tflops > most ? peak[i].tflops : most;
    return e->flops / e->tensor_bytes < most * 1e3 / e->arch->hbm_gbs;
}

double explore_naive(const fa_arch *a, const fa_problem *p)
{
    explore_peak peak[EXPLORE_PEAKS];
    fa_literature_pass pass[FA_LITERATURE_PASSES];
    double most = 0, seconds = 0;
    explore_peaks(a, p->dtype, peak);
    for (int i = 0; i < EXPLORE_PEAKS; i++)
        most = peak[i].tflops > most ? peak[i].tflops : most;
    for (int i = 0, n = fa_literature_naive_passes(p, pass); i < n; i++)
        seconds += LAUNCH_SECONDS + fmax(pass[i].flops / (most * 1e12), pass[i].bytes / (a->hbm_gbs * 1e9));
    return seconds;
}

/* The workspace of the length's config, and LSE where a forward is asked for it. */
static double held(const explore *e, const explore_length *l)
{
    fa_source s = { .text = NULL };
    fa_sizes sizes = fa_sizes_of(&l->problem, e->arch->sm_count);
    double bytes = l->problem.op == FA_FORWARD ? 4.0 * l->problem.b * l->problem.hq * l->problem.sq : 0;
    if (l->seconds > 0 && fa_render(e->gen, &l->problem, &l->config, e->arch, e->budget, &s) == FA_OK)
        bytes += (double)fa_workspace_bytes(&s.workspace, &sizes, NULL);
    fa_source_free(&s);
    return bytes;
}

typedef struct system_of {
    explore *e;
    int number;
} system_of;

static void take_system(void *user, size_t length, size_t point, const fa_cost *cost)
{
    const system_of *of = user;
    explore_system *s = &of->e->length[length].system[of->number];
    (void)point;
    if (s->seconds <= 0 || cost->seconds < s->seconds)
        *s = (explore_system){ .seconds = cost->seconds, .bytes = cost->bytes, .held = cost->traffic.held };
}

/* The system's column of the lengths; where it has no kernel, all zeros. */
static void add_system(explore *e, const fa_problem *problem, int system)
{
    fa_space space = { 0 };
    system_of of = { e, system };
    if (fa_space_list(e->gen, &e->problem, e->arch, e->budget, e->systems.name[system], &space) == FA_OK) {
        fa_model_shapes(e->gen, problem, (size_t)e->lengths, &space, e->arch, take_system, &of);
        for (int i = 0; i < e->lengths; i++)
            e->length[i].system[system].measured = on_record(e, &problem[i], system);
    }
    fa_space_free(&space);
}

void explore_lengths_fill(explore *e, const fa_space *space)
{
    add(e, &e->problem);
    for (int64_t sk = SHORTEST; sk <= LONGEST; sk *= 2) {
        fa_problem p = at_length(&e->problem, sk);
        add(e, &p);
    }
    for (size_t i = 0; i < e->records.n; i++) {
        fa_problem p = e->problem;
        p.sq = e->records.r[i].problem.sq;
        p.sk = e->records.r[i].problem.sk;
        if (explore_is_time(e, &e->records.r[i]) && same_heads(&e->records.r[i].problem, &p))
            add(e, &p);
    }
    qsort(e->length, (size_t)e->lengths, sizeof *e->length, by_length);
    fa_problem problem[EXPLORE_LENGTHS];
    fastest f = { e, space };
    for (int i = 0; i < e->lengths; i++)
        problem[i] = e->length[i].problem;
    fa_model_shapes(e->gen, problem, (size_t)e->lengths, space, e->arch, take, &f);
    for (int i = 0; i < e->lengths; i++) {
        explore_length *l = &e->length[i];
        fa_traffic t = fa_literature_naive(&l->problem);
        l->tensors = explore_tensor_bytes(e, &l->problem);
        l->held = held(e, l);
        l->naive = explore_naive(e->arch, &l->problem);
        l->naive_held = t.held;
        l->naive_bytes = fa_traffic_total(&t);
        l->measured = on_record(e, &l->problem, -1);
        l->measured_naive = e->systems.n ? on_record(e, &l->problem, 0) : 0; /* the reference is the first */
    }
    for (int i = 0; i < e->systems.n; i++)
        add_system(e, problem, i);
}
