/* checks: the table, and the text form of a choice of severities. */
#include "checks.h"
#include <cuda.h>
#include <stdio.h>
#include <string.h>

const sim_check_row sim_check_rows[SIM_CHECKS] = {
#define X(check, name, severity, fixed, code, meaning) { name, meaning, SIM_##severity, fixed, CUDA_ERROR_##code },
    SIM_CHECK_TABLE(X)
#undef X
};

static const char *const severities[] = {
    [SIM_BY_DEFAULT] = "default", [SIM_OFF] = "off", [SIM_WARNING] = "warning", [SIM_ERROR] = "error"
};
const char *sim_severity_name(sim_severity s)
{
    return severities[s];
}

static int find(const char *s, size_t n) /* the class of that name, SIM_CHECKS for "all", -1: none */
{
    for (int k = 0; k < SIM_CHECKS; k++)
        if (strlen(sim_check_rows[k].name) == n && !memcmp(sim_check_rows[k].name, s, n))
            return k;
    return n == 3 && !memcmp(s, "all", 3) ? SIM_CHECKS : -1;
}

/* The classes whose severity can be chosen, as many as fit. */
static void names(char *to, size_t room)
{
    size_t n = 0;
    to[0] = 0;
    for (int k = 0; k < SIM_CHECKS; k++) {
        if (sim_check_rows[k].fixed || n + strlen(sim_check_rows[k].name) + 3 > room)
            continue;
        n += (size_t)snprintf(to + n, room - n, "%s%s", n ? ", " : "", sim_check_rows[k].name);
    }
}

int sim_checks_parse(const char *text, uint8_t severity[SIM_CHECKS], char error[512])
{
    uint8_t to[SIM_CHECKS];
    char known[320];
    memcpy(to, severity, sizeof to);
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ","), left = strcspn(s, "=,"), right = n > left ? n - left - 1 : 0;
        int check = find(s, left), chosen = -1;
        for (int k = SIM_BY_DEFAULT; k <= SIM_ERROR; k++)
            if (n > left && strlen(severities[k]) == right && !memcmp(severities[k], s + left + 1, right))
                chosen = k;
        if (check < 0) {
            names(known, sizeof known);
            return snprintf(error, 512, "there is no check \"%.*s\"; accepted: %s, all", (int)(left < 40 ? left : 40), s, known), 0;
        }
        if (chosen < 0)
            return snprintf(error, 512, "check %.*s: \"%.*s\" is no severity; accepted: %.*s=off, warning, error or default", (int)left, s,
                            (int)(right < 40 ? right : 40), n > left ? s + left + 1 : "", (int)left, s),
                   0;
        if (check < SIM_CHECKS && sim_check_rows[check].fixed && (chosen == SIM_OFF || chosen == SIM_WARNING))
            return snprintf(error, 512, "check %s can be an error only: there is nothing to go on with after it",
                            sim_check_rows[check].name),
                   0;
        for (int k = 0; k < SIM_CHECKS; k++)
            if (k == check || (check == SIM_CHECKS && !sim_check_rows[k].fixed))
                to[k] = (uint8_t)chosen;
        s += n;
        if (*s == ',')
            s++;
    }
    memcpy(severity, to, sizeof to);
    return 1;
}
