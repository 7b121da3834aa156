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

-- Four registers of an array from number `first` on, as an operand of a product.
function asm.four(name, first)
  local out = {}
  for i = 0, 3 do out[i + 1] = ('"r"(%s[%d])'):format(name, (first or 0) + i) end
  return out
end

-- The shape of a product of 64 rows and so many columns.
function asm.shape(p, columns)
  local type = p.dtype == "fp16" and "f16" or "bf16"
  return ("m64n%dk16.f32.%s.%s"):format(columns, type, type)
end

-- One statement of several products on wgmma that add to the same registers; listed once for all of them, since each register that a
-- statement reads or writes takes the compiler as long as an instruction. What it is given:
--   to, n     the registers' name and their number; or a function of the number, the name of that one
--   shape     of the instruction, as asm.shape() has it
--   a, b      of each product the operands, as '"l"(q)'; in a those of asm.four(), where it comes from registers
--   tail      what follows the predicate
--   begins    whether the first product is all of the sum; or the text of a number that is 0 then
function asm.products(t)
  local n, read, lines = t.n, {}, {}
  local function operand(text)
    read[#read + 1] = text
    return "%" .. n + #read - 1
  end
  for i, a in ipairs(t.a) do
    local from
    if type(a) == "table" then
      local four = {}
      for j, text in ipairs(a) do four[j] = operand(text) end
      from = "{" .. table.concat(four, ", ") .. "}"
    else
      from = operand(a)
    end
    from = from .. ", " .. operand(t.b[i])
    if i == 1 and type(t.begins) == "string" then
      lines[#lines + 1] = '"setp.ne.b32 more, ' .. operand(t.begins) .. ', 0;\\n"'
    elseif i == 1 or i == 2 and t.begins then
      lines[#lines + 1] = '"setp.' .. (i == 1 and t.begins and "ne" or "eq") .. '.b32 more, 0, 0;\\n"'
    end
    lines[#lines + 1] = '"wgmma.mma_async.sync.aligned.' .. t.shape .. " {" .. asm.registers(n) .. '}, "\n      "' .. from .. ", more, " ..
      t.tail .. ';\\n"'
  end
  local out, to = t.begins == true and '"=f"' or '"+f"', {}
  for i = 0, n - 1 do
    local name = type(t.to) == "function" and t.to(i) or ("%s[%d]"):format(t.to, i)
    to[#to + 1] = ("%s(%s)%s"):format(out, name, i == n - 1 and "" or i % 8 == 7 and ",\n        " or ", ")
  end
  local inputs = {}
  for i, text in ipairs(read) do inputs[i] = text .. (i == #read and "" or i % 4 == 0 and ",\n        " or ", ") end
  return 'asm volatile("{\\n.reg .pred more;\\n"\n      ' .. table.concat(lines, "\n      ") .. '\n      "}"\n      : ' ..
    table.concat(to) .. "\n      : " .. table.concat(inputs) .. ");"
end

-- The same products in a statement each, between which the compiler may schedule.
function asm.products_one_by_one(t)
  local out = {}
  for i, a in ipairs(t.a) do
    out[i] = asm.products { to = t.to, n = t.n, shape = t.shape, a = { a }, b = { t.b[i] }, tail = t.tail, begins = t.begins and i == 1 }
  end
  return table.concat(out, "\n  ")
end

return asm
