/* facts: what is known of a problem class before one is chosen: winners that ship and records of measurements. A snapshot: what is tuned or
 * imported later is in later ones. */
#ifndef FA_RUNTIME_CHOOSE_FACTS_H
#define FA_RUNTIME_CHOOSE_FACTS_H
#include "cache/store.h"
#include "gen/arch.h"
#include "gen/config.h"
#include "relatives.h"

typedef enum fa_fact_kind {
    FA_FACT_PINNED,   /* named by the program for the point (pins.h) */
    FA_FACT_MEASURED, /* a verified record of this chip, measured here */
    FA_FACT_IMPORTED, /* one that was measured on another of the kind, and verified here */
    FA_FACT_SHIPPED,  /* a row of the table that ships */
    FA_FACT_MODELLED, /* a guess that `fagen tune` left for the arch, whose kernel was compiled */
    FA_FACT_NONE      /* nothing is known: what a family begins with */
} fa_fact_kind;
const char *fa_fact_name(fa_fact_kind k); /* "measured record" */

typedef struct fa_fact {
    fa_fact_kind kind;
    fa_config config;
    fa_problem problem; /* where it won, with its shape */
    double seconds;     /* there; 0 = not told */
    double far;         /* from the point, in doublings of a length: by class, chip and shape */
    bool own;           /* of the point's class, bucket and chip: it decides */
    bool arch;          /* of the arch of the point's chip */
    char chip[48], date[24];
    uint64_t source[2]; /* hash of the text that ran; zeros = not told */
} fa_fact;

/* A config that is known to fail, and how. */
typedef struct fa_failure {
    fa_config config;
    char why[136]; /* "wrong: ..." */
} fa_failure;

typedef struct fa_facts {
    fa_fact *fact; /* the nearest first, each config once */
    size_t n;
    fa_failure *failed; /* configs that this version knows to fail on the chip for the class */
    size_t n_failed;
    uint64_t hash; /* of all of it, in its order */
} fa_facts;

/* Those of point (fa_problem_point) on the arch's chip, for so much shared memory per block (0 = what the chip offers). store NULL: of
 * records nothing is known. FA_NOMEM. */
fa_status fa_facts_of(fa_facts *out, fa_store *store, const fa_problem *point, const fa_arch *a, int32_t budget);
/* A snapshot of the same facts and a pin of the point: it is the first, and decides. FA_NOMEM. */
fa_status fa_facts_pin(fa_facts *f, const fa_problem *point, const fa_config *pin);
/* NULL: c is not known to fail. */
const fa_failure *fa_facts_failure(const fa_facts *f, const fa_config *c);
void fa_facts_free(fa_facts *f);
#endif
