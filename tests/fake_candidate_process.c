/* fake_candidate_process: a process that speaks autotune/candidate/process.h's lines and misbehaves as the config's tunable "does" says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WELL, WRONG, DIES, HANGS, BABBLES, IS_LOST, ENDS, LATER_DIES, LATER_HANGS, LATER_BABBLES, LATER_LIES, NO_MEMORY };

int main(int argc, char **argv)
{
    char line[1024];
    int does = WELL, us = 100;
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "mute"))
        return 3;
    printf("ready %s\n", strcmp(mode, "old") ? FA_VERSION_STRING : "0.0.1");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "problem ", 8)) {
            puts("ok");
        } else if (!strncmp(line, "judge ", 6)) {
            const char *at = strstr(line, "does=");
            does = at ? atoi(at + 5) : WELL;
            at = strstr(line, "us=");
            us = at ? atoi(at + 3) : 100;
            if (does == WRONG)
                puts("fail -14 O[3] is 1.5, should be 0.25");
            else if (does == NO_MEMORY)
                puts("fail -10 no memory on the device");
            else if (does == DIES)
                abort();
            else if (does == HANGS)
                pause();
            else if (does == BABBLES)
                puts("what?");
            else if (does == ENDS)
                return 7;
            else if (does == IS_LOST) {
                puts("lost -6 CUDA_ERROR_ILLEGAL_ADDRESS");
                fflush(stdout);
                return 6;
            } else
                puts("ok");
        } else if (!strncmp(line, "time ", 5)) {
            int n = atoi(line + 5);
            if (does == LATER_DIES)
                raise(SIGKILL);
            if (does == LATER_HANGS)
                pause();
            if (does == LATER_BABBLES) {
                puts("times many");
            } else {
                printf("times %d 2 1755 61 0 0", n);
                for (int i = 0; i < n; i++)
                    printf(" %a", does == LATER_LIES && i == n - 1 ? -1.0 : us * 1e-6 * (1 + 0.001 * (i % 3)));
                putchar('\n');
            }
        }
        fflush(stdout);
    }
    return 0;
}
