// shuffle_reduce_sum: coarsened_reduce_sum with shuffles in place of the tree in shared memory
//
// Launch: BLOCK threads a block, one block for each segment of COARSE * BLOCK elements.
// Sizes: any n >= 0 below 2^31 - COARSE * BLOCK; sum[0] must be 0 before the launch.
// Look at: one barrier a block instead of log2(BLOCK), and one store and one load of shared memory
// a warp.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef COARSE
#define COARSE 16
#endif
#define WARP 32

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int distance = WARP / 2; distance >= 1; distance /= 2) {
        value += __shfl_down_sync(0xffffffff, value, distance);
    }
    return value;  // lane 0 has the sum
}

extern "C" __global__ void shuffle_reduce_sum(const float* x, float* sum, int n) {
    __shared__ float of_warp[BLOCK / WARP];
    int t = threadIdx.x;
    int i = blockIdx.x * COARSE * BLOCK + t;
    float value = 0.0f;
    for (int c = 0; c < COARSE; ++c, i += BLOCK) {
        value += i < n ? x[i] : 0.0f;
    }
    // [block_sum]
    value = warp_sum(value);
    if (t % WARP == 0) {
        of_warp[t / WARP] = value;
    }
    __syncthreads();
    if (t < WARP) {
        value = warp_sum(t < BLOCK / WARP ? of_warp[t] : 0.0f);
    }
    // [/block_sum]
    if (t == 0) {
        atomicAdd(sum, value);
    }
}
