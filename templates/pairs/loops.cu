//| -- loops: `for` loops, one inside the other, around what body() prints. braces: it is more than one statement.
//| local function loops(heads, braces, body, from)
//|   local at = from or 1
//|   if not heads or at > #heads then return body() end
//|   local brace = braces and at == #heads
#pragma unroll
for ($(heads[at]))$(brace and " {" or "")
//|   indented(2, loops, heads, braces, body, at + 1)
//|   if brace then
}
//|   end
//| end
//| return loops
