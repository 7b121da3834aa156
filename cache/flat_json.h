/* flat_json: a line that is one JSON object of plain texts, numbers and booleans, without blanks, as this library writes it. It is taken
 * apart where it lies. What is anything else (an escape, a byte that is not printable ASCII, an object in an object) is left to a whole
 * parser; what is taken is read as that would read it. */
#ifndef FA_CACHE_FLAT_JSON_H
#define FA_CACHE_FLAT_JSON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fa_flat_kind { FA_FLAT_ABSENT = 0, FA_FLAT_TEXT, FA_FLAT_INTEGER, FA_FLAT_REAL, FA_FLAT_TRUE, FA_FLAT_OTHER } fa_flat_kind;

typedef struct fa_flat_value {
    fa_flat_kind kind; /* OTHER: false, and what a whole parser makes of the rest */
    const char *text;  /* of TEXT: not NUL-terminated */
    size_t n;          /* bytes of it */
    int64_t integer;   /* of INTEGER */
    double number;     /* of INTEGER and REAL */
} fa_flat_value;

/* The member at *p, after '{' or ','. *p is then at the ',' after it or at the end of the line. False: not a flat line. */
bool fa_flat_next(const char **p, const char **name, size_t *n_name, fa_flat_value *out);
#endif
