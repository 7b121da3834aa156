/* score_programs: texts of score programs that several suites read: what models and papers compute. */
#ifndef FA_TESTS_SCORE_PROGRAMS_H
#define FA_TESTS_SCORE_PROGRAMS_H

typedef struct score_program {
    const char *name, *text;
} score_program;

static const score_program score_programs[] = {
    { "softcap", "cap = scalar(50)\nfunction score(s, b, h, i, j) return cap * tanh(s / cap) end\n" },
    { "softcap_exact", "cap = scalar(30)\nfunction score(s, b, h, i, j) return cap * tanh_exact(s / cap) end\n" },
    { "temperature", "t = f32 \"hq\"\nfunction score(s, b, h, i, j) return s * t[h] end\n" },
    { "temperature_of_row", "function score(s, b, h, i, j) return s * (1 + 0.1 * log(1 + floor((i + off) // 8192))) end\n" },
    { "alibi", "slope = f32 \"hq\"\nfunction score(s, b, h, i, j) return s + slope[h] * (j - i - off) end\n" },
    { "relative", "t = bf16 \"hq sq+sk-1\"\nfunction score(s, b, h, i, j) return s + t[h][j - i + sq - 1] end\n" },
    { "t5", "rel = f32 \"hq 32\"\n"
            "function bucket(d)\n"
            "  local n = abs(d)\n"
            "  local far = min(15, 8 + floor(log(max(n, 1) / 8) / log(16) * 8))\n"
            "  return (d > 0 and 16 or 0) + (n < 8 and n or far)\n"
            "end\n"
            "function score(s, b, h, i, j) return s + rel[h][bucket(j - i)] end\n" },
    { "bias", "bias = f16 \"b hq sq sk\"\nfunction score(s, b, h, i, j) return s + bias[b][h][i][j] end\n" },
    { "graphormer", "t = f32 \"hq ?\"; dist = u8 \"b sq sk\"\nfunction score(s, b, h, i, j) return s + t[h][dist[b][i][j]] end\n" },
    { "kerple", "r1 = f32 'hq'\nr2 = f32 'hq'\nfunction score(s, b, h, i, j) return s - r1[h] * log(1 + r2[h] ^ 2 * abs(j - i)) end\n" },
    { "activation", "function score(s, b, h, i, j) return log(max(s, 0) ^ 2 + 1e-6) end\n" },
    { "sigmoid",
      "c = scalar(2.5, 'float', 0.1, 10)\nfunction score(s, b, h, i, j) return log(sigmoid(s - c)) + sqrt(abs(s)) * rsqrt(c) end\n" },
    { "boost", "function score(s, b, h, i, j)\n  if abs(i - j) <= 8 then return 2 * s end\n  return s\nend\n" },
    { "documents", "doc = i32 \"b sk\"\nfunction mask(b, h, i, j) return j <= i and doc[b][i] == doc[b][j] end\n" },
    { "gpt_oss", "w = scalar(128, \"int\"); z = f32 \"hq\"\n"
                 "function mask(b, h, i, j) return j <= i + off and i + off - j < w end\n"
                 "function sink(b, h, i) return z[h] end\n" },
    { "prefix", "n = i32 \"b\"\nfunction mask(b, h, i, j) return j <= i or j < n[b] end\n" },
    { "draft_tree", "anc = bits \"b sq sq\"\nfunction mask(b, h, i, j) return j < off or anc[b][i][j - off] end\n" },
    { "blocks", "blk = u8 \"b hq sq/128 sk/128\"\nfunction mask(b, h, i, j) return j <= i and blk[b][h][i // 128][j // 128] ~= 0 end\n" },
    { "chunks", "c = scalar(32, \"int\", 1, 65536)\nfirst = i64 \"b\"\n"
                "function mask(b, h, i, j) return j <= i and (i - first[b]) // c == (j - first[b]) // c end\n" },
    { "dilated", "w = scalar(40, 'int', 0, 1000) r = scalar(3, 'int', 1, 64)\n"
                 "function mask(b, h, i, j) return abs(i - j) <= w and (i - j) % r == 0 end\n" },
    { "natten", "width = 16\n"
                "function near(i, j) return abs(min(max(i, 3), width - 4) - j) <= 3 end\n"
                "function mask(b, h, i, j) return near(i % width, j % width) and near(i // width % width, j // width % width) end\n" },
    { "block_diffusion", "n = scalar(64, 'int', 1, 1024)\nlocal L = 4\n"
                         "function mask(b, h, i, j)\n"
                         "  local x, y = i % n // L, j % n // L\n"
                         "  if i < n then return j < n and x == y or j >= n and y < x end\n"
                         "  return j >= n and y <= x\n"
                         "end\n" },
    { "flamingo", "img = i32 'sk'; lo = i32 '?'; hi = i32 '?'\n"
                  "function mask(b, h, i, j) local m = img[j]; return lo[m] <= i and i < hi[m] end\n" },
    { "images", "g = i32 'b sk'\nfunction mask(b, h, i, j) return j <= i or (g[b][i] == g[b][j] and g[b][i] >= 0) end\n" },
    { "loop", "taps = f32 'hq 4'\n"
              "function score(s, b, h, i, j)\n"
              "  local sum, d = 0.0, abs(i - j)\n"
              "  for k = 0, 3 do\n"
              "    local at = 4 * k\n"
              "    if d >= at and d < at + 4 then sum = sum + taps[h][k] elseif d == at + 4 then sum = sum - 0.25 end\n"
              "  end\n"
              "  return s + sum\n"
              "end\n" },
    { "bits", "function mask(b, h, i, j) local x = (i & 0xff) ~ (j & 255); return (x | h) % 3 ~= 1 or (i >> 3) & 1 == ~(-2) and x << 2 > "
              "64 end\n" },
    { "paths", "function clip(x)\n  if x > 4 then return 4 elseif x < -4 then return -4 end\n  do local y = x * 1.0; return y end\nend\n"
               "function score(s, b, h, i, j)\n"
               "  local a, c\n"
               "  if i > j then a, c = 1, true else a, c = 2.5, h == 1 end\n"
               "  a, i = i // 2, a\n"
               "  if not c then return clip(s) + i end\n"
               "  return i > 2 and clip(s * 2) or a % 7 == 3 and s - a % 5 or -s\n"
               "end\n" },
    { "signs", "x = f32 'sq/8'\n"
               "function score(s, b, h, i, j)\n"
               "  local d = j - i\n"
               "  local u = x[i // 4] + x[i // 8] + d // 8 + d % 8 + d // -3 - (s - 4) ^ -2 / 1e6\n"
               "  return -s ^ 2 + 2 ^ -abs(s) + u * (not (i == j) and 1 or 0.5)\n"
               "end\n" },
    { "everything",
      "x = scalar(0.5, 'float', -4, 4)\nk = scalar(-3, 'int', -9, -1)\n"
      "function score(s, b, h, i, j)\n"
      "  local u = exp2(x) + exp(-abs(s)) - log2(3 + s * s) + math.floor(x) + ceil(x * 3) + 2 ^ (x / 2) + (s + x) // 0.75 + s % 1.5\n"
      "  return u + j // k + i % k + (j - i) // 7 + (j - i) % -5 + max(i, 3, h) + min(s, j, x) + pi + 3 ^ 2 + 7 // 2 + -7 % 3 + s ^ 3 + 1 "
      "/ (2 + s ^ 2)\n"
      "end\n" },
};
#define SCORE_PROGRAMS (sizeof score_programs / sizeof *score_programs)
#endif
