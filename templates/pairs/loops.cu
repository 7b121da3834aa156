//| -- loops: `for` loops, one inside the other, around what body() prints. braces: it is more than one statement. A body that is text is
//| -- one statement, on the line of its loop.
//| local function loops(heads, braces, body, from)
//|   local at = from or 1
//|   if not heads or at > #heads then return body() end
//|   local last = at == #heads
#pragma unroll
//|   if last and type(body) == "string" then
for ($(heads[at])) $(body)
//|     return
//|   end
for ($(heads[at]))$(last and braces and " {" or "")
//|   indented(2, loops, heads, braces, body, at + 1)
//|   if last and braces then
}
//|   end
//| end
//| return loops
