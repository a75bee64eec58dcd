// warp_shuffle_scan: inclusive scan of each row; warps scan with shuffles and join once
//
// Launch: THREADS threads a block, one block a row; THREADS * VECTORS * 4 elements at a time.
// Sizes: any number of rows from 1 to 2^31 - 1, rows of any length and alignment.
// Look at: two barriers a round in place of one a step. Elements go from memory to registers and back;
// shared memory holds one number a warp.
//
// VECTORS  float4 a thread (default 1)

#ifndef THREADS
#define THREADS 256
#endif
#ifndef VECTORS
#define VECTORS 1
#endif
#define STREAMING 0

constexpr int TILE = THREADS * VECTORS * 4;

#include "tile_io.cuh"

constexpr int WARPS = THREADS / WARP;

extern "C" __global__ void __launch_bounds__(THREADS)
    warp_shuffle_scan(const float* in, float* out, int rows, int n) {
    __shared__ float totals[WARPS];
    const float* from = in + static_cast<long long>(blockIdx.x) * n;
    float* to = out + static_cast<long long>(blockIdx.x) * n;
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    float carry = 0.0f;
    for (int tile = 0; static_cast<long long>(tile) * TILE < n; ++tile) {
        // [warp_shuffle]
        float4 quads[VECTORS];
        load_rows(from, n, tile, warp, lane, quads);
        float total = scan_rows(quads, lane);
        if (lane == 0) {
            totals[warp] = total;
        }
        __syncthreads();
        // Every warp scans the totals for itself: waiting for one that does takes a barrier.
        float scanned = warp_scan(lane < WARPS ? totals[lane] : 0.0f, lane);
        float others = __shfl_sync(ALL_LANES, exclusive_of(scanned, lane), warp);
        store_rows(to, n, tile, warp, lane, quads, carry + others);
        // [/warp_shuffle]
        carry += last_lane(scanned);
        __syncthreads();  // before the next round's totals
    }
}
