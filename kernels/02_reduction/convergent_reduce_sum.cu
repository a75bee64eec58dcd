// convergent_reduce_sum: the same tree, with the active threads kept together
//
// Launch: as simple_reduce_sum.
// Sizes: as simple_reduce_sum.
// Look at: in each step the first `stride` threads work. Whole warps drop out, so a warp diverges
// only in the last five steps; and neighbouring lanes touch neighbouring elements.

#define MAX_THREADS 1024

__device__ float convergent_work[2 * MAX_THREADS];  // x itself must not change

extern "C" __global__ void convergent_reduce_sum(const float* x, float* sum, int n) {
    float total = 0.0f;
    int i = threadIdx.x;
    for (int start = 0; start < n; start += 2 * blockDim.x) {
        int j = i + blockDim.x;
        convergent_work[i] = start + i < n ? x[start + i] : 0.0f;
        convergent_work[j] = start + j < n ? x[start + j] : 0.0f;
        __syncthreads();
        // [tree]
        for (int stride = blockDim.x; stride >= 1; stride /= 2) {
            if (i < stride) {
                convergent_work[i] += convergent_work[i + stride];
            }
            __syncthreads();
        }
        // [/tree]
        total += convergent_work[0];
        __syncthreads();  // everybody has read the root before thread 0 fills its leaf again
    }
    if (i == 0) {
        sum[0] = total;
    }
}
