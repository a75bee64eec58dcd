// staged_async: the same tile by cp.async, and the same wait
//
// Launch: THREADS threads a block, any number of blocks; static shared memory of a tile.
// Sizes: any n from 0 to 2^31 - 1, any alignment.
// Look at: the copy passes by the registers and is asynchronous, and nothing is done meanwhile: with
// one stage there is nothing to do before the tile is there. What is saved is a store to shared memory
// and the registers; the wait is as long as before.
//
// DEGREE, THREADS, VECTORS: see polynomial.cuh; HINTS: see vectors.cuh, stores only

#include "async_copy.cuh"
#include "polynomial.cuh"

// [staged_async]
extern "C" __global__ void __launch_bounds__(THREADS)
    staged_async(const float* x, float* y, int n) {
    __shared__ float4 stage[TILE_QUADS];
    int tiles = whole_tiles(x, y, n);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        long long first = static_cast<long long>(tile) * TILE_QUADS + threadIdx.x;
        float4* to = reinterpret_cast<float4*>(y) + first;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            copy_16(stage + threadIdx.x + v * THREADS, x + 4 * (first + v * THREADS), true);
        }
        commit_copies();
        wait_for_copies_but<0>();
        __syncthreads();
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            store_quad(to + v * THREADS, polynomial(stage[threadIdx.x + v * THREADS]));
        }
        __syncthreads();
    }
    last_elements(x, y, n, tiles);
}
// [/staged_async]
