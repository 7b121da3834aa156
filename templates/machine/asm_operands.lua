-- asm_operands: what an asm statement with many registers lists, once outside and once inside its string.
local asm = {}

-- The operands 0 to n - 1, eight in a line: # in format stands for the number.
function asm.operands(n, format)
  local out = {}
  for i = 0, n - 1 do
    local text = string.gsub(format, "#", i .. "")
    out[#out + 1] = text .. (i == n - 1 and "" or i % 8 == 7 and ",\n        " or ", ")
  end
  return table.concat(out)
end

-- The same inside the string, sixteen in a line.
function asm.registers(n)
  local out = {}
  for i = 0, n - 1 do
    out[#out + 1] = "%" .. i .. (i == n - 1 and "" or i % 16 == 15 and ", \"\n      \"" or ", ")
  end
  return table.concat(out)
end

return asm
