// ---- segments: cuts that follow from a sequence alone ----
// The iterations of a tile are cut into segments, whose size follows from the tile's own number of iterations: each fourfold of the keys
// doubles both the size of a segment and how many there are, so that short tiles meet many thread blocks and long ones few ends of
// segments. Each segment is computed from a fresh state. The parts of the segments are added up in their order, always by the same
// operations (decode_fold.cu). So the bits of a sequence depend neither on the thread blocks that took its segments nor on what else is in
// the batch. A thread block takes the segments whose middle iterations lie in its share. They are its run of the tile: consecutive, with
// the same Q, and copies of K and V go on across their borders.

__device__ __forceinline__ int bits_of(int x) { return 32 - __clz(x); }

// The base-2 logarithm of the iterations of a segment: sizes are powers of two, so that nothing is divided by them.
__device__ __forceinline__ int segment_digits(int iterations) {
  const int last = max(iterations, 1) - 1;
  return SEGMENT_DIGITS + max((bits_of(last >> (SEGMENT_DIGITS + SEGMENTS_DIGITS - 3)) + 1) / 2,
                              bits_of(last >> (SEGMENT_DIGITS + SEGMENTS_DIGITS)));
}

// How a tile of `iterations` iterations is cut.
struct Cuts {
  int iterations, digits;
  __device__ __forceinline__ int segments() const { return (iterations + (1 << digits) - 1) >> digits; }
  // Segments before a work item of the tile: those whose middle is before it.
  __device__ __forceinline__ int before(int item) const { return item >= iterations ? segments() : (item + (1 << digits) / 2) >> digits; }
  // The iteration whose thread block has the segment. The last segment may be shorter than half of the others.
  __device__ __forceinline__ int middle_of(int segment) const { return min((segment << digits) + ((1 << digits) - 1) / 2, iterations - 1); }
  __device__ __forceinline__ int begin_of(int segment) const { return min(segment << digits, iterations); }
};

// The walk of a thread block through its runs.
struct SegmentWalk : Walk {
  Cuts cuts;
  int first, upto;     // the run's segments: [first, upto)
  int iteration, end;       // its iterations: [iteration, end)

  // The work index of the tile's first iteration.
  __device__ __forceinline__ long long begin_of_tile() const { return at - Walk::iteration; }
  __device__ __forceinline__ bool whole_tile() const { return upto - first == cuts.segments(); }

  // Finds the next tile of which the thread block has segments, from the one at hand on.
  __device__ __forceinline__ void find_run(const Params &p) {
    for (; left > 0; Walk::next_tile(p)) {
      cuts = {iterations, segment_digits(iterations)};
      first = cuts.before(Walk::iteration);
      upto = cuts.before(stop);
      iteration = cuts.begin_of(first);
      end = cuts.begin_of(upto);
      if (first < upto) return;
    }
  }
  __device__ __forceinline__ void next(const Params &p) {
    Walk::next_tile(p);
    find_run(p);
  }
};
