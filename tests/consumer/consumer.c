/* fagen.h as C99 sees it: every function is called once, without any device. */
#include <fagen.h>
#include <stdio.h>
#include <string.h>

#ifdef LAUNCH_ONLY /* libfagen_launch has every function but this one */
#define TUNE(ctx, problem, options) ((void)(options), FA_UNSUPPORTED)
#else
#define TUNE fa_tune
#endif

int cxx_sees(void);

int main(void)
{
    fa_context *ctx = NULL;
    fa_options options = FA_OPTIONS_INIT;
    fa_problem problem = FA_PROBLEM_INIT;
    fa_args args = FA_ARGS_INIT;
    fa_tune_options tune = FA_TUNE_OPTIONS_INIT;
    size_t bytes = 0;
    void *memory = NULL;
    char text[64];
    if (fa_version() != FA_VERSION_MAJOR * 10000 + FA_VERSION_MINOR * 100 + FA_VERSION_PATCH)
        return 1;
    if (strcmp(fa_status_name(FA_NO_FIT), "FA_NO_FIT") != 0)
        return 2;
    options.device = "abacus";
    if (fa_create(&ctx, &options) != FA_INVALID || ctx || !strstr(fa_last_error(), "abacus"))
        return 3;
    if (fa_supported(NULL, &problem) == FA_OK || fa_prepare(NULL, &problem) == FA_OK || fa_launch(NULL, &args, NULL) == FA_OK ||
        fa_workspace_size(NULL, &args, &bytes) == FA_OK || fa_explain(NULL, &problem, &args, text, sizeof text) == FA_OK ||
        TUNE(NULL, &problem, &tune) == FA_OK || fa_alloc(NULL, &memory, 1) == FA_OK || fa_free(NULL, memory) == FA_OK ||
        fa_copy(NULL, text, text, 1, FA_TO_DEVICE) == FA_OK)
        return 4;
    fa_destroy(NULL);
    puts("consumer: ok");
    return cxx_sees();
}
