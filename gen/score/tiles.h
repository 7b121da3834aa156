/* tiles: which tiles of queries and keys a mask hides, shows, or cuts, by intervals: an interval of a node holds all values that it has in
 * the tile. What an array's elements are in a tile is read from tables that a kernel before makes of them, or one by one where they are
 * few. The same plan is followed by the host (tile_class.h) and by what kernels print (print_tiles.h). */
#ifndef FA_GEN_SCORE_TILES_H
#define FA_GEN_SCORE_TILES_H
#include "gen/text.h"
#include "ir.h"

enum {
    FA_SCORE_TABLE_STEP = 64, /* queries, or keys, to an entry of a table; queries times keys of a pair's: 64 x 64 */
    FA_SCORE_VALUES_MAX = 4,  /* of queries, and of keys, that have tables */
    FA_SCORE_PAIRS_MAX = 2,   /* arrays that have tables */
    FA_SCORE_ONE_BY_ONE = 16, /* elements of a tile that are read one by one instead */
    FA_SCORE_BLOCKS_MAX = 64  /* entries of a pair's table that are looked at; of more an element may be anything */
};

/* How a node's interval comes about. */
typedef enum fa_score_reading {
    FA_SCORE_BY_PARTS,   /* of its arguments' */
    FA_SCORE_BY_HEAD,    /* it depends on sequence and head alone: its value for each head of the tile */
    FA_SCORE_BY_QUERIES, /* from the table of its values at the queries */
    FA_SCORE_BY_KEYS,    /* at the keys */
    FA_SCORE_BY_PAIRS    /* a lookup: elements, or the array's table */
} fa_score_reading;

/* A value by query, or by key: an entry has its least and its largest value (bits of floats: NaN where one is NaN), and where `set` two
 * words with a bit for each value % 64. */
typedef struct fa_score_value_table {
    int16_t node;
    bool set;
    int8_t at; /* its first word in an entry */
} fa_score_value_table;

/* Of one side: entry (b, h, n) lies at ((b * heads + h) * steps + n) * words, where by_b and by_h say what is counted: without by_h heads
 * is 1, without by_b b is 0. */
typedef struct fa_score_side_tables {
    int n, words; /* of an entry; 0: there is no table */
    bool by_b, by_h;
    fa_score_value_table table[FA_SCORE_VALUES_MAX];
} fa_score_side_tables;

/* Of an array of bits or bytes: an entry of 64 x 64 elements of its last two indices, or of 64 of its only one: 1 where no element is 0,
 * plus 256 times the bits that any element has. Leading indices whose stride is 0 have their first entries alone. */
typedef struct fa_score_pair_table {
    int16_t operand;
    char extents[64]; /* words of a workspace buffer: "b hq sq/64 sk/64" */
} fa_score_pair_table;

typedef struct fa_score_tiles {
    const fa_score_ir *ir; /* the program's; stays the caller's */
    int mask;              /* its node; -1: the program has none, and nothing below is there */
    uint8_t reading[FA_SCORE_ROOM];
    int8_t table[FA_SCORE_ROOM]; /* of a node by queries, keys or pairs: its number; -1: a lookup whose array has none */
    fa_score_side_tables queries, keys;
    int pairs;
    fa_score_pair_table pair[FA_SCORE_PAIRS_MAX];
} fa_score_tiles;

/* A program's. Its mask is made of integers and truths for the most part: what of it is not is as wide as it needs to be. */
void fa_score_tiles_of(fa_score_tiles *out, const fa_score_ir *ir);

/* Whether a kernel before fills tables. */
bool fa_score_tiles_filled(const fa_score_tiles *t);

/* The buffers of a workspace that hold them, "mask_queries int32 b sq/64 2, mask_keys int32 b sk/64 4, mask_pairs0 int32 b sq/64 sk/64";
 * "": none. Steps of a side are those of the longest sequence. */
void fa_score_tiles_buffers(fa_text *out, const fa_score_tiles *t);

/* Of the backward pass: what a kernel before finds of each tile of 64 queries and 64 keys, by both masks, templates/pairs/marks.cu. For 32
 * tiles of a line two words, lines of the same keys, and of the same queries. Their buffers, "marks_keys int32 b sk/64 sq/2048 2,
 * marks_queries int32 b sq/64 sk/2048 2"; by: what of FA_SCORE_OF_B and FA_SCORE_OF_H there are lines for. */
unsigned fa_score_tiles_marked_by(const fa_score_tiles *t, bool lengths);
void fa_score_tiles_marks(fa_text *out, unsigned by);
#endif
