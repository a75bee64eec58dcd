// vectorized_reduce_sum: as many blocks as fit the card, each striding over x in float4
//
// Launch: BLOCK threads a block, any number of blocks: as many as are resident at once.
// Sizes: any n >= 0 an int can hold, any alignment of x; sum[0] must be 0 before the launch.
// Look at: a thread has VECTORS loads of 16 bytes under way before it adds anything, and a block's
// tree and atomic are paid once a block, however long x is.
//
// VECTORS  float4 loads a thread and round (default 4)

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
#define WARP 32

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int distance = WARP / 2; distance >= 1; distance /= 2) {
        value += __shfl_down_sync(0xffffffff, value, distance);
    }
    return value;  // lane 0 has the sum
}

extern "C" __global__ void vectorized_reduce_sum(const float* x, float* sum, int n) {
    __shared__ float of_warp[BLOCK / WARP];
    int t = threadIdx.x;
    float value = 0.0f;
    // [stride]
    const int round = BLOCK * VECTORS;  // float4 a block and round
    bool aligned = (reinterpret_cast<unsigned long long>(x) & 15) == 0;
    const float4* x4 = reinterpret_cast<const float4*>(x);
    int rounds = aligned ? n / (4 * round) : 0;
    for (int r = blockIdx.x; r < rounds; r += gridDim.x) {
        float4 v[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            v[k] = x4[r * round + k * BLOCK + t];
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            value += (v[k].x + v[k].y) + (v[k].z + v[k].w);
        }
    }
    // What is left of a round, or everything where x does not start on 16 bytes.
    long long all = static_cast<long long>(gridDim.x) * BLOCK;
    for (long long i = rounds * 4LL * round + blockIdx.x * BLOCK + t; i < n; i += all) {
        value += x[i];
    }
    // [/stride]
    value = warp_sum(value);
    if (t % WARP == 0) {
        of_warp[t / WARP] = value;
    }
    __syncthreads();
    if (t < WARP) {
        value = warp_sum(t < BLOCK / WARP ? of_warp[t] : 0.0f);
    }
    if (t == 0) {
        atomicAdd(sum, value);
    }
}
