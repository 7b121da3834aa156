//| needs "l.masks"
//| local pr = include("pairs/pairs.lua").of(p, l)
//| local masks, program = l.masks, p.score
//| local row, column = masks.rows[1].node, masks.columns[1].node
//| local places, of_place = program.marks_by_b and "p.b" or "1", program.marks_by_b and "job / words" or "0"
// ---- where what the mask reads of rows changes ----
//| pr.mask_parts()
// A word has a bit for each of 32 rows. x: the row's value is not the value of the row before. y: the row's value is not that of the key
// with the same number, or less than that of the row before. Where y is 0 for all rows, those from one change to the next see keys from
// that one change to the next alone.
__device__ __forceinline__ uint2 run_word(const Params &p, const Sequence &sequence, const ScoreTile &t, int word, int lane) {
  const int i = word * 32 + lane, last = max(sequence.sq() - 1, 0);
  const $(masks.rows[1].type) value = mask_row$(row)(p, t, 0, min(i, last)), before = mask_row$(row)(p, t, 0, min(max(i - 1, 0), last));
  const bool same = value == mask_column$(column)(p, t, i), inside = i < sequence.sq();
  return make_uint2(__ballot_sync(~0u, inside && value != before), __ballot_sync(~0u, inside && !(same && before <= value)));
}
__device__ __forceinline__ void find_runs(const Params &p, int warp, int warps, int lane) {
  const int words = (p.sq + 31) / 32, jobs = $(places) * words;
  for (int job = (warp + warps / 2) % warps; job < jobs; job += warps) {
    const Sequence sequence = sequence_of(p, $(of_place));
    const uint2 word = run_word(p, sequence, score_tile(p, sequence, 0), job % words, lane);
    if (lane == 0) ((uint2 *)p.mask_runs)[job] = word;
  }
}
