//| -- Reads of its includer: wait_sizes, the numbers of registers that a wait may hold back, two of which may be the same;
//| -- wait_operands, of asm_operands.lua.
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most N groups are under way. The registers are operands so that no use of them moves across.
//| for i, n in ipairs(wait_sizes) do
//|   if n ~= wait_sizes[i - 1] then
template <int N>
__device__ __forceinline__ void wgmma_wait(float (&x)[$(n)]) {
  asm volatile("wgmma.wait_group.sync.aligned %$(n);"
      : $(wait_operands(n, '"+f"(x[#])'))
      : "n"(N) : "memory");
}
//|   end
//| end
