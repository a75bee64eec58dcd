// segmented_reduce_sum: a tree a block, and one atomic addition a block to bring them together
//
// Launch: BLOCK threads a block, one block for each segment of 2 * BLOCK elements.
// Sizes: any n >= 0 below 2^31 - 2 * BLOCK; sum[0] must be 0 before the launch.
// Look at: the whole card works now. Blocks finish in any order and floating-point addition is not
// associative, so two runs may differ in the last bits.

#ifndef BLOCK
#define BLOCK 256
#endif

// [segmented_reduce_sum]
extern "C" __global__ void segmented_reduce_sum(const float* x, float* sum, int n) {
    __shared__ float work[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * 2 * BLOCK + t;
    work[t] = (i < n ? x[i] : 0.0f) + (i + BLOCK < n ? x[i + BLOCK] : 0.0f);
    for (int stride = BLOCK / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (t < stride) {
            work[t] += work[t + stride];
        }
    }
    if (t == 0) {
        atomicAdd(sum, work[0]);
    }
}
// [/segmented_reduce_sum]
