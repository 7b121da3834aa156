//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- dropout of P, as a consumer warpgroup holds it for the second product ----
// What is dropped becomes 0; the scale of what is kept is O's, at the end. number: of the head among those of all sequences; row: this
// thread's first, of the sequence. A thread has keys j and j + 8 of a query, and those of the query eight below.
__device__ __forceinline__ void drop(u32 (&a)[NS / 2], const Params &p, int number, int row, int block, int t) {
//| indented(2, pr.begin_dropout)
//| indented(2, pr.drop_operand, "wgmma", "a")
}
