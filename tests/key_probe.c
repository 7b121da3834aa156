/* key_probe: hashes of rendered texts and the keys of their kernels, in the caller's locale. The suite `keys` compares what it prints
 * under varied surroundings. usage: key_probe NVRTC */
#include "gen/config.h"
#include "gen/gen.h"
#include "gen/problem.h"
#include "runtime/build/compiler.h"
#include <locale.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const struct {
        const char *problem, *config, *arch;
    } rows[] = {
        { "bf16,d=64,mask=causal", "flash_fwd_mma", "sm_80" },
        { "fp32,d=40,mask=window", "flash_fwd_ffma", "sm_86" },
        { "fp16,d=128", "flash_fwd_wgmma", "sm_90a" },
        { "tf32,d=24,o=fp32", "naive", "sm_80" },
    };
    fa_gen *g;
    setlocale(LC_ALL, ""); /* as programs do */
    fa_compiler *c = argc > 1 ? fa_compiler_open(argv[1]) : NULL;
    if (!c || fa_gen_open(&g, NULL) != FA_OK)
        return 2;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fa_arch *a = fa_arch_find(rows[i].arch);
        fa_problem p;
        fa_config config;
        fa_source s;
        fa_tunable t;
        fa_key k;
        char hex[33];
        if (fa_problem_parse(&p, rows[i].problem) != FA_OK || fa_config_parse(&config, rows[i].config) != FA_OK)
            return 3;
        /* the first config, in the order of the declaration, that renders */
        size_t n = 0, at[FA_CONFIG_MAX] = { 0 };
        while (fa_gen_tunable(g, rows[i].config, n, &t))
            n++;
        for (;;) {
            for (size_t j = 0; j < n && fa_gen_tunable(g, rows[i].config, j, &t); j++)
                fa_config_set(&config, t.name, t.values[at[j]]);
            if (fa_render(g, &p, &config, a, 0, &s) == FA_OK)
                break;
            size_t j = 0;
            while (j < n && fa_gen_tunable(g, rows[i].config, j, &t) && ++at[j] == t.n)
                at[j++] = 0;
            if (j == n)
                return 4;
        }
        if (fa_compiler_key(c, &s, a->name, i % 2 ? FA_IMAGE_PTX : FA_IMAGE_CUBIN, &k) != FA_OK)
            return 5;
        fa_key_print(hex, k);
        printf("%s %016llx%016llx %zu %s\n", s.name, (unsigned long long)s.hash[1], (unsigned long long)s.hash[0], strlen(s.lined), hex);
        fa_source_free(&s);
    }
    fa_gen_close(g);
    fa_compiler_close(c);
    return 0;
}
