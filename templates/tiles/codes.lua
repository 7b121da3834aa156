-- Codes of few bits as kernels have them: which element of a row lies where once a word is unpacked. codes(name, cc) has a format's numbers.

local of = {}

-- Bytes of a row of n elements, whole blocks.
function of.row_bytes(f, n) return (n + f.block - 1) // f.block * f.block_bytes end

-- Registers, each two fp16, that a word of 4 bytes becomes.
function of.registers(f) return 16 // f.bits end

-- Of register r, half x (0, 1): the byte of the word, and which code of that byte. Bytes hold one code or two.
function of.place(f, r, x)
  if f.bits == 8 then return 2 * r + x, 0 end
  return r // 2 + 2 * x, r % 2
end

-- The element of a row whose code number `code` of byte `byte` of the row is; -1: there is none, a scale lies there.
function of.element(f, byte, code)
  local at = byte % f.block_bytes - f.codes_at
  if at < 0 then return -1 end
  if f.halves then return byte // f.block_bytes * f.block + at + code * f.block // 2 end
  return byte // f.block_bytes * f.block + at * (8 // f.bits) + code
end

return of
