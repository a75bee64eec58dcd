// lookback_scan: any number of elements in one pass; each block scans one tile and looks back
//
// Launch: THREADS threads a block, one block a tile of THREADS * VECTORS * 4 elements.
// Sizes: any n from 0 to 2^31 - 1, any alignment. One launch at a time: the state is the module's.
// Look at: the tile stays in registers from load to store, so memory sees 2 n elements and not 4 n.
// While the first warp looks back, the block waits; other blocks of the SM must fill the time.
// Progress: a block waits only for tiles with lower tickets, whose blocks have started. They must
// go on running beside it, which devices do but CUDA does not promise; they start in any order.
//
// VECTORS    float4 a thread (default 4)
// STREAMING  1: evict-first stores (default 1)
// WINDOW, FIXED: see lookback.cuh; INTEGER: see scan.cuh

#ifndef THREADS
#define THREADS 256
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
#ifndef STREAMING
#define STREAMING 1
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif

constexpr int TILE = THREADS * VECTORS * 4;

#include "lookback.cuh"
#include "tile_io.cuh"

constexpr int WARPS = THREADS / WARP;

// [lookback_scan]
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    lookback_scan(const element* in, element* out, int n) {
    __shared__ word ticket;
    __shared__ element totals[WARPS];
    __shared__ element offsets[WARPS];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    if (threadIdx.x == 0) {
        ticket = draw();
    }
    __syncthreads();
    int tile = static_cast<int>(static_cast<unsigned>(ticket));
    unsigned launch = static_cast<unsigned>(ticket >> 32);

    if (threadIdx.x == 0) {
        close_if_last(ticket, gridDim.x);
    }

    // Row v of a warp is 32 float4 side by side; a lane holds one of each row.
    quad rows[VECTORS];
    load_rows(in, n, tile, warp, lane, rows);
    element total = scan_rows(rows, lane);
    if (lane == 0) {
        totals[warp] = total;
    }
    __syncthreads();
    if (warp == 0) {
        element scanned = warp_scan(lane < WARPS ? totals[lane] : element(0), lane);
        element others = exclusive_of(scanned, lane);
        element own = last_lane(scanned);
        if (lane == 0) {
            publish_own(tile, launch, own);
        }
        element prefix = look_back(tile, launch, own, lane);
        if (lane < WARPS) {
            offsets[lane] = prefix + others;
        }
    }
    __syncthreads();
    store_rows(out, n, tile, warp, lane, rows, offsets[warp]);
}
// [/lookback_scan]
