//| needs "l.pdl? l.stream?"
//|   local early = l.stream and l.pdl
//|   local function word(list, index) return early and ("word<EARLY>(%s + %s)"):format(list, index) or ("%s[%s]"):format(list, index) end
//|   if early then
// EARLY: earlier work in the CUDA stream may still write there. The value is that of some time, and stays in no cache of the SM.
template <bool EARLY>
__device__ __forceinline__ int word(const int *from) {
  if constexpr (!EARLY) return *from;
  int x;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(from));
  return x;
}
//|   end
// Rows [first, first + length) of a sequence, out of the bounds of packed sequences, of rows in use, or of both.
struct Rows {
  int first, length;
};
//|   if early then
template <bool EARLY>
//|   end
__device__ __forceinline__ Rows rows_of(const int *bounds, const int *used, int index, int most, int total) {
  Rows r = {0, most};
  if (bounds != nullptr) {
    r.first = min(max($(word("bounds", "index")), 0), total);
    r.length = min(max($(word("bounds", "index + 1")), r.first), total) - r.first;
  }
  if (used != nullptr) r.length = min(r.length, max($(word("used", "index")), 0));
  r.length = min(r.length, most);
  return r;
}
