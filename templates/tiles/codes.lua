-- Codes of few bits as kernels have them: which element of a row lies where once a word is unpacked. codes(name, cc) has a format's
-- numbers.

local of = {}

-- Bytes of a row of n elements, whole blocks.
function of.row_bytes(f, n) return (n + f.block - 1) // f.block * f.block_bytes end

-- Bits of a byte that a code has; its highest one may lie apart.
function of.bits(f) return f.bits == 8 and 8 or 4 end

-- Scales of a row of n elements; nil: it has none.
function of.scales(f, n) return f.has_scale and n // f.shared or nil end

-- Which of them a byte of the row has to do with: before the codes of a block, with the first of the block.
function of.scale_of(f, byte)
  local at = byte % f.block_bytes - f.codes_at
  return byte // f.block_bytes * f.scales + (at > 0 and at // (f.shared * of.bits(f) // 8) or 0)
end

-- Where scale number i of a row lies; what is said of blocks lies by their first byte.
function of.scale_at(f, i) return i // f.scales * f.block_bytes + f.scale_at + (f.scale_is_e4m3 and i % f.scales or 0) end
function of.block_at(f, i) return i // f.scales * f.block_bytes end

-- Registers, each two fp16, that a word of 4 bytes becomes.
function of.registers(f) return 16 // of.bits(f) end

-- Of register r, half x (0, 1): the byte of the word, and which code of that byte. Bytes hold one code or two.
function of.place(f, r, x)
  if f.bits == 8 then return 2 * r + x, 0 end
  return r // 2 + 2 * x, r % 2
end

-- The element of a row whose code number `code` of byte `byte` of the row is; -1: there is none, a scale lies there.
function of.element(f, byte, code)
  local at = byte % f.block_bytes - f.codes_at
  if at < 0 then return -1 end
  local first, half = byte // f.block_bytes * f.block, f.shared // 2
  if f.halves then return first + at // half * f.shared + at % half + code * half end
  return first + at * (8 // f.bits) + code
end

return of
