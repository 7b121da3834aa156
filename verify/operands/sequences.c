/* sequences: lengths, first rows and tables resolved to rows. */
#include "sequences.h"
#include "gen/error.h"
#include "runtime/args/lengths.h"
#include <stdlib.h>
#include <string.h>

static int64_t within(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* Rows of a sequence, and its first. */
static int32_t rows_of(int64_t *first, const int32_t *cu, const int32_t *lengths, int32_t i, int32_t most, int32_t total)
{
    int64_t n = most;
    *first = (int64_t)i * most;
    if (cu) {
        *first = within(cu[i], 0, total);
        n = within(cu[i + 1], *first, total) - *first;
    }
    if (lengths)
        n = within(lengths[i], 0, n);
    return (int32_t)within(n, 0, most);
}

static void resolve_pages(fa_sequences *s, const fa_args *a)
{
    for (int32_t i = 0; i < s->b; i++)
        for (int64_t j = 0; j < s->of[i].nk; j++) {
            int64_t id = a->page_table[i * s->sizes.of[FA_EXTENT_TABLE] + j / a->page_size];
            s->key[i * (int64_t)s->sk + j] = id < 0 || id >= a->pages ? -1 : id * a->page_size + j % a->page_size;
        }
}

fa_status fa_sequences_open(fa_sequences *out, const fa_problem *p, const fa_args *a)
{
    *out = (fa_sequences){ .b = a->b, .sk = a->sk, .sizes = fa_sizes_of(p, 0) };
    fa_lengths_sizes(&out->sizes, a);
    out->of = calloc((size_t)a->b + 1, sizeof *out->of);
    if (a->page_table)
        out->key = malloc(((size_t)a->b * (size_t)a->sk + 1) * sizeof *out->key);
    if (!out->of || (a->page_table && !out->key)) {
        fa_sequences_close(out);
        return fa_fail(FA_NOMEM, "no memory for the rows of %d sequences of %d keys", a->b, a->sk);
    }
    for (int32_t i = 0; i < a->b; i++) {
        fa_sequence *s = &out->of[i];
        fa_problem own = { .mask = a->mask };
        own.sq = s->nq = rows_of(&s->q, a->cu_seqlens_q, a->seqlens_q, i, a->sq, a->total_q);
        own.sk = s->nk = rows_of(&s->k, a->cu_seqlens_k, a->seqlens_k, i, a->sk, a->total_k);
        s->band = fa_band_of(&own, a->diagonal, a->offset, a->window_left, a->window_right);
    }
    if (a->page_table)
        resolve_pages(out, a);
    return FA_OK;
}

void fa_sequences_close(fa_sequences *s)
{
    free(s->of);
    free(s->key);
    *s = (fa_sequences){ .of = NULL };
}

void fa_sequences_seen(const fa_sequences *s, int32_t i, int64_t *first, int64_t *last)
{
    fa_pairs pairs = fa_sequence_pairs(&s->of[i]);
    fa_range seen = fa_pairs_all_keys(&pairs);
    *first = seen.first;
    *last = seen.last;
}

void fa_sequences_mark(const fa_sequences *s, int32_t i, uint8_t *q, uint8_t *k)
{
    const fa_sequence *of = &s->of[i];
    int64_t first, last, row;
    if (of->nq)
        memset(q + of->q, 1, (size_t)of->nq);
    fa_sequences_seen(s, i, &first, &last);
    for (int64_t j = first; j <= last; j++)
        if ((row = fa_sequences_key(s, i, j)) >= 0)
            k[row] = 1;
}
