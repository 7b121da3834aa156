/* pins: a short list under a lock, looked at on a miss. */
#include "pins.h"
#include "gen/error.h"
#include "gen/problem.h"
#include <stdlib.h>

void fa_pins_open(fa_pins *pins)
{
    pthread_mutex_init(&pins->mutex, NULL);
}

void fa_pins_close(fa_pins *pins)
{
    free(pins->row);
    pthread_mutex_destroy(&pins->mutex);
}

/* The place of the point's pin; pins->n: it has none. The lock is held. */
static size_t place(const fa_pins *pins, const fa_problem *point)
{
    size_t i = 0;
    while (i < pins->n && !(fa_problem_same_class(&pins->row[i].point, point) && fa_problem_same_shape(&pins->row[i].point, point)))
        i++;
    return i;
}

uint64_t fa_pins_find(fa_pins *pins, const fa_problem *point, fa_config *out)
{
    uint64_t number = 0;
    if (!atomic_load(&pins->changes))
        return 0;
    pthread_mutex_lock(&pins->mutex);
    size_t i = place(pins, point);
    if (i < pins->n) {
        number = pins->row[i].number;
        if (out)
            *out = pins->row[i].config;
    }
    pthread_mutex_unlock(&pins->mutex);
    return number;
}

/* Room for one more. The lock is held. */
static bool grow(fa_pins *pins)
{
    size_t cap = pins->n < pins->cap ? pins->cap : pins->cap ? 2 * pins->cap : 8;
    fa_pin_row *grown = cap == pins->cap ? pins->row : realloc(pins->row, cap * sizeof *grown);
    if (!grown)
        return false;
    pins->row = grown;
    pins->cap = cap;
    return true;
}

fa_status fa_pins_set(fa_pins *pins, const fa_problem *point, const fa_config *c)
{
    pthread_mutex_lock(&pins->mutex);
    size_t i = place(pins, point);
    bool there = i < pins->n && fa_config_equal(&pins->row[i].config, c);
    bool room = there || i < pins->n || grow(pins);
    if (!there && room) {
        pins->row[i] = (fa_pin_row){ *point, *c, ++pins->last };
        pins->n += i == pins->n;
        atomic_fetch_add(&pins->changes, 1);
    }
    pthread_mutex_unlock(&pins->mutex);
    return room ? FA_OK : fa_fail(FA_NOMEM, "no memory for a pin");
}

void fa_pins_drop(fa_pins *pins, const fa_problem *point)
{
    pthread_mutex_lock(&pins->mutex);
    size_t i = point ? place(pins, point) : 0;
    if (i < pins->n) {
        if (point)
            pins->row[i] = pins->row[pins->n - 1];
        pins->n = point ? pins->n - 1 : 0;
        atomic_fetch_add(&pins->changes, 1);
    }
    pthread_mutex_unlock(&pins->mutex);
}
