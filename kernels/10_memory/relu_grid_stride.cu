// relu_grid_stride: a fixed grid walks over the array, whatever its length
//
// Launch: 256 threads a block, any number of blocks. As many as are resident at once, which is
//         SMs * (blocks an SM, by the occupancy query), need no second wave.
// Sizes: any n up to 2^31 - 1; the index and the step are 64 bits wide, since the last step may go
//        past 2^31.
// Look at: how the time depends on the grid, and that UNROLL loads of a thread are under way at once
// only if the loop is unrolled with its loads first.
//
// UNROLL  elements a thread has under way (default 1: as the loop is usually written)

#ifndef UNROLL
#define UNROLL 1
#endif

// [relu_grid_stride]
extern "C" __global__ void relu_grid_stride(const float* x, float* y, int n) {
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
#if UNROLL > 1
    for (; i + (UNROLL - 1) * step < n; i += UNROLL * step) {
        float v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            v[u] = x[i + u * step];
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            y[i + u * step] = fmaxf(0.0f, v[u]);
        }
    }
#endif
#pragma unroll 1
    for (; i < n; i += step) {
        y[i] = fmaxf(0.0f, x[i]);
    }
}
// [/relu_grid_stride]
