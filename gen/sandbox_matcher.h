/* sandbox_matcher: a pattern of Lua's against a text, by backtracking as deep as Lua's own, in steps that are charged as they are taken. */
#ifndef FA_GEN_SANDBOX_MATCHER_H
#define FA_GEN_SANDBOX_MATCHER_H
#include <lua.h>
#include <stddef.h>

#define FA_MATCHER_CAPTURES 32
#define FA_MATCHER_BYTES 8 /* that are compared, searched or copied in one step */

enum { FA_MATCHER_OPEN = -1, FA_MATCHER_POSITION = -2 }; /* in the place of a capture's length */

typedef struct fa_matcher {
    lua_State *L;
    const char *text, *text_end, *pattern_end;
    double steps; /* not charged yet */
    int depth, captures;
    struct {
        const char *from;
        ptrdiff_t length;
    } capture[FA_MATCHER_CAPTURES];
} fa_matcher;

/* Counts steps, of which each is the test of one character, and charges them now and then: raises where a limit is reached. */
void fa_matcher_step(fa_matcher *m, size_t n);
/* The end of the text from s that the pattern from p matches, with the captures in m; NULL where none does. Raises what is wrong with p. */
const char *fa_matcher_run(fa_matcher *m, const char *s, const char *p);
#endif
