/* report: the lines that were told. */
#include "report.h"
#include <fagen.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TEXTS 256

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t told[TEXTS];
static int texts;
static void (*to)(const char *text);

static uint64_t hash(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

bool fa_ggml_tell(const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *c = text; (c = strchr(c, '\n')) != NULL;) /* one line, of several */
        *c = ' ';
    uint64_t h = hash(text);
    pthread_mutex_lock(&mutex);
    bool first = texts < TEXTS;
    for (int i = 0; i < texts && first; i++)
        first = told[i] != h;
    if (first) {
        told[texts++] = h;
        if (to)
            to(text);
        else
            fprintf(stderr, "fagen: %s\n", text);
    }
    pthread_mutex_unlock(&mutex);
    return first;
}

void fa_ggml_tell_to(void (*line)(const char *text))
{
    pthread_mutex_lock(&mutex);
    to = line;
    texts = 0;
    pthread_mutex_unlock(&mutex);
}

void fa_ggml_log(void *unused, int level, const char *message)
{
    (void)unused;
    if (level <= FA_LOG_WARN)
        fa_ggml_tell("%s", message);
}
