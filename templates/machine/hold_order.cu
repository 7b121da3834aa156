// Nothing, but what computes `sums` stays before it, and what is stored. The compiler would move exponentials down to their use, after a
// wait for products that they should run beside, and a wait for products up into the stores that should run beside them. It moves
// nothing across the branches of a loop, here a wait for a phase that is over already, and it cannot know that no two sums, which are
// not negative, have the bits that would skip the wait.
__device__ __forceinline__ void hold_order(u32 sums, u32 barrier, u32 parity) {
  asm volatile("{\n"
               ".reg .pred done, never;\n"
               "setp.eq.u32 never, %2, 0xffedcba9;\n"
               "@never bra over;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, 10000000;\n"
               "@done bra.uni over;\n"
               "bra.uni again;\n"
               "over:\n"
               "}" ::"r"(barrier), "r"(parity), "r"(sums) : "memory");
}
