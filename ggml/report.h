/* report: what people are told: a line on standard error, each text once. */
#ifndef FA_GGML_REPORT_H
#define FA_GGML_REPORT_H
#include <stdbool.h>
#include <stddef.h>

/* "fagen: TEXT", the first time that it is told in the process; later ones, and past 256 different ones, are not. false: it was told
 * before. Thread-safe. */
bool fa_ggml_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Where lines go instead: of tests. NULL: standard error. What was told before is forgotten. */
void fa_ggml_tell_to(void (*line)(const char *text));

/* A log of fagen's contexts that tells as above. */
void fa_ggml_log(void *unused, int level, const char *message);
#endif
