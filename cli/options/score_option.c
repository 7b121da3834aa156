/* score_option: names looked up, files read, numbers given to scalars in their order. */
#include "score_option.h"
#include "gen/error.h"
#include "gen/score/known.h"
#include "gen/score/shipped.h"
#include "gen/text.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fa_status unknown(const char *name, size_t n)
{
    fa_text names = { 0 };
    char one[32];
    for (const fa_score_file *p = fa_score_shipped; p->name; p++) {
        fa_score_shipped_name(one, p);
        fa_text_fmt(&names, "%s%s", p == fa_score_shipped ? "" : ", ", one);
    }
    fa_status st = fa_fail(FA_INVALID, "--score is \"%.*s\"; accepted: %s; another one by --score-file", (int)(n < 80 ? n : 80), name,
                           fa_text_cstr(&names));
    fa_text_free(&names);
    return st;
}

static fa_status wrong_scalar(const char *name, const fa_score_operand *o, const char *is)
{
    const char *whole = o->type == FA_SCORE_I32 ? "an integer" : "a number";
    return fa_fail(FA_INVALID, "--score %s: %s is \"%.40s\"; accepted: %s from %.9g to %.9g", name, o->name, is, whole, o->least, o->most);
}

static fa_status too_many(const char *name, const char *left, const fa_score_ir *ir)
{
    fa_text names = { 0 };
    for (int k = 0; k < ir->operands; k++)
        if (ir->operand[k].scalar)
            fa_text_fmt(&names, "%s%s", names.n ? ", " : "", ir->operand[k].name);
    const char *accepted = names.n ? fa_text_cstr(&names) : "NAME alone: it has no scalars";
    fa_status st =
        fa_fail(FA_INVALID, "--score %s: more numbers than the program has scalars; \"%.40s\" is left; accepted: %s", name, left, accepted);
    fa_text_free(&names);
    return st;
}

/* Numbers between commas, to the program's scalars in their order; the others have those of the text. */
static fa_status read_scalars(const char *name, const char *text, const fa_program *program, fa_score_scalars *out)
{
    int k = 0;
    while (text && *text) {
        char one[48], *end;
        size_t n = strcspn(text, ",");
        while (k < program->ir.operands && !program->ir.operand[k].scalar)
            k++;
        if (k == program->ir.operands)
            return too_many(name, text, &program->ir);
        const fa_score_operand *o = &program->ir.operand[k];
        snprintf(one, sizeof one, "%.*s", (int)(n < sizeof one ? n : sizeof one - 1), text);
        double v = strtod(one, &end);
        if (end == one || *end || !(v >= o->least && v <= o->most) || (o->type == FA_SCORE_I32 && v != floor(v)))
            return wrong_scalar(name, o, one);
        out->of[k++] = v;
        text += n + (text[n] == ',');
    }
    return FA_OK;
}

static fa_status read_file(const char *path, const fa_program **out)
{
    char *text = malloc(FA_SCORE_TEXT_MAX + 1);
    FILE *f = text ? fopen(path, "rb") : NULL;
    if (!text)
        return fa_fail(FA_NOMEM, "--score-file: no memory for its text");
    if (!f) {
        free(text);
        return fa_fail(FA_IO, "--score-file %s: %s", path, strerror(errno));
    }
    size_t n = fread(text, 1, FA_SCORE_TEXT_MAX + 1, f);
    bool failed = ferror(f) != 0;
    const char *slash = strrchr(path, '/');
    fclose(f);
    fa_status st = failed ? fa_fail(FA_IO, "--score-file %s is not read: %s", path, strerror(errno))
                          : fa_score_known_read(out, slash ? slash + 1 : path, text, n);
    free(text);
    return st;
}

fa_status cli_score_read(const cli_score *s, const fa_program **out, fa_score_scalars *scalars)
{
    fa_status st = FA_OK;
    fa_score_scalars given;
    *out = NULL;
    if (s->name && s->file)
        return fa_fail(FA_INVALID, "--score and --score-file are two ways to name a program; accepted: one of them");
    size_t n = s->name ? strcspn(s->name, ":") : 0;
    const fa_score_file *file = s->name ? fa_score_shipped_find(s->name, n) : NULL;
    if (s->name && !file)
        return unknown(s->name, n);
    if (file)
        st = fa_score_known_read(out, file->name, file->bytes, file->size);
    else if (s->file)
        st = read_file(s->file, out);
    if (st != FA_OK)
        return st;
    given = fa_score_scalars_of(*out);
    if (file && s->name[n])
        st = read_scalars(s->name, s->name + n + 1, *out, &given);
    if (scalars)
        *scalars = given;
    return st;
}

fa_status cli_score_set(const cli_score *s, fa_problem *p)
{
    const fa_program *program;
    fa_status st = cli_score_read(s, &program, NULL);
    if (st == FA_OK && program)
        fa_score_known_name(p, program);
    return st;
}
