/* choosing: facts and pin of a point, then fa_choose(). */
#include "choosing.h"
#include "gen/error.h"
#include "generators.h"
#include "pins.h"
#include "runtime/context/context.h"
#include <stdlib.h>

fa_status fa_choosing_open(fa_choosing *c, fa_context *ctx, const fa_problem *point, bool whole)
{
    fa_config pin;
    const fa_arch *a = &ctx->device.arch;
    *c = (fa_choosing){ .ctx = ctx, .point = point, .choice = malloc(sizeof *c->choice) };
    if (!c->choice)
        return fa_fail(FA_NOMEM, "no memory for the candidates");
    c->choice->n = 0;
    fa_status st = fa_generator_take(ctx, &c->g);
    if (st == FA_OK)
        st = fa_facts_of(&c->facts, ctx->store, point, a, ctx->budget);
    if (st == FA_OK && (c->pin = fa_pins_find(ctx->pins, point, &pin)) != 0)
        st = fa_facts_pin(&c->facts, point, &pin);
    return st == FA_OK ? fa_choose(c->g, point, a, ctx->budget, &c->facts, whole, c->choice) : st;
}

void fa_choosing_close(fa_choosing *c)
{
    fa_facts_free(&c->facts);
    free(c->choice);
    fa_generator_give(c->ctx, c->g);
}
