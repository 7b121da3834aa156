/* fields: the reading of "word,name=value,name=value", the form in which problems and configs are written. */
#ifndef FA_GEN_FIELDS_H
#define FA_GEN_FIELDS_H
#include <fagen.h>
#include <stdbool.h>

typedef struct fa_field {
    char name[32];   /* "" where the field has no '=' */
    char value[256]; /* without blanks around it; features of a problem are the longest */
} fa_field;

/* Takes the next field off *s. False at the end of the string, or on a field that is empty or too long: then *st is not
 * FA_OK and the message quotes it. what: "problem", "config", for the message. */
bool fa_field_next(const char **s, fa_field *out, const char *what, fa_status *st);

/* The field's value as a decimal integer. */
fa_status fa_field_int(int32_t *out, const fa_field *f, const char *what);
#endif
