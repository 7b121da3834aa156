-- keys of each sequence from one on, up to another, which is left out
first = i32 "b"
past = i32 "b"
function mask(b, h, i, j) return first[b] <= j and j < past[b] end
