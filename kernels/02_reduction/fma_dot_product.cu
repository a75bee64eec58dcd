// fma_dot_product: the coarsened dot product with the fused multiply-add written out
//
// Launch: as coarsened_dot_product.
// Sizes: as coarsened_dot_product.
// Look at: its PTX and its result, beside coarsened_dot_product's. A fused multiply-add rounds
// once where a multiplication and an addition round twice.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef COARSE
#define COARSE 16
#endif

extern "C" __global__ void fma_dot_product(const float* a, const float* b, float* dot, int n) {
    __shared__ float work[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * COARSE * BLOCK + t;
    float value = 0.0f;
    // [products]
    for (int c = 0; c < COARSE; ++c, i += BLOCK) {
        if (i < n) {
            value = fmaf(a[i], b[i], value);
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
