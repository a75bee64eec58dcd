// staged_bulk: the ring of tiles, filled by bulk copies that one thread asks for
//
// Launch: THREADS threads a block, as many blocks as are resident at once, or with CHUNK as many as have
//         tiles; dynamic shared memory for STAGES tiles of THREADS * VECTORS float4. Compute
//         capability 9.0.
// Sizes: any n from 0 to 2^31 - 1, any alignment: addresses and sizes of bulk copies are multiples of 16
//        bytes, which whole tiles of aligned arrays are; the rest goes by threads.
// Look at: no thread computes addresses or waits for its own copies: an mbarrier a stage says that the
// bytes are there, by a parity that turns every time round. With BULK_STORE the results leave the same
// way, from where the tile lay, and a stage is filled again only when its store has read it; so that
// nobody waits for the latest store, the tiles under way are one fewer.
//
// STAGES      tiles in the ring, at least 2, with BULK_STORE 3 (default 4)
// BULK_STORE  1: results are written back into the stage and leave by a bulk copy (default 0)
// DEGREE, THREADS, VECTORS, CHUNK: see polynomial.cuh; HINTS: see vectors.cuh, stores only

#include "bulk_copy.cuh"
#include "polynomial.cuh"

#ifndef STAGES
#define STAGES 4
#endif
#ifndef BULK_STORE
#define BULK_STORE 0
#endif

constexpr unsigned TILE_BYTES = TILE * sizeof(float);
constexpr int AHEAD = STAGES - 1 - BULK_STORE;  // tiles under way beside the one that is worked on

// [work]
static __device__ __forceinline__ void work(float4* stage, float* y, long long tile) {
#if BULK_STORE
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        stage[threadIdx.x + v * THREADS] = polynomial(stage[threadIdx.x + v * THREADS]);
    }
    publish_tile();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(y + tile * TILE, stage, TILE_BYTES);
    }
#else
    float4* to = reinterpret_cast<float4*>(y) + tile * TILE_QUADS + threadIdx.x;
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        store_quad(to + v * THREADS, polynomial(stage[threadIdx.x + v * THREADS]));
    }
    __syncthreads();
#endif
}
// [/work]

// [staged_bulk]
extern "C" __global__ void __launch_bounds__(THREADS)
    staged_bulk(const float* x, float* y, int n) {
    extern __shared__ __align__(128) float4 ring[];  // [STAGES][TILE_QUADS]
    __shared__ barrier arrived[STAGES];
    int tiles = whole_tiles(x, y, n);
    Walk walk = walk_of(tiles);
    long long next = walk.first;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            init_barrier(arrived + s, 1);
        }
        publish_barriers();
        for (int s = 0; s < AHEAD; ++s, next += walk.step) {
            if (next < walk.end) {
                bulk_load(ring + s * TILE_QUADS, x + next * TILE, TILE_BYTES, arrived + s);
            }
        }
    }
    __syncthreads();
    int filled = AHEAD;
    int stage = 0;
    unsigned parity = 0;
    for (long long tile = walk.first; tile < walk.end; tile += walk.step, next += walk.step) {
        // Everyone is behind the barrier of the tile before, or of the one before that, whose stage is
        // the next to be filled.
        if (threadIdx.x == 0 && next < walk.end) {
            wait_for_reads_but<BULK_STORE>();  // its store has read it
            bulk_load(ring + filled * TILE_QUADS, x + next * TILE, TILE_BYTES, arrived + filled);
        }
        wait_for(arrived + stage, parity);
        work(ring + stage * TILE_QUADS, y, tile);
        filled = filled + 1 == STAGES ? 0 : filled + 1;
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    last_elements(x, y, n, tiles);
    // Shared memory outlives the block only as long as its threads: stores have to have read it.
    if (threadIdx.x == 0) {
        wait_for_reads_but<0>();
    }
}
// [/staged_bulk]
