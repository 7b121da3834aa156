/* journal: the records of one search. */
#include "journal.h"
#include "gen/bucket.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Whether its outcome is one that another search of the problem may take over: this machine's own. */
static bool counts(const fa_journal *j, const fa_record *r)
{
    bool told = r->outcome != FA_RAN || (r->how == FA_MEASURED ? r->verified : r->spills <= 0);
    return told && !r->imported && r->how == j->how && !strcmp(r->compiler, j->compiler) &&
           fa_problem_bucket(&r->problem) == fa_problem_bucket(&j->problem);
}

/* Of a config and of a text, as a part of the key. */
static uint64_t tag_of(const uint64_t source[2])
{
    return source[0] ^ source[1] * 0x9e3779b97f4a7c15u;
}

fa_status fa_journal_open(fa_journal *j, const fa_site *site, const fa_problem *p, fa_how how)
{
    const fa_nvrtc *nvrtc;
    int version = 0;
    *j = (fa_journal){ .site = site, .problem = *p, .how = how, .driver = "none" };
    fa_status st = fa_compiler_nvrtc(site->compiler, &nvrtc);
    if (st != FA_OK)
        return st;
    snprintf(j->compiler, sizeof j->compiler, "%s", nvrtc->name);
    if (site->timed && fa_context_driver(site->ctx)->cuDriverGetVersion(&version) == CUDA_SUCCESS)
        snprintf(j->driver, sizeof j->driver, "cuda %d.%d", version / 1000, version % 1000 / 10);
    else if (site->ctx)
        snprintf(j->driver, sizeof j->driver, "sim");
    j->old = fa_records_load(site->store, how == FA_MEASURED ? site->arch->chip : site->arch->name, p);
    for (size_t i = j->old.n; i-- > 0;)
        if (counts(j, &j->old.r[i]))
            fa_newest_add(&j->known, &j->old.r[i], tag_of(j->old.r[i].source));
    if (!j->known.oom)
        return FA_OK;
    fa_journal_close(j);
    return fa_fail(FA_NOMEM, "no memory for the records of a search");
}

void fa_journal_close(fa_journal *j)
{
    fa_newest_free(&j->known);
    fa_records_free(&j->old);
}

bool fa_journal_knows(const fa_journal *j)
{
    for (size_t i = 0; i < j->old.n; i++)
        if (j->old.r[i].how == j->how && !j->old.r[i].imported && fa_problem_bucket(&j->old.r[i].problem) == fa_problem_bucket(&j->problem))
            return true;
    return false;
}

bool fa_journal_recall(const fa_journal *j, fa_candidate *c)
{
    const fa_record *r = fa_newest_find(&j->known, &c->config, tag_of(c->source));
    if (!r || r->source[0] != c->source[0] || r->source[1] != c->source[1])
        return false;
    c->outcome = r->outcome;
    c->how = r->how;
    c->seconds = r->seconds;
    c->spread = r->spread;
    c->count = r->count;
    c->low = r->low;
    c->high = r->high;
    c->warm = r->warm;
    c->verified = r->verified;
    c->quality = r->quality;
    c->clock_mhz = r->clock_mhz;
    c->temperature = r->temperature;
    c->regs = r->regs;
    c->spills = r->spills;
    snprintf(c->why, sizeof c->why, "%s", r->why);
    c->resumed = c->decided = true;
    return true;
}

void fa_journal_note(const fa_journal *j, const fa_candidate *c)
{
    fa_record r = {
        .problem = j->problem,
        .config = c->config,
        .outcome = c->outcome,
        .how = c->how,
        .seconds = c->seconds,
        .spread = c->spread,
        .low = c->low,
        .high = c->high,
        .warm = c->warm,
        .verified = c->verified,
        .quality = c->quality,
        .clock_mhz = c->clock_mhz,
        .temperature = c->temperature,
        .count = c->count,
        .regs = c->regs,
        .spills = c->spills,
        .smem = c->smem,
        .source = { c->source[0], c->source[1] },
        .version = FA_VERSION_STRING,
    };
    snprintf(r.chip, sizeof r.chip, "%s", j->how == FA_MEASURED ? j->site->arch->chip : j->site->arch->name);
    snprintf(r.arch, sizeof r.arch, "%s", j->site->arch->name);
    snprintf(r.why, sizeof r.why, "%s", c->outcome == FA_RAN ? "" : c->why);
    snprintf(r.compiler, sizeof r.compiler, "%s", j->compiler);
    snprintf(r.driver, sizeof r.driver, "%s", j->driver);
    fa_text_date(r.date, sizeof r.date, time(NULL));
    fa_record_append(j->site->store, &r);
}
