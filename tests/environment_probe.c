/* environment_probe: two small launches, each with a context of its own, in whatever surroundings the caller made; one line each:
 * "OK right cached 0 warnings: ...". The suite `environment` runs it. */
#include "tiny.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_folder(void *path)
{
    nftw(path, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void use_up_descriptors(void *unused)
{
    (void)unused;
    while (dup(STDERR_FILENO) >= 0)
        ;
}

/* A program with more rights than its caller cannot be looked into, which the leak checker must. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* usage: environment_probe NVRTC CACHE|- [removed|descriptors|once]; "-": as the environment says */
int main(int argc, char **argv)
{
    const char *mode = argc > 3 ? argv[3] : "";
    if (argc < 3)
        return 2;
    for (int i = 0; i < 2; i++) {
        tiny_way w = { .nvrtc = argv[1], .cache = strcmp(argv[2], "-") ? argv[2] : NULL };
        if (!strcmp(mode, "removed")) {
            w.between = remove_folder;
            w.user = argv[2];
        } else if (!strcmp(mode, "descriptors") && i == 1) /* the first has opened the libraries */
            w.between = use_up_descriptors;
        tiny_result r = tiny_launch(&w);
        printf("%s %s %s %d warnings: %s\n", fa_status_name(r.status), r.right ? "right" : "wrong", r.cached ? "cached" : "compiled",
               r.warnings, r.said);
    }
    return 0;
}
