-- softcap, and one more score of each row
cap = scalar(50, "float", 1e-6, 1e30)
sink_of = f32 "hq"
function score(s, b, h, i, j) return cap * tanh(s / cap) end
function sink(b, h, i) return sink_of[h] end
