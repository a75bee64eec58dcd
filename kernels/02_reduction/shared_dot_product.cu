// shared_dot_product: the dot product of a and b, a product a thread and a tree a block
//
// Launch: BLOCK threads a block, one block for each BLOCK elements.
// Sizes: any n >= 0 below 2^31 - BLOCK; dot[0] must be 0 before the launch.
// Look at: a dot product is a reduction whose input is computed while it is loaded. Two arrays are
// read, so a thread has two loads under way where the sum has one.

#ifndef BLOCK
#define BLOCK 256
#endif

extern "C" __global__ void shared_dot_product(const float* a, const float* b, float* dot, int n) {
    __shared__ float work[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    work[t] = i < n ? a[i] * b[i] : 0.0f;
    for (int stride = BLOCK / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (t < stride) {
            work[t] += work[t + stride];
        }
    }
    if (t == 0) {
        atomicAdd(dot, work[0]);
    }
}
