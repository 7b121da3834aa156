/* streams: the standard streams by names that a shared object may refer to from code that was compiled for executables. */
#include <stdio.h>

extern FILE *fa_stdin, *fa_stdout, *fa_stderr;
FILE *fa_stdin, *fa_stdout, *fa_stderr;

/* Before any other constructor, and before the host can call the library. */
__attribute__((constructor(101))) static void open_streams(void)
{
    fa_stdin = stdin;
    fa_stdout = stdout;
    fa_stderr = stderr;
}
