/* say: what is printed for people. Names and contents of files, devices and records come from anywhere, and what a terminal would obey is
 * shown as text (fa_text_plain). Only a command's own colours and cursor movements go to a stream by other ways. */
#ifndef FA_CLI_TEXT_SAY_H
#define FA_CLI_TEXT_SAY_H
#include <stdarg.h>
#include <stdio.h>

void cli_say(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* `before`, which is printed as it is, and then the same. */
void cli_vsay(FILE *f, const char *before, const char *fmt, va_list ap);
#endif
