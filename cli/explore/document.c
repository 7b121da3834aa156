/* document: all of it as one JSON document, for --json and inside the page. */
#include "cli/session/config_text.h"
#include "explore.h"
#include "gen/operation.h"
#include "gen/problem.h"
#include <math.h>
#include <string.h>

/* Text that may not be UTF-8 (a device's name, a compiler's message), which JSON must be. */
static json_t *text(const char *s)
{
    json_t *j = json_string(s);
    char clean[512];
    size_t n = 0;
    if (j)
        return j;
    for (; s[n] && n < sizeof clean - 1; n++)
        clean[n] = (unsigned char)s[n] < 0x80 ? s[n] : '?';
    clean[n] = 0;
    return json_string(clean);
}

static json_t *config_text(const fa_config *c)
{
    char s[512];
    cli_config_text(s, c);
    return text(s);
}

static json_t *microseconds(double s)
{
    return s > 0 && isfinite(s) ? cli_json_number(round(s * 1e10) / 1e4) : json_null();
}

static json_t *cell(const explore *e, const explore_config *k, size_t column)
{
    explore_cell c = explore_cell_of(e, k, column);
    return c.none ? json_null() : c.is_text ? text(c.text) : cli_json_number(c.number);
}

/* The cells of one part, after what the row begins with. */
static json_t *row_of(const explore *e, const explore_config *k, explore_part part, json_t *row)
{
    const explore_column *c;
    for (size_t i = 0; (c = explore_column_at(i)) != NULL; i++)
        if (c->part == part)
            json_array_append_new(row, cell(e, k, i));
    return row;
}

static json_t *columns_json(explore_part part)
{
    json_t *list = json_array();
    const explore_column *c;
    for (size_t i = 0; (c = explore_column_at(i)) != NULL; i++)
        if (c->part == part)
            json_array_append_new(list, json_pack("{s:s,s:s,s:i}", "name", c->name, "title", c->title, "decimals", c->decimals));
    return list;
}

static json_t *families_json(const explore *e)
{
    json_t *list = json_array();
    for (int f = 0; f < e->families; f++) {
        json_t *tunables = json_array(), *axes = json_array();
        fa_tunable t;
        for (size_t i = 0; fa_gen_tunable(e->gen, e->family[f].name, i, &t); i++) {
            json_t *values = json_array(), *names = json_array();
            for (size_t k = 0; k < t.n; k++) {
                const char *name = fa_tunable_name(&t, t.values[k]);
                json_array_append_new(values, json_integer(t.values[k]));
                json_array_append_new(names, name ? json_string(name) : json_null());
            }
            json_array_append_new(tunables, json_pack("{s:s,s:s,s:o,s:o}", "name", t.name, "doc", t.doc, "values", values, "names", names));
        }
        for (int i = 0; i < 2 && e->family[f].axis[i] >= 0; i++)
            json_array_append_new(axes, json_integer(e->family[f].axis[i]));
        json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "name", e->family[f].name, "tunables", tunables, "axes", axes));
    }
    return list;
}

/* Rows begin with the family's index and the values of its tunables. */
static json_t *configs_json(const explore *e)
{
    json_t *list = json_array();
    for (size_t r = 0; r < e->n; r++) {
        const fa_config *c = &e->config[r].point.config;
        json_t *values = json_array(), *row = json_array();
        int family = 0;
        while (family < e->families - 1 && strcmp(e->family[family].name, c->family))
            family++;
        for (int i = 0; i < c->n; i++)
            json_array_append_new(values, json_integer(c->tunable[i].value));
        json_array_append_new(row, json_integer(family));
        json_array_append_new(row, values);
        json_array_append_new(list, row_of(e, &e->config[r], EXPLORE_OF_CONFIG, row));
    }
    return list;
}

/* Rows begin with the index of the config. */
static json_t *part_json(const explore *e, explore_part part)
{
    json_t *list = json_array();
    for (size_t r = 0; r < e->n; r++) {
        if (part == EXPLORE_OF_RECORD ? !e->config[r].record : !e->config[r].counters)
            continue;
        json_t *row = json_array();
        json_array_append_new(row, json_integer((json_int_t)r));
        json_array_append_new(list, row_of(e, &e->config[r], part, row));
    }
    return list;
}

/* Every time of this shape on the chip, in order of date: config, time, date. */
static json_t *history_json(const explore *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->records.n; i++) {
        const fa_record *r = &e->records.r[i];
        size_t k = 0;
        if (!explore_is_time(e, r) || !explore_same_shape(e, r))
            continue;
        while (k < e->n && !fa_config_equal(&e->config[k].point.config, &r->config))
            k++;
        if (k < e->n)
            json_array_append_new(list, json_pack("[I,o,o]", (json_int_t)k, microseconds(r->seconds), text(r->date)));
    }
    return list;
}

static json_t *tiles_json(const explore *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->tiles; i++) {
        const explore_tile *t = &e->tile[i];
        json_t *reasons = json_array();
        for (int k = 0; k < t->reasons; k++)
            json_array_append_new(reasons, json_pack("{s:s,s:I,s:o,s:o}", "constraint", t->reason[k].constraint, "points",
                                                     (json_int_t)t->reason[k].points, "why", text(t->reason[k].why), "config",
                                                     config_text(&t->reason[k].config)));
        json_array_append_new(list, json_pack("{s:i,s:i,s:i,s:I,s:I,s:o}", "family", t->family, "y", t->y, "x", t->x, "points",
                                              (json_int_t)t->points, "fits", (json_int_t)t->fits, "reasons", reasons));
    }
    return list;
}

/* In the order of `systems`; null where one has no kernel or no model. */
static json_t *systems_json(const explore *e, const explore_length *l)
{
    json_t *list = json_array();
    for (int i = 0; i < e->systems.n; i++) {
        const explore_system *s = &l->system[i];
        json_array_append_new(list, s->seconds <= 0 ? json_null()
                                                    : json_pack("{s:o,s:o,s:o,s:o}", "model_us", microseconds(s->seconds), "measured_us",
                                                                microseconds(s->measured), "bytes", cli_json_number(s->bytes), "held",
                                                                cli_json_number(s->held)));
    }
    return list;
}

static json_t *names_json(const cli_systems *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->n; i++)
        json_array_append_new(list, json_string(s->name[i]));
    return list;
}

static json_t *lengths_json(const explore *e)
{
    json_t *list = json_array();
    for (int i = 0; i < e->lengths; i++) {
        const explore_length *l = &e->length[i];
        json_array_append_new(list, json_pack("{s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "sq", l->problem.sq, "sk",
                                              l->problem.sk, "model_us", microseconds(l->seconds), "naive_us", microseconds(l->naive),
                                              "measured_us", microseconds(l->measured), "measured_naive_us",
                                              microseconds(l->measured_naive), "tensors", cli_json_number(l->tensors), "held",
                                              cli_json_number(l->held), "naive_held", cli_json_number(l->naive_held), "bytes",
                                              cli_json_number(l->bytes), "naive_bytes", cli_json_number(l->naive_bytes), "config",
                                              l->seconds > 0 ? config_text(&l->config) : json_null(), "systems", systems_json(e, l)));
    }
    return list;
}

static json_t *arch_json(const explore *e)
{
    const fa_arch *a = e->arch;
    const fa_problem *p = &e->problem;
    const fa_operation *op = fa_operation_find(p->op);
    double sm = a->sm_count * a->clock_ghz / 1e3, /* per clock and SM to 1e12 per second */
        pair = 2 * (op->products_d * p->d + op->products_dv * p->dv);
    explore_peak units[EXPLORE_PEAKS];
    explore_peaks(a, p->dtype, units);
    json_t *peaks = json_array();
    for (int i = 0; i < EXPLORE_PEAKS; i++)
        if (units[i].tflops > 0)
            json_array_append_new(peaks, json_pack("{s:s,s:o}", "name", units[i].name, "tflops", cli_json_number(units[i].tflops)));
    return json_pack("{s:s,s:o,s:i,s:o,s:i,s:i,s:i,s:i,s:o,s:o,s:o,s:o,s:s}", "name", a->name, "chip", text(a->chip), "sms", a->sm_count,
                     "clock_ghz", cli_json_number(a->clock_ghz), "smem_block", a->smem_block, "smem_sm", a->smem_sm, "regs_sm", a->regs_sm,
                     "regs_thread", a->regs_thread, "hbm_gbs", cli_json_number(a->hbm_gbs), "l2_gbs", cli_json_number(a->l2_gbs), "peaks",
                     peaks, "exp_tflops", cli_json_number(a->exp_rate * sm * pair), "source", a->source);
}

static json_t *sources_json(const explore *e)
{
    json_int_t measured = 0, modelled = 0;
    const char *from = "", *to = "";
    for (size_t i = 0; i < e->n; i++) {
        const fa_record *r = e->config[i].record;
        if (!r)
            continue;
        bool is_time = explore_is_time(e, r);
        measured += is_time;
        modelled += r->how == FA_MODELLED;
        if (!is_time)
            continue;
        from = !from[0] || strcmp(r->date, from) < 0 ? r->date : from;
        to = strcmp(r->date, to) > 0 ? r->date : to;
    }
    return json_pack("{s:o,s:I,s:I,s:b,s:o,s:o}", "chip", measured ? text(e->chip) : json_null(), "measured", measured, "modelled",
                     modelled, "reference", e->reference, "from", text(from), "to", text(to));
}

static json_t *naive_json(const explore *e)
{
    return json_pack("{s:o,s:o,s:o}", "model_us", microseconds(e->naive), "bytes", cli_json_number(fa_traffic_total(&e->naive_traffic)),
                     "held", cli_json_number(e->naive_traffic.held));
}

json_t *explore_document(const explore *e)
{
    char problem[FA_PROBLEM_TEXT], shape[256], features[FA_FEATURES_TEXT];
    const fa_problem *p = &e->problem;
    const fa_operation *op = fa_operation_find(p->op);
    fa_problem_print(problem, sizeof problem, p);
    fa_problem_print(shape, sizeof shape, &e->run.shape);
    json_t *doc = json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:s,s:s,s:o,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i},s:o,s:i,s:I,s:I,s:o,s:i,s:s,s:o,s:o,s:o,s:o}", "fagen",
        FA_VERSION_STRING, "problem", problem, "asked", "op", op->name, "dtype", fa_dtype_name(p->dtype), "o_dtype",
        fa_dtype_name(p->o_dtype), "mask", fa_mask_name(p->mask), "window",
        p->mask == FA_MASK_WINDOW ? json_integer(p->window ? p->window : FA_MODEL_WINDOW) : json_null(), "features",
        p->features ? fa_problem_field_text(features, sizeof features, &fa_problem_fields[FA_FIELD_features], p->features) : "", "page",
        p->page, "d", p->d, "dv", p->dv, "b", p->b, "hq", p->hq, "hkv", p->hkv, "sq", p->sq, "sk", p->sk, "arch", arch_json(e), "budget",
        e->budget, "total", (json_int_t)e->total, "fitting", (json_int_t)e->fitting, "flops", cli_json_number(e->flops), "products",
        op->products_d + op->products_dv, "tensors", e->tensors, "tensor_bytes", cli_json_number(e->tensor_bytes), "measured_bytes",
        cli_json_number(e->measured_bytes), "streamed", json_boolean(explore_is_streamed(e)), "sources", sources_json(e));
    json_t *columns = json_pack("{s:o,s:o,s:o}", "configs", columns_json(EXPLORE_OF_CONFIG), "records", columns_json(EXPLORE_OF_RECORD),
                                "counters", columns_json(EXPLORE_OF_COUNTERS));
    json_t *rest = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:{s:s,s:s},s:o,s:o,s:o,s:o,s:o}", "families", families_json(e), "columns", columns,
                             "configs", configs_json(e), "records", part_json(e, EXPLORE_OF_RECORD), "history", history_json(e), "counters",
                             part_json(e, EXPLORE_OF_COUNTERS), "simulated", "shape", e->simulated ? shape : "", "why", e->run.why, "tiles",
                             tiles_json(e), "lengths", lengths_json(e), "systems", names_json(&e->systems), "naive", naive_json(e), "mask",
                             cli_mask_tiles_json(&e->mask));
    if (doc && rest)
        json_object_update(doc, rest);
    json_decref(rest);
    if (doc)
        json_object_set_new(doc, "shipped",
                            e->shipped == SIZE_MAX ? json_null()
                                                   : json_pack("{s:I,s:o}", "config", (json_int_t)e->shipped, "for", text(e->shipped_for)));
    return doc;
}
