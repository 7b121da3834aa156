/* template: a .cu file with `//|` lines of Lua and $(values), turned into text. See docs/templates.md. */
#ifndef FA_GEN_TEMPLATE_H
#define FA_GEN_TEMPLATE_H
#include "files.h"
#include "sandbox.h"
#include "text.h"

/* What a template writes: the text for people, and the same with #line for the compiler. */
typedef struct fa_output {
    fa_files *files;
    fa_text text, lined;
    int at_file, at_line;     /* the template line written last */
    int view_file, view_line; /* where the compiler believes the next line of `lined` comes from */
    int indent;               /* columns before each line that is no directive */
    bool blank;               /* the line written last is blank */
    bool continued, comment;  /* the text so far ends within a backslash-continued line, within a block comment */
    bool closed;              /* takes no text: writing is an error */
} fa_output;

/* A zero `files` aside, all of it starts as zeros. */
void fa_output_free(fa_output *o);

/* Inside a run. Gives the environment at index env the function include(), which runs a .lua file, once for each name, and returns its
 * value, or, where o can take text, renders a .cu file in place; needs(), which checks names of c and l; and indented(), which moves what a
 * function prints to the right. o->files must be set. A script may keep the functions for as long as its state lives: so long must o. */
void fa_template_provide(lua_State *L, int env, fa_output *o);
/* Inside a run. Runs a file as include does; leaves one value. */
void fa_template_include(lua_State *L, int env, fa_output *o, const char *name);

/* Turns what Lua raised into this thread's message: the file really used, the line and its text. what: "flash_fwd_mma". */
fa_status fa_template_fail(const fa_files *fs, fa_status st, const char *what, const char *error);
#endif
