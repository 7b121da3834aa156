/* alone: the problems one after the other, in this process, on one device. */
#include "cli/text/progress.h"
#include "gen/error.h"
#include "tune.h"

typedef struct alone {
    tune_run *r;
    cli_progress bar;
    size_t at; /* the problem */
} alone;

static int show(void *user, const fa_tuning *t, const char *stage, const fa_candidate *latest, double done)
{
    alone *u = user;
    const tune_run *r = u->r;
    tune_view v = tune_view_of(t, stage, latest, done);
    cli_status_line line;
    double whole = ((double)u->at + done) / (double)r->list.n;
    tune_view_line(&line, &v, &r->list.row[u->at].problem, u->at + 1, r->list.n, whole,
                   tune_left(cli_clock() - r->start, whole, r->a->budget));
    cli_progress_draw(&u->bar, stage, &line);
    return cli_interrupted();
}

fa_status tune_alone(tune_run *r, const char *device)
{
    alone u = { .r = r, .bar = { .c = r->c } };
    tune_site site;
    fa_status st = tune_site_open(&site, r->c, r->a, device);
    if (st != FA_OK) {
        tune_site_close(&site);
        return st;
    }
    snprintf(r->arch, sizeof r->arch, "%s", site.site.arch->name);
    r->timed = site.site.timed;
    for (; u.at < r->list.n && tune_goes_on(st) && !cli_interrupted(); u.at++) {
        json_t *result;
        double share = tune_share(r->a->budget, cli_clock() - r->start, r->list.n - u.at, 1);
        if (share < 0)
            break;
        cli_progress_anew(&u.bar);
        st = tune_problem(r->a, &site.site, &r->list.row[u.at].problem, share, show, &u, &result);
        cli_progress_end(&u.bar);
        if (result && (tune_goes_on(st) || st == FA_INTERRUPTED || tune_tells(result)))
            tune_run_keep(r, u.at, result);
        else
            json_decref(result);
        if (st == FA_INTERRUPTED && !cli_interrupted() && r->list.n > 1)
            st = FA_OK; /* its share was up: the others have theirs */
    }
    tune_site_close(&site);
    return st;
}
