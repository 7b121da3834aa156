/* ptx_text: what ptx_parse.c reads the text with. Blanks and comments are skipped before everything. */
#ifndef SIM_PTX_TEXT_H
#define SIM_PTX_TEXT_H
#include "ptx.h"

void sim_text_blank(ptx_parser *p);
char sim_text_peek(ptx_parser *p);         /* 0 at the end */
bool sim_text_take(ptx_parser *p, char c); /* consumes c if it is next */
void sim_text_need(ptx_parser *p, char c);
char *sim_text_name(ptx_parser *p, bool dots);    /* with dots: an opcode or a section */
bool sim_text_word(ptx_parser *p, const char *w); /* consumes w if it stands here as a whole */
char *sim_text_string(ptx_parser *p);
void sim_text_braces(ptx_parser *p);                      /* skips what stands in braces */
char *sim_text_squeeze(ptx_parser *p, const char *start); /* from there to here, with single blanks */
/* Decimal, 0x, 0, 0b, with an optional U; 0f and 0d float bits; a decimal point or exponent makes a double. */
void sim_text_number(ptx_parser *p, ptx_operand *o);
void sim_text_operand(ptx_parser *p, ptx_function *f, ptx_operand *o);
int sim_text_find_register(const ptx_function *f, const char *s); /* -1: not declared */
static inline bool sim_text_in_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
#endif
