// ---- segments: cuts that follow from a sequence alone ----
// The turns of a tile are cut into segments, whose size follows from the tile's own number of turns: each fourfold of the keys doubles both
// the size of a segment and how many there are, so that short tiles meet many thread blocks and long ones few ends of segments. Each
// segment is computed from a fresh state. The parts of the segments are added up in their order, always by the same operations
// (decode_fold.cu). So the bits of a sequence depend neither on the thread blocks that took its segments nor on what else is in the batch.
// A thread block takes the segments whose middle turns lie in its share of the line. They are its run of the tile: one behind the other,
// with the same Q, and copies of K and V go on across their borders.

__device__ __forceinline__ int bits_of(int x) { return 32 - __clz(x); }

// Binary digits of the turns of a segment behind the first: sizes are powers of two, so that nothing is divided by them.
__device__ __forceinline__ int segment_digits(int turns) {
  const int last = max(turns, 1) - 1;
  return SEGMENT_DIGITS + max((bits_of(last >> (SEGMENT_DIGITS + SEGMENTS_DIGITS - 3)) + 1) / 2,
                              bits_of(last >> (SEGMENT_DIGITS + SEGMENTS_DIGITS)));
}

// How a tile of so many turns is cut.
struct Cuts {
  int turns, digits;
  __device__ __forceinline__ int segments() const { return (turns + (1 << digits) - 1) >> digits; }
  // Segments in front of a place of the tile: those whose middle is.
  __device__ __forceinline__ int before(int place) const { return place >= turns ? segments() : (place + (1 << digits) / 2) >> digits; }
  // The turn that decides whose a segment is. The last one may be shorter than half of the others.
  __device__ __forceinline__ int middle_of(int segment) const { return min((segment << digits) + ((1 << digits) - 1) / 2, turns - 1); }
  __device__ __forceinline__ int begin_of(int segment) const { return min(segment << digits, turns); }
};

// The thread block's way through its runs.
struct SegmentWalk : Walk {
  Cuts cuts;
  int first, upto;     // the run's segments: [first, upto)
  int turn, end;       // its turns: [turn, end)

  // The place of the tile's first turn on the line.
  __device__ __forceinline__ long long begin_of_tile() const { return at - Walk::turn; }
  __device__ __forceinline__ bool whole_tile() const { return upto - first == cuts.segments(); }

  // The next tile of which the thread block has segments, from the one at hand on.
  __device__ __forceinline__ void settle(const Params &p) {
    for (; left > 0; Walk::next_tile(p)) {
      cuts = {turns, segment_digits(turns)};
      first = cuts.before(Walk::turn);
      upto = cuts.before(stop);
      turn = cuts.begin_of(first);
      end = cuts.begin_of(upto);
      if (first < upto) return;
    }
  }
  __device__ __forceinline__ void next(const Params &p) {
    Walk::next_tile(p);
    settle(p);
  }
};
