//| needs "l.counts l.half_parts? l.walks?"
// ---- parts of a tile: O relative to the maximum m of a row's own keys, and l ----

// Four columns of a row of O, from `col` on.
__device__ __forceinline__ void store_columns(output *to, int col, float4 x) {
//| if p.o_bytes == 4 and p.align >= 16 then
  if (col < DV) *(float4 *)(to + col) = x;
//| elseif p.o_bytes == 4 and p.align >= 8 then
  if (col < DV) *(float2 *)(to + col) = make_float2(x.x, x.y);
  if (col + 2 < DV) *(float2 *)(to + col + 2) = make_float2(x.z, x.w);
//| elseif p.o_bytes == 4 then
  if (col < DV) to[col] = x.x;
  if (col + 1 < DV) to[col + 1] = x.y;
  if (col + 2 < DV) to[col + 2] = x.z;
  if (col + 3 < DV) to[col + 3] = x.w;
//| else
  const u32 lo = pack2(x.x, x.y), hi = pack2(x.z, x.w);
//|   if p.align >= 8 then
  if (col < DV) *(uint2 *)(to + col) = make_uint2(lo, hi);
//|   elseif p.align >= 4 then
  if (col < DV) *(u32 *)(to + col) = lo;
  if (col + 2 < DV) *(u32 *)(to + col + 2) = hi;
//|   else
  if (col < DV) to[col] = (u16)lo;
  if (col + 1 < DV) to[col + 1] = (u16)(lo >> 16);
  if (col + 2 < DV) to[col + 2] = (u16)hi;
  if (col + 3 < DV) to[col + 3] = (u16)(hi >> 16);
//|   end
//| end
}

//| if l.walks then
// A sum of parts and one part more: the maximum of both, and what each weighs beside it. Whoever adds a part adds it by these: a sum has the
// same bits wherever it is made.
struct Weights {
  float m, sum, part;
  __device__ __forceinline__ float add(float to, float x) const { return fmaf(part, x, to * sum); }
};
__device__ __forceinline__ Weights weights_of(float m, float part, float scale_log2) {
  const float top = fmaxf(m, part), shift = shift_of(top, scale_log2);
  return {top, weight_of(m, scale_log2, shift), weight_of(part, scale_log2, shift)};
}

//| end
// A sum of parts on its way.
struct Sum {
  float m, l;
  float4 o;
//| if l.walks then
  __device__ __forceinline__ void add(float2 state, float4 x, float scale_log2) {
    const Weights w = weights_of(m, state.x, scale_log2);
    m = w.m;
    l = w.add(l, state.y);
    o = make_float4(w.add(o.x, x.x), w.add(o.y, x.y), w.add(o.z, x.z), w.add(o.w, x.w));
  }
//| else
  // Adds N parts, without a chain of exponentials from one to the next. One with m = -inf weighs nothing.
  template <int N>
  __device__ __forceinline__ void add(const float2 (&state)[N], const float4 (&x)[N], float scale_log2) {
    float top = m;
#pragma unroll
    for (int k = 0; k < N; k++) top = fmaxf(top, state[k].x);
    const float shift = shift_of(top, scale_log2), keep = weight_of(m, scale_log2, shift);
    m = top;
    l *= keep;
    o = make_float4(o.x * keep, o.y * keep, o.z * keep, o.w * keep);
#pragma unroll
    for (int k = 0; k < N; k++) {
      const float weight = weight_of(state[k].x, scale_log2, shift);
      l = fmaf(weight, state[k].y, l);
      o.x = fmaf(weight, x[k].x, o.x);
      o.y = fmaf(weight, x[k].y, o.y);
      o.z = fmaf(weight, x[k].z, o.z);
      o.w = fmaf(weight, x[k].w, o.w);
    }
  }
//| end
};

//| if l.half_parts then
// ---- O of a part in fp16, of each row and warpgroup times a power of two ----
// It brings the largest number to 2^14 and more: errors are 2^-12 of a number, or 2^-39 of the largest.
__device__ __forceinline__ u32 pack_halves(float lo, float hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
__device__ __forceinline__ float2 unpack_halves(u32 x) {
  float2 r;
  asm("{\n.reg .b16 lo, hi;\nmov.b32 {lo, hi}, %2;\ncvt.f32.f16 %0, lo;\ncvt.f32.f16 %1, hi;\n}" : "=f"(r.x), "=f"(r.y) : "r"(x));
  return r;
}
// That power of row h of a thread's two. What is not finite stays so, and leaves the others of its row their room.
__device__ __forceinline__ float room_of(const float (&o)[NO], int h) {
  float top = 0.f;
#pragma unroll
  for (int n = 0; n < NO / 4; n++) top = fmaxf(top, fmaxf(fabsf(o[4 * n + 2 * h]), fabsf(o[4 * n + 2 * h + 1])));
  top = quad_max(top);
  if (__any_sync(~0u, top == infinity())) {
    top = 0.f;
#pragma unroll
    for (int n = 0; n < NO / 4; n++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const float x = fabsf(o[4 * n + 2 * h + i]);
        if (x < infinity()) top = fmaxf(top, x);
      }
    top = quad_max(top);
  }
  return __uint_as_float((268 - max(__float_as_uint(top) >> 23, 15u)) << 23);
}
__device__ __forceinline__ float reciprocal_of_room(float room) { return __uint_as_float((254 << 23) - __float_as_uint(room)); }
// Where the reciprocal lies, of a row of a part and of a warpgroup: behind its numbers.
__device__ __forceinline__ float *room_of_part(const Params &p, long long part, int row, bool second) {
  return (float *)p.part_o + part * (BR * COLS) + BR * COLS / 2 + row * CONSUMERS + second;
}

//| end
// What other thread blocks have written. The loads stay in program order, so that all are under way before the first is awaited.
__device__ __forceinline__ float2 load_part(const float2 *from) {
  float2 x;
  asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "l"(from) : "memory");
  return x;
}
//| if l.half_parts then
__device__ __forceinline__ float load_part(const float *from) {
  float x;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(x) : "l"(from) : "memory");
  return x;
}
//| end
__device__ __forceinline__ float4 load_part(const float4 *from) {
  float4 x;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "l"(from) : "memory");
  return x;
}

//| if l.counts then
// Adds one to a counter, from `top` on to 0, and returns what it was. The thread that counts next sees all writes that this thread has made
// or seen.
__device__ __forceinline__ u32 count(u32 *counter, u32 top) {
  u32 was;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(was) : "l"(counter), "r"(top) : "memory");
  return was;
}
//| end
