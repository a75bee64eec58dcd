// shared_reduce_sum: the convergent tree in shared memory
//
// Launch: one block of MAX_THREADS threads or any smaller power of two.
// Sizes: as simple_reduce_sum.
// Look at: global memory is read once an element. The first addition happens while loading, so
// the tree in shared memory is one step lower. BARRIER 0 leaves out the barrier between the steps:
// a race, wrong on purpose.

#define MAX_THREADS 1024
#ifndef BARRIER
#define BARRIER 1
#endif

extern "C" __global__ void shared_reduce_sum(const float* x, float* sum, int n) {
    __shared__ float work[MAX_THREADS];
    float total = 0.0f;
    int i = threadIdx.x;
    for (int start = 0; start < n; start += 2 * blockDim.x) {
        int j = i + blockDim.x;
        // [tree]
        work[i] = (start + i < n ? x[start + i] : 0.0f) + (start + j < n ? x[start + j] : 0.0f);
        for (int stride = blockDim.x / 2; stride >= 1; stride /= 2) {
#if BARRIER
            __syncthreads();
#endif
            if (i < stride) {
                work[i] += work[i + stride];
            }
        }
        // [/tree]
        __syncthreads();
        total += work[0];
        __syncthreads();  // everybody has read the root before thread 0 fills its leaf again
    }
    if (i == 0) {
        sum[0] = total;
    }
}
