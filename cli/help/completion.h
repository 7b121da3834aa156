/* completion: what a shell may offer for the words of a command line, from the tables of options. */
#ifndef FA_CLI_HELP_COMPLETION_H
#define FA_CLI_HELP_COMPLETION_H
#include "help.h"

typedef enum completion_source { COMPLETE_FREE, COMPLETE_WORDS, COMPLETE_FILES, COMPLETE_FOLDERS } completion_source;

/* What the value of an option may be. words: between blanks, "" where the source is another. */
typedef struct completion {
    completion_source source;
    bool list; /* words with commas between */
    char words[1024];
} completion;

/* The names of kernel families, found once: between blanks. */
typedef struct completion_names {
    char families[1024];
} completion_names;

/* " word", without the blank at the beginning; as far as n bytes go. */
void completion_add(char *to, size_t n, const char *word);
void completion_of(completion *out, const cli_option *o, const completion_names *names);

void completion_bash(FILE *f, const cli_program *p, const completion_names *names);
void completion_zsh(FILE *f, const cli_program *p, const completion_names *names);
#endif
