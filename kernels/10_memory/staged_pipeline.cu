// staged_pipeline: STAGES tiles in a ring, the next ones on their way while one is worked on
//
// Launch: THREADS threads a block, as many blocks as are resident at once, or with CHUNK as many as have
//         tiles; dynamic shared memory for STAGES tiles of THREADS * VECTORS float4.
// Sizes: any n from 0 to 2^31 - 1, any alignment.
// Look at: STAGES - 1 tiles are under way whatever the block is doing. Where a thread reads only what it
// copied itself, its own wait is enough and no barrier keeps warps in step (SHARED 0).
//
// STAGES  tiles in the ring, at least 2 (default 4)
// SHARED  1: other threads may read a tile, so a barrier a tile (default 1)
// DEGREE, THREADS, VECTORS, CHUNK: see polynomial.cuh; HINTS: see vectors.cuh, stores only

#include "async_copy.cuh"
#include "polynomial.cuh"

#ifndef STAGES
#define STAGES 4
#endif
#ifndef SHARED
#define SHARED 1
#endif

// A thread's part of a tile, into its slots of a stage. The group is closed even where there is no
// tile: then what is waited for is counted in the same way up to the end.
static __device__ __forceinline__ void fetch(const float* x, long long end, long long tile,
                                             float4* stage) {
    if (tile < end) {
        const float* from = x + 4 * (tile * TILE_QUADS + threadIdx.x);
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            copy_16(stage + threadIdx.x + v * THREADS, from + 4 * v * THREADS, true);
        }
    }
    commit_copies();
}

// [staged_pipeline]
extern "C" __global__ void __launch_bounds__(THREADS)
    staged_pipeline(const float* x, float* y, int n) {
    extern __shared__ float4 ring[];  // [STAGES][TILE_QUADS]
    int tiles = whole_tiles(x, y, n);
    Walk walk = walk_of(tiles);
    long long next = walk.first;
    for (int s = 0; s < STAGES - 1; ++s, next += walk.step) {
        fetch(x, walk.end, next, ring + s * TILE_QUADS);
    }
    int filled = STAGES - 1;
    int stage = 0;
    for (long long tile = walk.first; tile < walk.end; tile += walk.step, next += walk.step) {
        wait_for_copies_but<STAGES - 2>();
#if SHARED
        __syncthreads();  // this tile is there for everyone, and the one before is done with
#endif
        fetch(x, walk.end, next, ring + filled * TILE_QUADS);
        const float4* q = ring + stage * TILE_QUADS + threadIdx.x;
        float4* to = reinterpret_cast<float4*>(y) + tile * TILE_QUADS + threadIdx.x;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            store_quad(to + v * THREADS, polynomial(q[v * THREADS]));
        }
        filled = filled + 1 == STAGES ? 0 : filled + 1;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    last_elements(x, y, n, tiles);
}
// [/staged_pipeline]
