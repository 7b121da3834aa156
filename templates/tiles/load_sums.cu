// Four floats of global memory, or zeros. Without a branch: ptxas would put wgmma one after the other where a branch decides what the
// registers begin with.
__device__ __forceinline__ void load_sums(float *x, const float4 *from, bool there) {
  asm volatile("{\n.reg .pred there;\nsetp.ne.b32 there, %5, 0;\n"
               "mov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\nmov.b32 %3, 0;\n"
               "@there ld.global.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
               : "=&f"(x[0]), "=&f"(x[1]), "=&f"(x[2]), "=&f"(x[3]) : "l"(from), "r"((int)there) : "memory");
}
