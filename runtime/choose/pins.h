/* pins: configs that the program names for a class and bucket of its context (fa_pin). A choice sees the pin that there is when it begins;
 * launches that hit look at none. */
#ifndef FA_RUNTIME_CHOOSE_PINS_H
#define FA_RUNTIME_CHOOSE_PINS_H
#include "gen/config.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct fa_pin_row {
    fa_problem point; /* fa_problem_point() */
    fa_config config;
    uint64_t number; /* no other pin of the context has it, or had it; not 0 */
} fa_pin_row;

typedef struct fa_pins {
    pthread_mutex_t mutex; /* of the list */
    fa_pin_row *row;
    size_t n, cap;
    uint64_t last;            /* number that was given */
    _Atomic uint64_t changes; /* of the list, since the context was made */
} fa_pins;

void fa_pins_open(fa_pins *pins);
void fa_pins_close(fa_pins *pins);

/* The number of the point's pin, and its config (may be NULL); 0: there is none. Thread-safe, as all below. */
uint64_t fa_pins_find(fa_pins *pins, const fa_problem *point, fa_config *out);
/* In place of the point's pin, if it has one: the same config keeps its number. FA_NOMEM. */
fa_status fa_pins_set(fa_pins *pins, const fa_problem *point, const fa_config *c);
void fa_pins_drop(fa_pins *pins, const fa_problem *point); /* NULL: all of them */
#endif
