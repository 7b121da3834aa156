//| needs "l.near_barriers"
// ---- parts of a tile whose blocks are a cluster: each adds up a share of the columns, out of the shared memory of all ----
// Where K and V were, what the others add up of a block's O, as its threads hold it, sixteen bytes of a thread at a time, and then m and l
// of each row. Each block adds up what all have at the same place: so many columns of each warp's rows, its own out of registers.
constexpr int NO_OWN = NO / CLUSTER;                              // registers of O per thread that are sums
constexpr int SMEM_SUMS = SMEM_K, SMEM_STATES = SMEM_SUMS + 64 * COLUMNS * 4;
__device__ __forceinline__ u32 parts_there(u32 smem) { return barrier(smem, $(l.near_barriers)); }
__device__ __forceinline__ u32 parts_read(u32 smem) { return barrier(smem, $(l.near_barriers + 1)); }

// All blocks see what the threads of this warp wrote before, and know that it has read what it read. By whole warps.
__device__ __forceinline__ void tell_cluster(u32 barrier, int lane) {
  __syncwarp();
  if (lane < CLUSTER) cluster_arrive(barrier, lane);
}
// Who loads K and V goes on to a block's tile `number` when all have read the parts of the one before. It takes part in the count, with
// keys or without: else the others could be a phase ahead, whose parity is that of the phase before.
__device__ __forceinline__ void producer_at_tile(u32 smem, int number) {
  if (number > 0) cluster_wait(parts_read(smem), number - 1 & 1);
  mbarrier_arrive(parts_read(smem));
}
// What block `rank` has at this address of its own.
__device__ __forceinline__ u32 address_at(u32 address, int rank) {
  u32 remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}
__device__ __forceinline__ float4 load_at(u32 remote) {
  float4 x;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(remote) : "memory");
  return x;
}
__device__ __forceinline__ float2 load_two_at(u32 remote) {
  float2 x;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(remote) : "memory");
  return x;
}

// The tile's number among those of this block says which phase of the barriers is its own.
// o, state: of this block's part, l each thread's own. sum, all: of all parts, of this block's columns, `l` in the first lane of a quad.
__device__ __forceinline__ void add_near_parts(u32 smem, int number, int wg, const float (&o)[NO], const RowState (&state)[2],
                                               float (&sum)[NO_OWN], RowState (&all)[2], float scale_log2) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp_row = threadIdx.x / 32 % 4 * 16;
  named_wait(9, 128 * CONSUMERS);  // both warpgroups are through with K and V
  if (number > 0) cluster_wait(parts_read(smem), number - 1 & 1);
  const u32 at = smem + SMEM_SUMS + wg * (NO / 4) * 2048 + threadIdx.x % 128 * 16;
  const int rank = cluster_rank();
#pragma unroll
  for (int n = 0; n < NO / 4; n++)
    if (n / (NO_OWN / 4) != rank)
      store_shared(at + n * 2048, make_uint4(__float_as_uint(o[4 * n]), __float_as_uint(o[4 * n + 1]), __float_as_uint(o[4 * n + 2]),
                                             __float_as_uint(o[4 * n + 3])));
  const u32 states = smem + SMEM_STATES + (warp_row + g) * 8;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float l = quad_sum(state[h].l);
    if (wg == 0 && t == 0)
      store_shared(states + h * 64, __float_as_uint(state[h].m)), store_shared(states + h * 64 + 4, __float_as_uint(l));
  }
  fence_async();  // copies write there next
  tell_cluster(parts_there(smem), lane);
  cluster_wait(parts_there(smem), number & 1);
  float2 of[CLUSTER][2];  // of this block, and of those after it in turn
#pragma unroll
  for (int j = 0; j < CLUSTER; j++)
#pragma unroll
    for (int h = 0; h < 2; h++) of[j][h] = load_two_at(address_at(states + h * 64, (rank + j) % CLUSTER));
  float weight[CLUSTER][2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float top = of[0][h].x, l = 0.f;
#pragma unroll
    for (int j = 1; j < CLUSTER; j++) top = fmaxf(top, of[j][h].x);
    const float shift = shift_of(top, scale_log2);
#pragma unroll
    for (int j = 0; j < CLUSTER; j++) {
      weight[j][h] = weight_of(of[j][h].x, scale_log2, shift);
      l = fmaf(weight[j][h], of[j][h].y, l);
    }
    all[h] = {top, t == 0 ? l : 0.f};
  }
#pragma unroll
  for (int n = 0; n < NO_OWN; n++) {
    float own = o[n];
#pragma unroll
    for (int j = 1; j < CLUSTER; j++) own = rank == j ? o[j * NO_OWN + n] : own;
    sum[n] = weight[0][n / 2 % 2] * own;
  }
  const u32 own = at + rank * (NO_OWN / 4 * 2048);
#pragma unroll
  for (int j = 1; j < CLUSTER; j++) {
    const u32 from = address_at(own, (rank + j) % CLUSTER);
#pragma unroll
    for (int n = 0; n < NO_OWN / 4; n++) {
      const float4 x = load_at(from + n * 2048);
      sum[4 * n] = fmaf(weight[j][0], x.x, sum[4 * n]), sum[4 * n + 1] = fmaf(weight[j][0], x.y, sum[4 * n + 1]);
      sum[4 * n + 2] = fmaf(weight[j][1], x.z, sum[4 * n + 2]), sum[4 * n + 3] = fmaf(weight[j][1], x.w, sum[4 * n + 3]);
    }
  }
  tell_cluster(parts_read(smem), lane);
}
