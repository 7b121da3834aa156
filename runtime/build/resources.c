/* resources: a reader of ptxas's verbose lines. */
#include "resources.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number before `what` within the line at s; fallback if there is none. */
static int32_t number_before(const char *s, const char *what, int32_t fallback)
{
    const char *end = strchrnul(s, '\n'), *at = strstr(s, what);
    if (!at || at >= end)
        return fallback;
    while (at > s && (at[-1] == ' '))
        at--;
    while (at > s && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return *at >= '0' && *at <= '9' ? (int32_t)strtol(at, NULL, 10) : fallback;
}

/* Notes of ptxas that mean a slow kernel, the worst first. */
static const char *const harmful[] = { "Potential Performance Loss: ", "warpgroup.wait is injected", "warpgroup.arrive is injected" };

/* Whether a note speaks of the entry: it names it, or no entry at all, as where registers are unknown or a called function is meant.
 * Names are quoted, at the end of the line. */
static bool concerns(const char *line, size_t n, const char *log, const char *entry)
{
    static const char before[] = "function '";
    char other[96];
    const char *name = memmem(line, n, before, sizeof before - 1);
    if (!name)
        return true;
    name += sizeof before - 1;
    const char *end = memchr(name, '\'', n - (size_t)(name - line));
    size_t len = end ? (size_t)(end - name) : 0;
    if (!end || (len == strlen(entry) && !memcmp(name, entry, len)))
        return true;
    snprintf(other, sizeof other, "Compiling entry function '%.*s'", (int)len, name);
    return strstr(log, other) == NULL;
}

/* Notes stand before the lines of the entries. Kept: its code, and what it says without the name. */
static void find_note(char *out, size_t size, const char *log, const char *entry)
{
    static const char loss[] = "Potential Performance Loss: ";
    for (size_t i = 0; i < sizeof harmful / sizeof *harmful; i++)
        for (const char *s = log; (s = strstr(s, harmful[i])) != NULL; s++) {
            const char *start = s, *end = strchrnul(s, '\n');
            while (start > log && start[-1] != '\n')
                start--;
            if (!concerns(start, (size_t)(end - start), log, entry))
                continue;
            const char *code = memmem(start, (size_t)(s - start), "(C", 2), *close = code ? memchr(code, ')', (size_t)(s - code)) : NULL;
            const char *text = strncmp(s, loss, sizeof loss - 1) ? s : s + sizeof loss - 1,
                       *in = memmem(text, (size_t)(end - text), " in ", 4);
            if (!memmem(text, (size_t)(end - text), "function '", 10))
                in = NULL;
            for (const char *last = in; last; last = memmem(last + 1, (size_t)(end - last - 1), " in ", 4)) /* the last of them */
                in = last;
            snprintf(out, size, "%.*s%s%.*s", close ? (int)(close - code - 1) : 0, close ? code + 1 : "", close ? ": " : "",
                     (int)((in ? in : end) - text), text);
            return;
        }
}

fa_resources fa_resources_parse(const char *log, const char *entry)
{
    fa_resources r;
    char head[96];
    memset(&r, 0, sizeof r);
    int n = snprintf(head, sizeof head, "Compiling entry function '%s'", entry);
    if (!log || n < 0 || n >= (int)sizeof head)
        return r;
    const char *at = strstr(log, head);
    if (!at)
        return r;
    r.known = true;
    const char *next = strstr(at + n, "Compiling entry function");
    for (const char *line = at; *line && (!next || line < next); line += line[0] == '\n') {
        r.registers = number_before(line, " registers", r.registers);
        r.stack = number_before(line, " bytes stack frame", r.stack);
        r.spill_stores = number_before(line, " bytes spill stores", r.spill_stores);
        r.spill_loads = number_before(line, " bytes spill loads", r.spill_loads);
        r.smem = number_before(line, " bytes smem", r.smem);
        line = strchrnul(line, '\n');
    }
    find_note(r.note, sizeof r.note, log, entry);
    return r;
}
