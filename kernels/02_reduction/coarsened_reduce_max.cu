// coarsened_reduce_max: the largest element; the same kernel with another operation
//
// Launch: as coarsened_reduce_sum.
// Sizes: as coarsened_reduce_sum; max[0] must hold a number no element is below before the launch.
// Look at: what the tree needs is an associative operation with an identity. There is no atomic
// maximum of floats; the bits of floats, read as integers, are ordered well enough to make one.
// NaN: fmaxf passes over it.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef COARSE
#define COARSE 16
#endif
#define LOWEST __int_as_float(0xff800000)  // minus infinity, the identity

// [atomic_max]
// Bits of floats grow with positive values and fall with negative ones. Signed order is right when
// the value has no sign bit, reversed unsigned order when it has one (-0 included).
__device__ __forceinline__ void atomic_max(float* address, float value) {
    int bits = __float_as_int(value);
    if (bits >= 0) {
        atomicMax(reinterpret_cast<int*>(address), bits);
    } else {
        atomicMin(reinterpret_cast<unsigned*>(address), static_cast<unsigned>(bits));
    }
}
// [/atomic_max]

extern "C" __global__ void coarsened_reduce_max(const float* x, float* max, int n) {
    __shared__ float work[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * COARSE * BLOCK + t;
    float value = LOWEST;
    for (int c = 0; c < COARSE; ++c, i += BLOCK) {
        value = fmaxf(value, i < n ? x[i] : LOWEST);
    }
    work[t] = value;
    for (int stride = BLOCK / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (t < stride) {
            work[t] = fmaxf(work[t], work[t + stride]);
        }
    }
    if (t == 0) {
        atomic_max(max, work[0]);
    }
}
