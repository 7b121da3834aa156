-- The least multiple of `to` that is not below x.
return function(x, to) return (x + to - 1) // to * to end
