/* See criterion.h beside it. */
#include "criterion.h"
