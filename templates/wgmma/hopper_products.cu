//| needs "c.bc c.box l.begins? l.halves? l.joined? l.o_regs l.pingpong l.q_held? l.tail_barriers? l.v_in_k?"
// ---- the two products of a warpgroup: S = Q K^T and O += P V, and their ping-pong ----
//| local asm = include("machine/asm_operands.lua")
//| -- One statement for all products of a sum where the machine code stays the same; elsewhere it was not raced.
//| local same = l.v_in_k == nil and p.d == p.dv and (p.d == 96 or p.d == 128 or p.score and p.d < 128)
//| local products = same and asm.products or asm.products_one_by_one
//| local held = (l.q_held or 0) > 0
//| -- A descriptor so many steps and bytes further on, as an operand.
//| local function beyond(descriptor, steps, step, bytes)
//|   local terms = {}
//|   if steps > 0 then terms[1] = (steps > 1 and steps .. " * " or "") .. step end
//|   if bytes > 0 then terms[#terms + 1] = ("%d"):format(bytes) end
//|   local sum = table.concat(terms, " + ")
//|   return ('"l"(%s%s)'):format(descriptor, #terms == 0 and "" or (#terms > 1 and " + (%s) / 16" or " + %s / 16"):format(sum))
//| end
//| local function issue_scores(name, begins)
//|   if l.v_in_k or l.halves then
template <int FROM, int END>
//|   end
__device__ __forceinline__ void $(name)(float (&s)[NS], u32 q, u32 k$(held and ", const u32 (&q_held)[HELD * BOX / 16][4]" or "")) {
//|   if l.joined then
  const u64 a = descriptor_along_row(q, GROUP), b = descriptor_along_row(k, K_GROUP);
//|   else
  const u64 a = descriptor_along_row(q), b = descriptor_along_row(k);
//|   end
//|   if l.v_in_k or held then
//|     local from, to = "0", "(D + 15) / 16"
//|     if l.v_in_k or l.halves then from, to = "FROM * (BOX / 16)", "min(END * (BOX / 16), (D + 15) / 16)" end
#pragma unroll
  for (int i = $(from); i < $(to); i++) {
    const int box = i * 16 / BOX, in_box = i * 16 % BOX * 2;
    const u64 qa = a + (box * 64 * ROW + in_box) / 16, kb = b + (box * $(l.joined and "K_BOX" or "BC * ROW") + in_box) / 16;
    if (i == $(l.tail_barriers and "BOXES_V * (BOX / 16)" or "0"))
      $(begins and "wgmma_scores_first" or "wgmma_scores")(s, qa, kb);
//|     if held then
    else if (box >= BOXES - HELD)
      wgmma_scores_held(s, q_held[i - (BOXES - HELD) * BOX / 16], kb);
//|     end
    else
      wgmma_scores(s, qa, kb);
  }
//|   else
//|     local qa, kb = {}, {}
//|     for i = 0, (p.d + 15) // 16 - 1 do
//|       local box, in_box = i * 16 // c.box, i * 16 % c.box * 2
//|       qa[#qa + 1] = beyond("a", box, "64 * ROW", in_box)
//|       kb[#kb + 1] = beyond("b", box, l.joined and "K_BOX" or "BC * ROW", in_box)
//|     end
  $(products { to = "s", n = c.bc // 2, shape = asm.shape(p, c.bc), a = qa, b = kb, tail = "1, 1, 0, 0", begins = begins })
//|   end
}
//| end
//| local of = held and ", the last columns of Q from registers" or ""
// Issues S = Q K^T$(of)$((l.v_in_k or l.halves) and ", the boxes of columns [FROM, END) of it" or "").
//| issue_scores("issue_scores", true)
//| if l.begins then
// Issues S += Q K^T.
//| issue_scores("issue_scores_onto", false)
//| end
// Issues O += P V; P from registers.
__device__ __forceinline__ void issue_output(float (&o)[NO], const u32 (&a)[NS / 2], u32 v) {
//| if l.joined then
  const u64 b = descriptor_across_rows(v, V_BOX, V_GROUP);
//| else
  const u64 b = descriptor_across_rows(v, BC * ROW);
//| end
//| if l.o_regs <= 128 then
//|   local weights, vb = {}, {}
//|   for i = 0, c.bc // 16 - 1 do
//|     weights[#weights + 1] = asm.four("a", 4 * i)
//|     vb[#vb + 1] = beyond("b", i, l.joined and "2 * V_GROUP" or "16 * ROW", 0)
//|   end
  $(products { to = "o", n = l.o_regs, shape = asm.shape(p, l.o_regs * 2), a = weights, b = vb, tail = "1, 1, 1" })
//| else
//|   local key = l.joined and "2 * V_GROUP" or "16 * ROW"
#pragma unroll
  for (int i = 0; i < BC / 16; i++) {
    wgmma_output_left(o, a + 4 * i, b + i * $(key) / 16);
    wgmma_output_right(o, a + 4 * i, b + (192 / BOX * $(l.joined and "V_BOX" or "BC * ROW") + i * $(key)) / 16);
  }
//| end
}

//| if l.pingpong then
// Consumer warpgroups alternate: one may pass, then the next.
__device__ __forceinline__ void pingpong_wait(int wg) { named_wait(1 + wg, 256); }
__device__ __forceinline__ void pingpong_pass(int wg) { named_arrive(wg == WGS - 1 ? 1 : 2 + wg, 256); }
//| end
