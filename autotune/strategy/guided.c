/* guided: the strategy that corrects the model. What was measured says how far the model is off for each value of each tunable (ridge
 * regression of the logarithms, by coordinate descent); next comes what then promises most, as the expected improvement of Mockus and
 * of Jones, Schonlau and Welch, "Efficient Global Optimization of Expensive Black-Box Functions", 1998. */
#include "strategy.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 12  /* configs before anything is corrected: the model's best */
#define BATCH 8   /* configs between two corrections */
#define RIDGE 1.0 /* measurements that a value needs to be half believed */
#define SWEEPS 24
#define SURPRISE 0.3 /* variance that an unmeasured value adds, over that of what the correction leaves */
#define LEAST_ERROR 0.01
#define VALUES_MOST 256

typedef struct value {
    const char *family;
    int tunable;
    int32_t value;
    int n; /* measurements with it */
    double w;
} value;

typedef struct row {
    double off; /* logarithm of the measured time over the model's */
    int id[FA_CONFIG_MAX], n;
} row;

typedef struct correction {
    value v[VALUES_MOST];
    int n;
    double bias, error;
    row *measured;
    size_t rows;
} correction;

/* Where a value is in the correction, -1 where nothing of it was measured. */
static int find(correction *k, const fa_config *c, int tunable, bool add)
{
    int32_t wanted = c->tunable[tunable].value;
    for (int i = 0; i < k->n; i++)
        if (k->v[i].tunable == tunable && k->v[i].value == wanted && !strcmp(k->v[i].family, c->family))
            return i;
    if (!add || k->n == VALUES_MOST)
        return -1;
    k->v[k->n] = (value){ c->family, tunable, wanted, 0, 0 };
    return k->n++;
}

static void take_row(correction *k, const fa_pool_entry *p)
{
    row *r = &k->measured[k->rows++];
    *r = (row){ .off = log(p->seconds / p->cost.seconds) };
    for (int t = 0; t < p->config.n; t++) {
        int id = find(k, &p->config, t, true);
        if (id < 0)
            continue;
        k->v[id].n++;
        r->id[r->n++] = id;
    }
}

static double left_of(const correction *k, const row *r)
{
    double left = r->off - k->bias;
    for (int i = 0; i < r->n; i++)
        left -= k->v[r->id[i]].w;
    return left;
}

static bool has(const row *r, int id)
{
    for (int i = 0; i < r->n; i++)
        if (r->id[i] == id)
            return true;
    return false;
}

/* One value after the other takes its part of what the others leave. */
static void correct(correction *k, const fa_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++)
        if (pool->p[i].told && pool->p[i].seconds > 0 && pool->p[i].cost.seconds > 0)
            take_row(k, &pool->p[i]);
    double count = fmax(1, (double)k->rows), square = 0;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double all = 0;
        for (size_t i = 0; i < k->rows; i++)
            all += left_of(k, &k->measured[i]);
        k->bias += all / count;
        for (int v = 0; v < k->n; v++) {
            double left = 0;
            for (size_t i = 0; i < k->rows; i++)
                if (has(&k->measured[i], v))
                    left += left_of(k, &k->measured[i]) + k->v[v].w;
            k->v[v].w = left / (k->v[v].n + RIDGE);
        }
    }
    for (size_t i = 0; i < k->rows; i++)
        square += pow(left_of(k, &k->measured[i]), 2);
    k->error = fmax(LEAST_ERROR, sqrt(square / count));
}

static double improvement(correction *k, const fa_pool_entry *p, double best)
{
    double mean = log(p->cost.seconds) + k->bias, variance = 1;
    for (int t = 0; t < p->config.n; t++) {
        int id = find(k, &p->config, t, false);
        mean += id >= 0 ? k->v[id].w : 0;
        variance += SURPRISE / (1 + (id >= 0 ? k->v[id].n : 0));
    }
    double deviation = k->error * sqrt(variance), gain = best - mean, z = gain / deviation;
    return gain * 0.5 * erfc(-z / sqrt(2)) + deviation * exp(-z * z / 2) / sqrt(2 * acos(-1));
}

size_t fa_guided_pick(fa_pool *pool, size_t among, size_t *out, size_t most)
{
    size_t best = fa_pool_best(pool), n = 0;
    if (best == FA_NOWHERE)
        return 0;
    correction *k = calloc(1, sizeof *k);
    row *rows = calloc(pool->n, sizeof *rows);
    double *promise = k && rows ? calloc(among + 1, sizeof *promise) : NULL;
    if (promise) {
        k->measured = rows;
        correct(k, pool);
        for (size_t i = 0; i < among; i++)
            promise[i] = pool->p[i].given ? 0 : improvement(k, &pool->p[i], log(pool->p[best].seconds));
    }
    while (promise && n < most) {
        size_t top = 0;
        for (size_t i = 1; i < among; i++)
            top = promise[i] > promise[top] ? i : top;
        if (!among || promise[top] < FA_GUIDED_WORTH)
            break;
        promise[top] = 0;
        out[n++] = top;
    }
    free(promise);
    free(rows);
    free(k);
    return n;
}

size_t fa_guided_next(fa_search_state *h, size_t *out, size_t most)
{
    fa_pool *pool = h->pool;
    size_t n = 0;
    if (fa_pool_best(pool) != FA_NOWHERE)
        return fa_guided_pick(pool, pool->listed, out, most < BATCH ? most : BATCH);
    for (size_t room = most < FIRST ? most : FIRST; n < room && h->at < pool->listed; h->at++)
        if (!pool->p[h->at].given)
            out[n++] = h->at;
    return n;
}
