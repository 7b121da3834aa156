/* lever: what the scripts of bench/ need beyond fagen.h: configs named one by one, compiled and launched beside what fa_launch()
 * chooses. Becomes libfagen_lever.so, which holds all of libfagen too; it is not installed and its names may change any day. */
#ifndef FA_BENCH_LEVER_H
#define FA_BENCH_LEVER_H
#include <fagen.h>

/* Opaque; belongs to its context and lives as long. */
typedef struct fa_lever fa_lever;

/* Writes the whole config that text names for the problem: text may leave tunables out, then the model's best of those that it
 * can mean. p needs no shape. Errors as of `fagen run --config`. Thread-safe. */
FA_API fa_status fa_lever_pick(fa_context *ctx, const fa_problem *p, const char *text, char *config, size_t n);

/* Writes up to `limit` (0 = all) configs that fit, a line each, the model's fastest first. family NULL = the families that serve the
 * problem. The text is cut at a line that n bytes have no room for. Thread-safe. */
FA_API fa_status fa_lever_rank(fa_context *ctx, const fa_problem *p, const char *family, int limit, char *lines, size_t n);

/* Renders and compiles a whole config, or loads it from the cache. told (n bytes): one line "registers=168 spills=0 local=0 smem=164864
 * threads=384 from=compiler serialized=0", the largest over the steps. Thread-safe: compile on as many threads as there are cores. */
FA_API fa_status fa_lever_plan(fa_context *ctx, const fa_problem *p, const char *config, const fa_lever **out, char *told, size_t n);

/* Launches it for args of the problem's class, whatever fa_launch() would choose. No synchronisation. The workspace is args->workspace. */
FA_API fa_status fa_lever_launch(fa_context *ctx, const fa_lever *plan, const fa_args *args, fa_stream stream);

/* Bytes of workspace that args need with it. */
FA_API fa_status fa_lever_workspace(fa_context *ctx, const fa_lever *plan, const fa_args *args, size_t *bytes);

/* What the mask of args lets through between sq queries and sk keys; nothing else of args is read. band: the two diagonals; pairs: how many
 * of a head; first, last [sq]: the keys that each query sees, none where last < first. Thread-safe. */
FA_API fa_status fa_lever_pairs(const fa_args *args, int64_t band[2], int64_t *pairs, int64_t *first, int64_t *last);
#endif
