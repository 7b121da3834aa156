/* lexer: the text of a score program as words, each with its line and column. Reads a part of Lua's lexical rules; the rest is refused by
 * name. */
#ifndef FA_GEN_SCORE_LEXER_H
#define FA_GEN_SCORE_LEXER_H
#include <fagen.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of the language. X(name, as it is written) */
#define FA_SCORE_KEYWORDS(X) \
    X(AND, "and")            \
    X(BREAK, "break")        \
    X(DO, "do")              \
    X(ELSE, "else")          \
    X(ELSEIF, "elseif")      \
    X(END, "end")            \
    X(FALSE, "false")        \
    X(FOR, "for")            \
    X(FUNCTION, "function")  \
    X(GOTO, "goto")          \
    X(IF, "if")              \
    X(IN, "in")              \
    X(LOCAL, "local")        \
    X(NIL, "nil")            \
    X(NOT, "not")            \
    X(OR, "or")              \
    X(REPEAT, "repeat")      \
    X(RETURN, "return")      \
    X(THEN, "then")          \
    X(TRUE, "true")          \
    X(UNTIL, "until")        \
    X(WHILE, "while")
/* Signs, the longer ones first. */
#define FA_SCORE_SIGNS(X) \
    X(ELLIPSIS, "...")    \
    X(CONCAT, "..")       \
    X(EQ, "==")           \
    X(NE, "~=")           \
    X(LE, "<=")           \
    X(GE, ">=")           \
    X(SHL, "<<")          \
    X(SHR, ">>")          \
    X(IDIV, "//")         \
    X(LABEL, "::")        \
    X(PLUS, "+")          \
    X(MINUS, "-")         \
    X(STAR, "*")          \
    X(SLASH, "/")         \
    X(PERCENT, "%")       \
    X(CARET, "^")         \
    X(LENGTH, "#")        \
    X(AMPERSAND, "&")     \
    X(TILDE, "~")         \
    X(BAR, "|")           \
    X(LT, "<")            \
    X(GT, ">")            \
    X(ASSIGN, "=")        \
    X(OPEN, "(")          \
    X(CLOSE, ")")         \
    X(OPEN_BRACE, "{")    \
    X(CLOSE_BRACE, "}")   \
    X(OPEN_INDEX, "[")    \
    X(CLOSE_INDEX, "]")   \
    X(SEMICOLON, ";")     \
    X(COLON, ":")         \
    X(COMMA, ",")         \
    X(DOT, ".")

typedef enum fa_score_word {
    FA_SCORE_WORD_END_OF_TEXT,
    FA_SCORE_WORD_NAME,
    FA_SCORE_WORD_STRING, /* without its quotes */
    FA_SCORE_WORD_INTEGER,
    FA_SCORE_WORD_NUMBER, /* with a fraction or an exponent */
#define X(name, text) FA_SCORE_WORD_##name,
    FA_SCORE_KEYWORDS(X) FA_SCORE_SIGNS(X)
#undef X
} fa_score_word;

typedef struct fa_score_place {
    int32_t line, column; /* from 1; a column is a byte */
} fa_score_place;

typedef struct fa_score_token {
    fa_score_word word;
    fa_score_place at;
    const char *s; /* in the text */
    int32_t n;
    double value; /* INTEGER, NUMBER */
} fa_score_token;

typedef struct fa_score_lexer {
    const char *name; /* of the text, in messages */
    const char *s, *end;
    fa_score_place at;
} fa_score_lexer;

/* n: at most FA_SCORE_TEXT_MAX, else FA_INVALID. */
fa_status fa_score_lexer_open(fa_score_lexer *lexer, const char *name, const char *text, size_t n);
fa_status fa_score_lexer_next(fa_score_lexer *lexer, fa_score_token *out);

/* FA_INVALID with "NAME:LINE:COLUMN: " before the message. */
fa_status fa_score_fail(const char *name, fa_score_place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A token as messages quote it: "the name x", "the end of the text". Returns buf. */
const char *fa_score_token_text(char *buf, size_t n, const fa_score_token *token);
#endif
