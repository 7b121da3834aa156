/* program: its text, part by part. */
#include "program.h"
#include <stdio.h>

size_t fa_ggml_program_text(int parts, char *buf, size_t n)
{
    const int cap = parts & FA_GGML_CAP, mask = parts & FA_GGML_MASK, modulo = parts & FA_GGML_MODULO, slopes = parts & FA_GGML_SLOPES;
    const int tiles = parts & FA_GGML_TILES, sinks = parts & FA_GGML_SINKS;
    const char *h = modulo ? "h % n" : "h";
    char add[96] = "", hidden[160] = "", tile[64] = "";
    if (mask) {
        snprintf(add, sizeof add, " + %sm[b][%s][i][j]", slopes ? "slope[h] * " : "", h);
        if (tiles)
            snprintf(tile, sizeof tile, " and tile[b][%s][i // 64][j // 64] ~= 0", h);
        snprintf(hidden, sizeof hidden, "function mask(b, h, i, j) return m[b][%s][i][j] > -huge%s end\n", h, tile);
    }
    int written = snprintf(buf, n, "%s%s%s%s%s%s%s%s%s%s%s%s", cap ? "cap = scalar(50, \"float\", 1e-6, 1e30)\n" : "",
                           mask ? modulo ? "m = f16 \"b ? sq sk\"\nn = scalar(1, \"int\", 1, 1048576)\n" : "m = f16 \"b hq sq sk\"\n" : "",
                           slopes ? "slope = f32 \"hq\"\n" : "",
                           tiles ? modulo ? "tile = u8 \"b ? sq/64 sk/64\"\n" : "tile = u8 \"b hq sq/64 sk/64\"\n" : "",
                           sinks ? "z = f32 \"hq\"\n" : "", cap || mask ? "function score(s, b, h, i, j) return " : "",
                           cap    ? "cap * tanh_exact(s / cap)"
                           : mask ? "s"
                                  : "",
                           add, cap || mask ? " end\n" : "", hidden, sinks ? "function sink(b, h, i) return z[h] end\n" : "", "");
    return written > 0 ? (size_t)written : 0;
}
