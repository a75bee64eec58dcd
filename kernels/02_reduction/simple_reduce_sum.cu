// simple_reduce_sum: the sum of x by a tree whose active threads drift apart
//
// Launch: one block of up to MAX_THREADS threads, a power of two. A segment of 2 * blockDim.x
//         elements is added up as a tree; what is longer is taken segment by segment.
// Sizes: any n >= 0 below 2^31 - 2 * MAX_THREADS; sum[0] is 0 for n = 0.
// Look at: which threads of a warp work in each step. After five steps every warp that still works
// does so for a single lane, and the tree lies in global memory.

#define MAX_THREADS 1024

__device__ float simple_work[2 * MAX_THREADS];  // x itself must not change

extern "C" __global__ void simple_reduce_sum(const float* x, float* sum, int n) {
    float total = 0.0f;
    int i = 2 * threadIdx.x;
    for (int start = 0; start < n; start += 2 * blockDim.x) {
        simple_work[i] = start + i < n ? x[start + i] : 0.0f;
        simple_work[i + 1] = start + i + 1 < n ? x[start + i + 1] : 0.0f;
        __syncthreads();
        // [tree]
        for (int stride = 1; stride <= blockDim.x; stride *= 2) {
            if (threadIdx.x % stride == 0) {
                simple_work[i] += simple_work[i + stride];
            }
            __syncthreads();
        }
        // [/tree]
        total += simple_work[0];
        __syncthreads();  // everybody has read the root before thread 0 fills its leaf again
    }
    if (threadIdx.x == 0) {
        sum[0] = total;
    }
}
