/* resources: a reader of ptxas's verbose lines. */
#include "resources.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number in front of `what` within the line at s; fallback if there is none. */
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
    /* the note stands before the entry's own lines and names the function, quoted */
    for (const char *s = log; (s = strstr(s, "wgmma")) != NULL; s++) {
        const char *end = strchrnul(s, '\n'), *serial = strstr(s, "serialized"), *name = strstr(s, entry);
        size_t len = strlen(entry);
        if (serial && serial < end && name && name < end && name[-1] == '\'' && name[len] == '\'')
            r.serialized = true;
    }
    return r;
}
