//| needs "c.pack"
//| local pr = include("pairs/pairs.lua").of(p, l)
// ---- dropout of a block of probabilities, as the warps of the forward kernels hold them ----

// What is dropped becomes 0; the scale of what is kept is O's, at the end. row: the warp's first. A thread has keys j and j + 8 of a
// query, and those of the query eight below.
__device__ __forceinline__ void drop(float (&s)[MB][NB][4], const Params &p, const Dropout &dropout, const Tile &where, int row, int block,
                                     const Lane &at) {
//| indented(2, pr.drop, c.pack == 1 and "mma_packed" or "mma", "s")
}
