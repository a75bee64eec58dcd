// shuffle_reduce_block: a block's sum with the tree inside a warp done by shuffles
//
// Launch: one block of MAX_THREADS threads or fewer, a multiple of 32.
// Sizes: as simple_reduce_sum.
// Look at: a shuffle hands a register to another lane, without shared memory and without a
// barrier. Thirty-two warps leave thirty-two sums, which one warp adds up in the same way.

#define MAX_THREADS 1024
#define WARP 32

// [warp_sum]
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int distance = WARP / 2; distance >= 1; distance /= 2) {
        value += __shfl_down_sync(0xffffffff, value, distance);
    }
    return value;  // lane 0 has the sum
}
// [/warp_sum]

extern "C" __global__ void shuffle_reduce_block(const float* x, float* sum, int n) {
    __shared__ float of_warp[MAX_THREADS / WARP];
    float total = 0.0f;
    int i = threadIdx.x;
    for (int start = 0; start < n; start += 2 * blockDim.x) {
        int j = i + blockDim.x;
        // [block_sum]
        float value =
            (start + i < n ? x[start + i] : 0.0f) + (start + j < n ? x[start + j] : 0.0f);
        value = warp_sum(value);
        if (i % WARP == 0) {
            of_warp[i / WARP] = value;
        }
        __syncthreads();
        if (i < WARP) {
            value = warp_sum(i < blockDim.x / WARP ? of_warp[i] : 0.0f);
            total += value;
        }
        // [/block_sum]
        __syncthreads();  // nobody fills a place that the first warp still reads
    }
    if (i == 0) {
        sum[0] = total;
    }
}
