-- blocks of 128 queries and 128 keys that are seen, or are not
blk = u8 "b hq sq/128 sk/128"
function mask(b, h, i, j) return blk[b][h][i // 128][j // 128] ~= 0 end
