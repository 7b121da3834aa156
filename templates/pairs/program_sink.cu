//| needs "l.relative? l.sums?"
//| -- program_sink: a score program's sink, one more term of a row's sum.
//|
//| return function(pr, p, l)
//|   local has_score, has_sink = pr.has_score, pr.has_sink
//|   function pr.sink_functions()
//|     if not has_sink then return end

// ---- the sink: one more term of a row's sum ----
// Its exponent of 2 beside sums relative to m: to r where the row is not far, else to m itself, as rows that are computed again have it. A
// row that has seen no key is relative to 0.
__device__ __forceinline__ float sink_exponent(float z, float m, float scale_log2, float scale) {
//|     local log2e = "1.44269504088896341f"
  const float far = fmaf(-m, scale, z) * $(log2e), near = $(pr.exponent("z", log2e, "shift_of(m, scale_log2)"));
  return m == -infinity() ? z * $(log2e) : is_far(m, scale_log2) ? far : near;
}
// What it adds to l: of +inf NaN, as of a score. Where it outweighs all keys by far, 1 / l is small enough for an O of 0 in any type.
__device__ __forceinline__ float sink_weight(float z, float m, float scale_log2, float scale) {
  const float x = sink_exponent(z, m, scale_log2, scale);
  return z == infinity() ? __int_as_float(0x7fffffff) : exp2_approx(x > 120.f ? 120.f : x);
}
// LSE, with the sink's term in l: that term alone where there is no other, or none that shows. NaN in l is that of a score.
__device__ __forceinline__ float log_sum_exp(const RowState &row, float l, float scale, float z, float scale_log2) {
  const float lse = log_sum_exp(row, l, scale);
//|   local alone = l.relative and l.sums and "120.f" or "64.f"
  return (l == l) & ((row.m == -infinity()) | (sink_exponent(z, row.m, scale_log2, scale) > $(alone))) ? z : lse;
}
//|   end
//|
//|   -- After a row's sum is complete, over all of its keys: the sink joins l. A kernel that calls it names l by pr.sum_type.
//|   function pr.add_sink(l, m, head, query, scale_log2, scale)
//|     if not has_sink then return end
const float z = sink_of(p, sequence, $(head), $(query));
//|     pr.join_sink(l, m, "z", scale_log2, scale)
//|   end
//|   -- The same of one that is known.
//|   function pr.join_sink(l, m, z, scale_log2, scale)
//|     if not has_sink then return end
$(l) += sink_weight($(z), $(m), $(scale_log2 or pr.unit_log2), $(scale or pr.unit));
//|   end
//|   -- LSE of a row whose l has the sink's term.
//|   function pr.log_sum_exp(state, l, z, scale, scale_log2)
//|     scale, scale_log2 = scale or pr.unit, scale_log2 or pr.unit_log2
//|     if has_sink then return ("log_sum_exp(%s, %s, %s, %s, %s)"):format(state, l, scale, z, scale_log2) end
//|     return ("log_sum_exp(%s, %s, %s)"):format(state, l, scale)
//|   end
//|   -- Whether a row's maximum is beyond fp32; downwards a sink is all that counts. Of a program's scores themselves, not of exponents of 2:
//|   -- a mask that is added has the least number of fp32.
//|   function pr.beyond(m)
//|     local unit = has_score and pr.unit or pr.unit_log2
//|     local finite = (has_sink and "!(%s * %s < infinity())" or "!(fabsf(%s * %s) < infinity())"):format(m, unit)
//|     return finite .. pr.and_seen(m)
//|   end
//|   -- LSE of a row that sees no key.
//|   function pr.keyless_lse(head, query)
//|     return has_sink and ("sink_of(p, sequence, %s, %s)"):format(head, query) or "-infinity()"
//|   end
//| end
