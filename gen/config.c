/* config: a template family and its tunables. */
#include "config.h"
#include "error.h"
#include "fields.h"
#include <stdio.h>
#include <string.h>

bool fa_config_tells(const fa_config *c, int i)
{
    return !c->tunable[i].later || c->tunable[i].value != 0;
}

/* The first from i on that tells; n where there is none. */
static int telling(const fa_config *c, int i)
{
    while (i < c->n && !fa_config_tells(c, i))
        i++;
    return i;
}

bool fa_config_equal(const fa_config *a, const fa_config *b)
{
    if (strcmp(a->family, b->family))
        return false;
    int i = telling(a, 0), j = telling(b, 0);
    for (; i < a->n && j < b->n; i = telling(a, i + 1), j = telling(b, j + 1))
        if (a->tunable[i].value != b->tunable[j].value || strcmp(a->tunable[i].name, b->tunable[j].name))
            return false;
    return i >= a->n && j >= b->n;
}

static uint64_t mix(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

uint64_t fa_config_hash(const fa_config *c)
{
    uint64_t h = mix(14695981039346656037u, c->family);
    for (int i = telling(c, 0); i < c->n; i = telling(c, i + 1))
        h = (mix(h, c->tunable[i].name) ^ (uint32_t)c->tunable[i].value) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static int find(const fa_config *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (c->tunable[i].name[0] == name[0] && !strcmp(c->tunable[i].name, name))
            return i;
    return -1;
}

int fa_config_get(const fa_config *c, const char *name, int fallback)
{
    int i = find(c, name);
    return i < 0 ? fallback : c->tunable[i].value;
}

bool fa_config_set(fa_config *c, const char *name, int value)
{
    int i = find(c, name);
    if (i < 0) {
        size_t len = strlen(name);
        if (c->n >= FA_CONFIG_MAX || !len || len >= sizeof c->tunable[0].name)
            return false;
        i = c->n++;
        memset(&c->tunable[i], 0, sizeof c->tunable[i]);
        memcpy(c->tunable[i].name, name, len);
    }
    c->tunable[i].value = value;
    return true;
}

int fa_config_print(char *buf, size_t n, const fa_config *c)
{
    int len = snprintf(buf, n, "%s", c->family);
    char mark = ':';
    for (int i = telling(c, 0); i < c->n; i = telling(c, i + 1), mark = ',')
        len += snprintf((size_t)len < n ? buf + len : NULL, (size_t)len < n ? n - (size_t)len : 0, "%c%s=%d", mark, c->tunable[i].name,
                        c->tunable[i].value);
    return len;
}

/* A letter or '_', then letters, digits, '_'. */
static bool is_name(const char *s, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return n && strspn(s, letters) >= n && !(*s >= '0' && *s <= '9');
}

fa_status fa_config_read(fa_config *out, const char *s, fa_config_value *value, const void *user)
{
    fa_config c = { .n = 0 };
    size_t len = strcspn(s, ":");
    if (len >= sizeof c.family || !is_name(s, len))
        return fa_fail(FA_INVALID, "config: the family \"%.*s\" is not a name of 1 to %zu letters; accepted: family:name=value,...",
                       (int)(len < 60 ? len : 60), s, sizeof c.family - 1);
    memcpy(c.family, s, len);
    s += len + (s[len] == ':');
    fa_field f;
    fa_status st;
    while (fa_field_next(&s, &f, "config", &st)) {
        int32_t v;
        if (!is_name(f.name, strlen(f.name)))
            return fa_fail(FA_INVALID, "config: the field \"%s%s%s\" is not name=value", f.name, f.name[0] ? "=" : "", f.value);
        if ((st = value(user, c.family, &f, &v)) != FA_OK)
            return st;
        if (find(&c, f.name) >= 0)
            return fa_fail(FA_INVALID, "config: %s is given twice (%d and %d); accepted: once", f.name, fa_config_get(&c, f.name, 0), v);
        if (!fa_config_set(&c, f.name, v))
            return fa_fail(FA_INVALID, "config: %s is one tunable too many or its name is too long; accepted: %d, of at most %zu letters",
                           f.name, FA_CONFIG_MAX, sizeof c.tunable[0].name - 1);
    }
    if (st != FA_OK)
        return st;
    *out = c;
    return FA_OK;
}

static fa_status number(const void *user, const char *family, const fa_field *f, int32_t *v)
{
    (void)user, (void)family;
    return fa_field_int(v, f, "config");
}

fa_status fa_config_parse(fa_config *out, const char *s)
{
    return fa_config_read(out, s, number, NULL);
}
