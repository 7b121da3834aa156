/* config: one way to do it: a template family and its tunables, small ints whose meaning lives in the family's .lua. */
#ifndef FA_GEN_CONFIG_H
#define FA_GEN_CONFIG_H
#include <fagen.h>
#include <stdbool.h>

#define FA_CONFIG_MAX 20 /* tunables of one family */

typedef struct fa_config {
    char family[24];
    int32_t n;
    struct {
        char name[12];
        int32_t value;
        int32_t later; /* 1: so the family declares it. A value of 0 is left out of texts, and a config that lacks the tunable is an equal
                          one */
    } tunable[FA_CONFIG_MAX]; /* in the order of the family's declaration; unused entries are zero bytes */
} fa_config;

/* Whether its tunable i tells it from others: all do, but those that came later and have the value 0. */
bool fa_config_tells(const fa_config *c, int i);
bool fa_config_equal(const fa_config *a, const fa_config *b);
uint64_t fa_config_hash(const fa_config *c); /* the same of equal ones */
/* The value of a tunable, or fallback where the config has none of that name. */
int fa_config_get(const fa_config *c, const char *name, int fallback);
/* Replaces or appends. False when full or a name too long. */
bool fa_config_set(fa_config *c, const char *name, int value);
/* "family:name=value,...", values as numbers: the form of records, keys and the text of kernels. Returns the length as snprintf does. */
int fa_config_print(char *buf, size_t n, const fa_config *c);
/* Reads what fa_config_print writes. The names of values are their family's: fa_gen_config_parse (gen.h) knows them. */
fa_status fa_config_parse(fa_config *out, const char *s);

/* The same with another reading of a value: *v is that of the field, for the family of that name. */
struct fa_field;
typedef fa_status fa_config_value(const void *user, const char *family, const struct fa_field *f, int32_t *v);
fa_status fa_config_read(fa_config *out, const char *s, fa_config_value *value, const void *user);
#endif
