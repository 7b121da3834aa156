function sink(b, h, i) return 0.5 * i - h end
