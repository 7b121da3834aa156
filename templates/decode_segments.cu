// ---- segments: cuts that follow from a sequence alone ----
// The turns of a tile are cut into segments, whose size follows from the tile's own number of turns: each fourfold of the keys doubles both
// the size of a segment and how many there are, so that short tiles meet many thread blocks and long ones few ends of segments. Each
// segment is computed from a fresh state, and the parts of the segments are added up in their order, always by the same operations (decode_fold.cu). So the bits of a
// sequence depend neither on the thread blocks that took its segments nor on what else is in the batch.
// A thread block takes the segments whose middle turns lie in its share of the line.

// The thread block's way through the segments of its share.
struct SegmentWalk : Walk {
  int size, segments;  // turns of a segment of the tile; segments of it
  int first, upto;     // the thread block's: [first, upto)
  int segment;         // the one at hand
  int turn, end;       // its turns: [turn, end)

  __device__ __forceinline__ SegmentWalk(const Params &p, const Walk &start) : Walk(start) { settle(p); }

  // Segments in front of a place of the tile: those whose middle is.
  __device__ __forceinline__ int segments_before(int place) const { return place >= turns ? segments : (place + size / 2) / size; }
  // The turn that decides whose a segment is. The last one may be shorter than half of the others.
  __device__ __forceinline__ int middle_of(int segment) const { return min(segment * size + (size - 1) / 2, turns - 1); }
  // The place of the tile's first turn on the line.
  __device__ __forceinline__ long long begin_of_tile() const { return at - Walk::turn; }
  __device__ __forceinline__ bool whole_tile() const { return upto - first == segments; }

  // The next tile of which the thread block has segments, from the one at hand on.
  __device__ __forceinline__ void settle(const Params &p) {
    for (; left > 0; Walk::next_tile(p)) {
      size = segment_of(turns);
      segments = (turns + size - 1) / size;
      first = segments_before(Walk::turn);
      upto = segments_before(stop);
      if (first < upto) {
        take_segment(first);
        return;
      }
    }
  }
  __device__ __forceinline__ void take_segment(int index) {
    segment = index;
    turn = index * size;
    end = min(turn + size, turns);
  }
  __device__ __forceinline__ void next(const Params &p) {
    if (segment + 1 < upto) {
      take_segment(segment + 1);
    } else {
      Walk::next_tile(p);
      settle(p);
    }
  }
};
