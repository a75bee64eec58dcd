// coarsened_dot_product: every thread adds up several products before the tree begins
//
// Launch: BLOCK threads a block, one block for each segment of COARSE * BLOCK elements.
// Sizes: any n >= 0 below 2^31 - COARSE * BLOCK; dot[0] must be 0 before the launch.
// Look at: what the compiler makes of `value += a[i] * b[i]`. SEPARATE 1 forbids it to fuse the
// multiplication and the addition.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef COARSE
#define COARSE 16
#endif
#ifndef SEPARATE
#define SEPARATE 0
#endif

extern "C" __global__ void coarsened_dot_product(const float* a, const float* b, float* dot,
                                                 int n) {
    __shared__ float work[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * COARSE * BLOCK + t;
    float value = 0.0f;
    // [products]
    for (int c = 0; c < COARSE; ++c, i += BLOCK) {
        if (i < n) {
#if SEPARATE
            value = __fadd_rn(value, __fmul_rn(a[i], b[i]));
#else
            value += a[i] * b[i];
#endif
        }
    }
    // [/products]
    work[t] = value;
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
