/* verify_classes: classes of problems, and which cases of them a suite draws for which families. */
#ifndef VERIFY_CLASSES_H
#define VERIFY_CLASSES_H
#include "verify/cases/case.h"

typedef struct verify_class_list {
    const char *families; /* what the names of the families that run them begin with: words between blanks */
    fa_case_queries queries;
    int rounds;            /* cases of a class on its chip, by default */
    const char *const *of; /* problems without shapes; ended by NULL */
    bool halves;           /* by default every second class is run */
    bool hopper;           /* on an H200 alone */
} verify_class_list;
extern const verify_class_list verify_classes; /* of the suite */
#endif
