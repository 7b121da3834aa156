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
    } tunable[FA_CONFIG_MAX]; /* in the order of the family's declaration; unused entries are zero bytes */
} fa_config;

bool fa_config_equal(const fa_config *a, const fa_config *b);
/* The value of a tunable, or fallback where the config has none of that name. */
int fa_config_get(const fa_config *c, const char *name, int fallback);
/* Replaces or appends. False when full or a name too long. */
bool fa_config_set(fa_config *c, const char *name, int value);
/* "flash_fwd_mma:br=128,bc=64,warps=4". Returns the length as snprintf does. */
int fa_config_print(char *buf, size_t n, const fa_config *c);
fa_status fa_config_parse(fa_config *out, const char *s);
#endif
