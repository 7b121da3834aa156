//| needs "l.angle_bytes? l.angle_unit? l.partner"
//| -- Cosines and sines of a piece, and what columns become that turn together. to_float(), unit_type: of pieces.cu.
//| if p.rotary > 0 then
// Cosines and sines of the columns of a piece that begins at `column`, out of a position's row.
__device__ __forceinline__ void load_angles(float (&c)[ANGLES], float (&s)[ANGLES], const char *row, int column) {
//|   if l.partner == "any" then
#pragma unroll
  for (int i = 0; i < VEC; i++) {
//|     if p.has_rotary_pairs then
    const int at = (column + i) / 2;
//|     else
    const int at = (column + i) % HALF;
//|     end
    if (column + i < ROTARY) {
//|     local element = l.angle_bytes == 4 and "u32" or "u16"
      c[i] = $(to_float(p.cos, ("((const %s *)row)[at]"):format(element)));
      s[i] = $(to_float(p.cos, ("((const %s *)row)[HALF + at]"):format(element)));
    }
  }
//|   else
//|     if l.partner == "pairs" then
  const int first = column / 2;
//|     else
  const int first = column < HALF ? column : column - HALF;
//|     end
//|     local unit, words = l.angle_unit, l.angle_unit // 4
//|     local per = unit // l.angle_bytes
#pragma unroll
  for (int i = 0; i < ANGLES; i += $(per)) {
//|     for _, of in ipairs({ { "c", "" }, { "s", "HALF + " } }) do
    {
      const $(unit_type[unit]) x = *(const $(unit_type[unit]) *)(row + ($(of[2])first + i) * $(l.angle_bytes));
//|       for n = 0, per - 1 do
//|         local word = n * l.angle_bytes // 4
//|         local text = words > 1 and "x." .. ({ "x", "y", "z", "w" })[word + 1] or "x"
//|         if l.angle_bytes == 2 and unit > 2 then text = n % 2 == 1 and text .. " >> 16" or text end
      $(of[1])[i$(n > 0 and " + " .. n or "")] = $(to_float(p.cos, text));
//|       end
    }
//|     end
  }
//|   end
}

// Each product and each sum is rounded by itself, so that the result is one number on every chip: x cos - y sin, and x cos + y sin.
//|   if l.partner ~= "halves" then
__device__ __forceinline__ float turn_first(float x, float y, float c, float s) {
  return __fadd_rn(__fmul_rn(x, c), -__fmul_rn(y, s));
}
//|   end
__device__ __forceinline__ float turn_second(float x, float y, float c, float s) { return __fadd_rn(__fmul_rn(x, c), __fmul_rn(y, s)); }
//| end
