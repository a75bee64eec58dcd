// coarsened_reduce_sum: every thread adds up several elements before the tree begins
//
// Launch: BLOCK threads a block, one block for each segment of COARSE * BLOCK elements.
// Sizes: any n >= 0 below 2^31 - COARSE * BLOCK; sum[0] must be 0 before the launch.
// Look at: additions in registers need no barrier and leave no lane idle; trees, barriers and
// atomics become fewer in proportion. Neighbouring lanes still read neighbouring elements.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef COARSE
#define COARSE 16
#endif

extern "C" __global__ void coarsened_reduce_sum(const float* x, float* sum, int n) {
    __shared__ float work[BLOCK];
    int t = threadIdx.x;
    // [coarse]
    int i = blockIdx.x * COARSE * BLOCK + t;
    float value = 0.0f;
    for (int c = 0; c < COARSE; ++c, i += BLOCK) {
        value += i < n ? x[i] : 0.0f;
    }
    work[t] = value;
    // [/coarse]
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
