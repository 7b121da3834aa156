/* translate: the Lua of a template, one line for one line: `//|` lines as they are, of the others a call that writes them. */
#ifndef FA_GEN_TRANSLATE_H
#define FA_GEN_TRANSLATE_H
#include "files.h"

/* Fills code and row of f, the file of that index. FA_TEMPLATE for an unclosed $( and the like. */
fa_status fa_translate(fa_file *f, int index);
void fa_translate_free(fa_file *f);
#endif
