/* PTX for sm_90a, written into one text piece by piece; `written` set to 0 begins another. */
#ifndef TEST_SIM_TEXT_H
#define TEST_SIM_TEXT_H
#include "test_sim_machine.h"
#include <stdarg.h>

#define HEAD90A ".version 8.0\n.target sm_90a\n.address_size 64\n"

static inline void open90a(void)
{
    open_machine("sm_90a");
}

static char text[1 << 20];
static size_t written;
__attribute__((format(printf, 1, 2))) static inline void add(const char *format, ...)
{
    va_list v;
    va_start(v, format);
    written += (size_t)vsnprintf(text + written, sizeof text - written, format, v);
    va_end(v);
    cr_assert(written < sizeof text);
}
/* {prefix FROM, prefix FROM + 1, ...}: n registers */
static inline void list(const char *prefix, int from, int n)
{
    add("{");
    for (int k = 0; k < n; k++)
        add("%s%s%d", k ? "," : "", prefix, from + k);
    add("}");
}
#endif
