/* settings: words of FAGEN_GGML. */
#include "settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fa_ggml_settings_read(fa_ggml_settings *s, const char *text, char *why, size_t n)
{
    memset(s, 0, sizeof *s);
    s->tier = 2;
    memcpy(s->registry, "CUDA", sizeof "CUDA");
    for (const char *at = text ? text : ""; *at;) {
        char word[48];
        size_t size = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)size, at);
        if (!strcmp(word, "off"))
            s->off = true;
        else if (!strcmp(word, "all"))
            s->all = true;
        else if (!strcmp(word, "log"))
            s->tells = true;
        else if (!strcmp(word, "nearest"))
            s->nearest = true;
        else if (!strncmp(word, "tier=", 5) && word[5] >= '1' && word[5] <= '3' && !word[6])
            s->tier = word[5] - '0';
        else if (!strncmp(word, "memory=", 7) && word[7] >= '1' && word[7] <= '9' && strlen(word) < 12 &&
                 strspn(word + 7, "0123456789") == strlen(word + 7))
            s->memory = atoi(word + 7);
        else if (!strncmp(word, "sim:", 4) && word[4] && size < sizeof word)
            memcpy(s->simulator, word, sizeof word);
        else if (!strncmp(word, "hook=", 5) && word[5] && strlen(word + 5) < sizeof s->registry)
            memcpy(s->registry, word + 5, strlen(word + 5) + 1);
        else if (size)
            return snprintf(why, n,
                            "FAGEN_GGML: %s is none of its words; accepted: off, all, log, nearest, tier=1, tier=2, tier=3, memory=MIB, "
                            "sim:ARCH, hook=NAME",
                            word),
                   false;
        at += size + (at[size] == ',');
    }
    if (strcmp(s->registry, "CUDA") != 0 && !s->simulator[0])
        return snprintf(why, n, "FAGEN_GGML: hook=%s without sim:ARCH; accepted: both, as its tensors lie in host memory", s->registry),
               false;
    return true;
}
