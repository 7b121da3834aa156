// ---- intervals of what a score program computes in a tile, as gen/score/range.c has them ----
// All values of an integer, or of a truth, 0 and 1; of a number with a fraction.
struct ScoreSpan {
  int lo, hi;
};
struct ScoreReal {
  float lo, hi;
  bool nan;
};
struct ScoreWide {
  long long lo, hi;
};
// What is seen lies inside lo to hi; what is inside full_lo to full_hi is seen by all.
struct ScoreBounds {
  int lo, hi, full_lo, full_hi;
};

constexpr int SCORE_LEAST = -2147483647 - 1, SCORE_MOST = 2147483647;

__device__ __forceinline__ float score_infinity() { return __int_as_float(0x7f800000); }
__device__ __forceinline__ ScoreReal score_anything() { return {-score_infinity(), score_infinity(), true}; }
__device__ __forceinline__ ScoreSpan score_point(int x) { return {x, x}; }
__device__ __forceinline__ ScoreReal score_point(float x) {
  if (x != x) return score_anything();
  return {x, x, false};
}
__device__ __forceinline__ ScoreSpan score_narrow(long long lo, long long hi) {
  const long long least = SCORE_LEAST, most = SCORE_MOST;
  return {(int)min(max(lo, least), most), (int)min(max(hi, least), most)};
}
__device__ __forceinline__ ScoreSpan score_hull(ScoreSpan x, ScoreSpan y) { return {min(x.lo, y.lo), max(x.hi, y.hi)}; }
__device__ __forceinline__ ScoreReal score_hull(ScoreReal x, ScoreReal y) { return {fminf(x.lo, y.lo), fmaxf(x.hi, y.hi), x.nan || y.nan}; }

// Integers. Divisors are not 0.
__device__ __forceinline__ int score_quotient(int x, int y) {
  const int q = x / y;
  return q - (q * y != x && (x < 0) != (y < 0));
}
__device__ __forceinline__ ScoreSpan score_add(ScoreSpan x, ScoreSpan y) {
  return score_narrow((long long)x.lo + y.lo, (long long)x.hi + y.hi);
}
__device__ __forceinline__ ScoreSpan score_sub(ScoreSpan x, ScoreSpan y) {
  return score_narrow((long long)x.lo - y.hi, (long long)x.hi - y.lo);
}
__device__ __forceinline__ ScoreSpan score_neg(ScoreSpan x) { return score_narrow(-(long long)x.hi, -(long long)x.lo); }
__device__ __forceinline__ ScoreSpan score_mul(ScoreSpan x, ScoreSpan y) {
  const long long a = (long long)x.lo * y.lo, b = (long long)x.lo * y.hi, c = (long long)x.hi * y.lo, d = (long long)x.hi * y.hi;
  return score_narrow(min(min(a, b), min(c, d)), max(max(a, b), max(c, d)));
}
__device__ __forceinline__ ScoreSpan score_idiv(ScoreSpan x, ScoreSpan y) {
  if (y.lo <= 0 && y.hi >= 0) return {SCORE_LEAST, SCORE_MOST};
  const int a = score_quotient(x.lo, y.lo), b = score_quotient(x.lo, y.hi), c = score_quotient(x.hi, y.lo), d = score_quotient(x.hi, y.hi);
  return {min(min(a, b), min(c, d)), max(max(a, b), max(c, d))};
}
__device__ __forceinline__ ScoreSpan score_mod(ScoreSpan x, ScoreSpan y) {
  if (y.lo <= 0 && y.hi >= 0) return {SCORE_LEAST, SCORE_MOST};
  const int first = score_quotient(x.lo, y.lo);
  if (y.lo == y.hi && first == score_quotient(x.hi, y.lo)) return {x.lo - first * y.lo, x.hi - first * y.lo};
  if (y.lo > 0) return {0, x.lo >= 0 ? min(y.hi - 1, x.hi) : y.hi - 1};
  return {y.lo + 1, 0};
}
__device__ __forceinline__ ScoreSpan score_shr(ScoreSpan x, ScoreSpan y) {
  if (x.lo < 0 || y.lo < 0) return {SCORE_LEAST, SCORE_MOST};
  return {y.hi > 31 ? 0 : x.lo >> y.hi, y.lo > 31 ? 0 : x.hi >> y.lo};
}
__device__ __forceinline__ ScoreSpan score_bits(ScoreSpan x, ScoreSpan y) {
  const int most = max(x.hi, y.hi);
  if (x.lo < 0 || y.lo < 0) return {SCORE_LEAST, SCORE_MOST};
  return {0, most == 0 ? 0 : (int)(0xffffffffu >> __clz(most))};
}
__device__ __forceinline__ bool score_points(ScoreSpan x, ScoreSpan y) { return x.lo == x.hi && y.lo == y.hi; }
__device__ __forceinline__ ScoreSpan score_band(ScoreSpan x, ScoreSpan y) {
  if (score_points(x, y)) return score_point(x.lo & y.lo);
  if (x.lo < 0 && y.lo < 0) return score_bits(x, y);
  return {0, x.lo < 0 ? y.hi : y.lo < 0 ? x.hi : min(x.hi, y.hi)};
}
__device__ __forceinline__ ScoreSpan score_bor(ScoreSpan x, ScoreSpan y) {
  return score_points(x, y) ? score_point(x.lo | y.lo) : score_bits(x, y);
}
__device__ __forceinline__ ScoreSpan score_bxor(ScoreSpan x, ScoreSpan y) {
  return score_points(x, y) ? score_point(x.lo ^ y.lo) : score_bits(x, y);
}
__device__ __forceinline__ ScoreSpan score_min(ScoreSpan x, ScoreSpan y) { return {min(x.lo, y.lo), min(x.hi, y.hi)}; }
__device__ __forceinline__ ScoreSpan score_max(ScoreSpan x, ScoreSpan y) { return {max(x.lo, y.lo), max(x.hi, y.hi)}; }
__device__ __forceinline__ ScoreSpan score_abs(ScoreSpan x) {
  const int a = abs(x.lo), b = abs(x.hi);
  return {x.lo <= 0 && x.hi >= 0 ? 0 : min(a, b), max(a, b)};
}

// Numbers with a fraction: a few roundings outward, as the tile's pairs round in their own order.
__device__ __forceinline__ ScoreReal score_outward(float lo, float hi, bool nan) {
  if (lo != lo || hi != hi) return score_anything();
  const float a = lo - (fabsf(lo) * 0x1p-21f + 0x1p-126f), b = hi + (fabsf(hi) * 0x1p-21f + 0x1p-126f);
  return {lo >= 0.f ? fmaxf(a, 0.f) : a, hi <= 0.f ? fminf(b, 0.f) : b, nan};
}
__device__ __forceinline__ bool score_finite(ScoreReal x) { return x.lo > -score_infinity() && x.hi < score_infinity(); }
__device__ __forceinline__ ScoreReal score_corners(float a, float b, float c, float d, bool nan) {
  if (a != a || b != b || c != c || d != d) return score_anything();
  return score_outward(fminf(fminf(a, b), fminf(c, d)), fmaxf(fmaxf(a, b), fmaxf(c, d)), nan);
}
__device__ __forceinline__ ScoreReal score_rounded(ScoreReal x) { return score_outward(x.lo, x.hi, x.nan); }
__device__ __forceinline__ ScoreReal score_add(ScoreReal x, ScoreReal y) {
  if (!score_finite(x) || !score_finite(y)) return score_anything();
  return score_outward(x.lo + y.lo, x.hi + y.hi, x.nan || y.nan);
}
__device__ __forceinline__ ScoreReal score_neg(ScoreReal x) { return {-x.hi, -x.lo, x.nan}; }
__device__ __forceinline__ ScoreReal score_sub(ScoreReal x, ScoreReal y) { return score_add(x, score_neg(y)); }
__device__ __forceinline__ ScoreReal score_mul(ScoreReal x, ScoreReal y) {
  if (!score_finite(x) || !score_finite(y)) return score_anything();
  return score_corners(x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi, x.nan || y.nan);
}
__device__ __forceinline__ ScoreReal score_div(ScoreReal x, ScoreReal y) {
  if ((y.lo <= 0.f && y.hi >= 0.f) || !score_finite(y)) return score_anything();
  return score_corners(x.lo / y.lo, x.lo / y.hi, x.hi / y.lo, x.hi / y.hi, x.nan || y.nan);
}
__device__ __forceinline__ ScoreReal score_idiv(ScoreReal x, ScoreReal y) {
  const ScoreReal r = score_div(x, y);
  return {floorf(r.lo), floorf(r.hi), r.nan};
}
__device__ __forceinline__ ScoreReal score_mod(ScoreReal x, ScoreReal y) {
  if (x.nan || y.nan || !score_finite(x) || !score_finite(y) || (y.lo <= 0.f && y.hi >= 0.f)) return score_anything();
  return y.lo > 0.f ? score_outward(0.f, y.hi, false) : score_outward(y.lo, 0.f, false);
}
__device__ __forceinline__ ScoreReal score_min(ScoreReal x, ScoreReal y) {
  if (x.nan || y.nan) return score_hull(x, y);
  return {fminf(x.lo, y.lo), fminf(x.hi, y.hi), false};
}
__device__ __forceinline__ ScoreReal score_max(ScoreReal x, ScoreReal y) {
  if (x.nan || y.nan) return score_hull(x, y);
  return {fmaxf(x.lo, y.lo), fmaxf(x.hi, y.hi), false};
}
__device__ __forceinline__ ScoreReal score_abs(ScoreReal x) {
  const float a = fabsf(x.lo), b = fabsf(x.hi);
  return {x.lo <= 0.f && x.hi >= 0.f ? 0.f : fminf(a, b), fmaxf(a, b), x.nan};
}
__device__ __forceinline__ ScoreReal score_tofloat(ScoreSpan x) { return score_outward((float)x.lo, (float)x.hi, false); }
__device__ __forceinline__ ScoreSpan score_floor(ScoreReal x) {
  const int lo = x.lo < -2147483648.f ? SCORE_LEAST : (int)floorf(x.lo), hi = x.hi >= 2147483648.f ? SCORE_MOST : (int)floorf(x.hi);
  return x.nan ? ScoreSpan{min(lo, 0), max(hi, 0)} : ScoreSpan{lo, hi};
}
// Of functions that rise: of their values at the ends. Logarithms and roots are NaN below 0.
__device__ __forceinline__ ScoreReal score_rising(float lo, float hi, bool nan) { return score_outward(lo, hi, nan); }
__device__ __forceinline__ ScoreReal score_exp(ScoreReal x) { return score_rising(expf(x.lo), expf(x.hi), x.nan); }
__device__ __forceinline__ ScoreReal score_exp2(ScoreReal x) { return score_rising(exp2f(x.lo), exp2f(x.hi), x.nan); }
__device__ __forceinline__ ScoreReal score_log(ScoreReal x) {
  if (x.hi < 0.f) return score_anything();
  return score_rising(logf(fmaxf(x.lo, 0.f)), logf(x.hi), x.nan || x.lo < 0.f);
}
__device__ __forceinline__ ScoreReal score_log2(ScoreReal x) {
  if (x.hi < 0.f) return score_anything();
  return score_rising(log2f(fmaxf(x.lo, 0.f)), log2f(x.hi), x.nan || x.lo < 0.f);
}
__device__ __forceinline__ ScoreReal score_sqrt(ScoreReal x) {
  if (x.hi < 0.f) return score_anything();
  return score_rising(sqrtf(fmaxf(x.lo, 0.f)), sqrtf(x.hi), x.nan || x.lo < 0.f);
}
__device__ __forceinline__ ScoreReal score_rsqrt(ScoreReal x) { return {0.f, score_infinity(), x.nan || x.lo < 0.f}; }
__device__ __forceinline__ ScoreReal score_tanh(ScoreReal x) { return {x.lo >= 0.f ? 0.f : -1.f, x.hi <= 0.f ? 0.f : 1.f, x.nan}; }
__device__ __forceinline__ ScoreReal score_sigmoid(ScoreReal x) { return {0.f, 1.f, x.nan}; }

// Truths. With NaN no comparison holds.
__device__ __forceinline__ ScoreSpan score_lt(ScoreSpan x, ScoreSpan y) { return {x.hi < y.lo, x.lo < y.hi}; }
__device__ __forceinline__ ScoreSpan score_le(ScoreSpan x, ScoreSpan y) { return {x.hi <= y.lo, x.lo <= y.hi}; }
__device__ __forceinline__ ScoreSpan score_eq(ScoreSpan x, ScoreSpan y) {
  return {x.lo == x.hi && y.lo == y.hi && x.lo == y.lo, x.hi >= y.lo && y.hi >= x.lo};
}
// Values that have no value % 64 in common are not equal.
__device__ __forceinline__ ScoreSpan score_eq(ScoreSpan x, ScoreSpan y, unsigned long long of_x, unsigned long long of_y) {
  const ScoreSpan r = score_eq(x, y);
  return {r.lo, r.hi & ((of_x & of_y) != 0)};
}
__device__ __forceinline__ ScoreSpan score_lt(ScoreReal x, ScoreReal y) { return {x.hi < y.lo && !(x.nan || y.nan), x.lo < y.hi}; }
__device__ __forceinline__ ScoreSpan score_le(ScoreReal x, ScoreReal y) { return {x.hi <= y.lo && !(x.nan || y.nan), x.lo <= y.hi}; }
__device__ __forceinline__ ScoreSpan score_eq(ScoreReal x, ScoreReal y) {
  return {x.lo == x.hi && y.lo == y.hi && x.lo == y.lo && !(x.nan || y.nan), x.hi >= y.lo && y.hi >= x.lo};
}
__device__ __forceinline__ ScoreSpan score_not(ScoreSpan x) { return {1 - x.hi, 1 - x.lo}; }
template <class T> __device__ __forceinline__ T score_select(ScoreSpan c, T x, T y) {
  return c.lo > 0 ? x : c.hi < 1 ? y : score_hull(x, y);
}

// ---- bounds of the one that a mask is solved for: 0 to last ----
__device__ __forceinline__ ScoreWide score_near(long long lo, long long hi) {
  const long long far = 1ll << 32;
  return {min(max(lo, -far), far), min(max(hi, -far), far)};
}
__device__ __forceinline__ ScoreWide score_less(ScoreWide t, long long lo, long long hi) { return score_near(t.lo - hi, t.hi - lo); }
__device__ __forceinline__ ScoreWide score_times(ScoreWide t, ScoreSpan by, int more) {
  const long long lo = t.lo + more, hi = t.hi + more;
  return score_near(min(lo * by.lo, lo * by.hi) - more, max(hi * by.lo, hi * by.hi) - more);
}
template <int TIMES> __device__ __forceinline__ long long score_share(long long t) {  // t / |TIMES|, rounded down
  constexpr int by = TIMES < 0 ? -TIMES : TIMES;
  return by == 1 ? t : t / by - (t % by < 0);
}
// TIMES * x <= t: seen by some where t is its largest, by all where it is its least.
template <int TIMES> __device__ __forceinline__ ScoreBounds score_half(ScoreWide t, int last) {
  if (TIMES == 0) return {0, t.hi >= 0 ? last : -1, 0, t.lo >= 0 ? last : -1};
  const long long some = score_share<TIMES == 0 ? 1 : TIMES>(t.hi), all = score_share<TIMES == 0 ? 1 : TIMES>(t.lo);
  const long long before = -1, most = last, after = most + 1, first = 0;
  if (TIMES > 0) return {0, (int)min(max(some, before), most), 0, (int)min(max(all, before), most)};
  return {(int)min(max(-some, first), after), last, (int)min(max(-all, first), after), last};
}
__device__ __forceinline__ ScoreBounds score_free(ScoreSpan truth, int last) {
  return {0, truth.hi > 0 ? last : -1, 0, truth.lo > 0 ? last : -1};
}
__device__ __forceinline__ ScoreBounds score_both(ScoreBounds x, ScoreBounds y) {
  return {max(x.lo, y.lo), min(x.hi, y.hi), max(x.full_lo, y.full_lo), min(x.full_hi, y.full_hi)};
}
__device__ __forceinline__ ScoreBounds score_either(ScoreBounds x, ScoreBounds y) {
  const bool no_x = x.lo > x.hi, no_y = y.lo > y.hi, none_x = x.full_lo > x.full_hi, none_y = y.full_lo > y.full_hi;
  const bool touch = x.full_lo <= y.full_hi + 1 && y.full_lo <= x.full_hi + 1 && !none_x && !none_y;
  const bool first = none_y || (!none_x && x.full_hi - x.full_lo >= y.full_hi - y.full_lo);
  return {no_x ? y.lo : no_y ? x.lo : min(x.lo, y.lo), no_x ? y.hi : no_y ? x.hi : max(x.hi, y.hi),
          touch ? min(x.full_lo, y.full_lo) : first ? x.full_lo : y.full_lo,
          touch ? max(x.full_hi, y.full_hi) : first ? x.full_hi : y.full_hi};
}

// ---- tables: entries of 64 ----
__device__ __forceinline__ int score_steps(int n) { return (n + 63) / 64; }
__device__ __forceinline__ ScoreSpan score_inside(ScoreSpan x, int n) { return {min(max(x.lo, 0), n - 1), min(max(x.hi, 0), n - 1)}; }
__device__ __forceinline__ ScoreSpan score_nothing() { return {SCORE_MOST, SCORE_LEAST}; }
__device__ __forceinline__ ScoreReal score_nothing_real() { return {score_infinity(), -score_infinity(), false}; }
// An entry's values join r.
__device__ __forceinline__ void score_join(ScoreSpan &r, const int *entry) {
  const int2 of = *(const int2 *)entry;
  r = score_hull(r, ScoreSpan{of.x, of.y});
}
__device__ __forceinline__ void score_join(ScoreReal &r, const int *entry) {
  const float2 of = *(const float2 *)entry;
  r = score_hull(r, of.x != of.x ? score_anything() : ScoreReal{of.x, of.y, false});
}

// ---- the interval of one row, or key ----
struct ScoreEnds {
  int lo, hi;
};
// As of both ends of an interval, by words: each row has its own, and 64 bits are compared by two instructions.
__device__ __forceinline__ long long score_near(long long t) {
  const int high = (int)(t >> 32);
  const unsigned low = high < -1 || high > 0 ? 0 : (unsigned)t;
  return (long long)((unsigned long long)(unsigned)min(max(high, -1), 1) << 32 | low);
}
__device__ __forceinline__ int score_int(long long t) {  // the nearest
  const int high = (int)(t >> 32), low = (int)t;
  return high == low >> 31 ? low : high < 0 ? SCORE_LEAST : SCORE_MOST;
}
template <int TIMES> __device__ __forceinline__ ScoreEnds score_end(long long t, int last) {
  if (TIMES == 0) return {0, t >= 0 ? last : -1};
  const long long share = score_share<TIMES == 0 ? 1 : TIMES>(t);
  if (TIMES > 0) return {0, min(max(score_int(share), -1), last)};
  return {min(max(score_int(-share), 0), last + 1), last};
}
__device__ __forceinline__ ScoreEnds score_both(ScoreEnds x, ScoreEnds y) { return {max(x.lo, y.lo), min(x.hi, y.hi)}; }
__device__ __forceinline__ ScoreEnds score_either(ScoreEnds x, ScoreEnds y) {
  if (x.lo > x.hi) return y;
  return y.lo > y.hi ? x : ScoreEnds{min(x.lo, y.lo), max(x.hi, y.hi)};
}
