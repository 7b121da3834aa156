/* step_text: kernels are found by the lines that they begin and end with. */
#include "step_text.h"
#include <stdlib.h>
#include <string.h>

static const char opening[] = "extern \"C\" __global__", closing[] = "\n}\n";

/* One kernel of a text. */
typedef struct definition {
    const char *begin, *body, *end; /* its first line, its first brace, past its last line */
} definition;

/* The next kernel from `at` on, which is the beginning of a line. False: there is none, or it is none that can be cut out. */
static bool next(const char *at, definition *out)
{
    const char *begin = strncmp(at, opening, sizeof opening - 1) == 0 ? at : NULL, *end;
    for (const char *p = at; !begin && (p = strstr(p, opening)); p++)
        if (p > at && p[-1] == '\n')
            begin = p;
    if (!begin || !(end = strstr(begin, closing)))
        return false;
    *out = (definition){ begin, begin + strcspn(begin, "{;"), end + sizeof closing - 1 };
    return *out->body == '{' && out->body < end;
}

/* Whether the head of the kernel has the name, and a parenthesis after it. */
static bool is_of(const definition *d, const char *entry)
{
    size_t n = strlen(entry);
    for (const char *p = d->begin; n && (p = memmem(p, (size_t)(d->body - p), entry, n)); p++)
        if (strchr(" \n*", p[-1]) && p[n] == '(')
            return true;
    return false;
}

static int step_of(const fa_source *s, const definition *d)
{
    int found = -1;
    for (int i = 0; i < s->steps; i++)
        if (is_of(d, s->step[i].entry)) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

/* A line of the text's outermost level that makes a variable: functions have a parenthesis in their first line, or go on after it. */
static bool has_variable(const char *text)
{
    static const char *const spaces[] = { "__device__ ", "static __device__ ", "__constant__ ", "static __constant__ ", "__managed__ " };
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
            if (strncmp(line, spaces[i], strlen(spaces[i])) == 0) {
                const char *stop = line + strcspn(line, "(;={\n");
                if (*stop == ';' || *stop == '=' || *stop == '{')
                    return true;
            }
    return false;
}

static const char *text_of(const fa_source *s)
{
    return s->lined ? s->lined : s->text;
}

bool fa_step_text_apart(const fa_source *s)
{
    bool seen[FA_SOURCE_STEPS] = { false };
    int n = 0;
    definition d;
    if (s->steps < 2 || has_variable(text_of(s)))
        return false;
    for (const char *at = text_of(s); next(at, &d); at = d.end, n++) {
        int i = step_of(s, &d);
        if (i < 0 || seen[i])
            return false;
        seen[i] = true;
    }
    return n == s->steps;
}

char *fa_step_text(const fa_source *s, int i)
{
    char *text = strdup(text_of(s));
    definition d;
    for (char *at = text; at && next(at, &d); at = text + (d.end - text))
        if (step_of(s, &d) != i)
            for (char *p = text + (d.begin - text); p < d.end; p++)
                *p = *p == '\n' ? '\n' : ' ';
    return text;
}
