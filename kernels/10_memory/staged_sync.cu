// staged_sync: a tile through registers into shared memory, a barrier, then out of it
//
// Launch: THREADS threads a block, any number of blocks; static shared memory of a tile.
// Sizes: any n from 0 to 2^31 - 1, any alignment.
// Look at: between the barriers a block either loads or computes, never both. Only other blocks of the
// SM can fill the wait, so it depends on how many are resident.
//
// DIRECT  1: no shared memory, the tile stays in registers: what staging has to be compared with
// DEGREE, THREADS, VECTORS: see polynomial.cuh; HINTS: see vectors.cuh

#include "polynomial.cuh"

#ifndef DIRECT
#define DIRECT 0
#endif

// [staged_sync]
extern "C" __global__ void __launch_bounds__(THREADS)
    staged_sync(const float* x, float* y, int n) {
#if !DIRECT
    __shared__ float4 stage[TILE_QUADS];
#endif
    int tiles = whole_tiles(x, y, n);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        long long first = static_cast<long long>(tile) * TILE_QUADS + threadIdx.x;
        const float4* from = reinterpret_cast<const float4*>(x) + first;
        float4* to = reinterpret_cast<float4*>(y) + first;
        float4 q[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            q[v] = load_quad(from + v * THREADS);
        }
#if DIRECT
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            store_quad(to + v * THREADS, polynomial(q[v]));
        }
#else
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            stage[threadIdx.x + v * THREADS] = q[v];
        }
        __syncthreads();  // the tile is there, for whoever needs it
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            store_quad(to + v * THREADS, polynomial(stage[threadIdx.x + v * THREADS]));
        }
        __syncthreads();  // and is done with
#endif
    }
    last_elements(x, y, n, tiles);
}
// [/staged_sync]
