// pipelined_scan: the single-pass scan with every wait behind other tiles, and sums published early
//
// Launch: CONSUMERS + 32 threads a block, one block an SM (at most one a tile), all of them resident
//         at once; dynamic shared memory for STAGES tiles of CONSUMERS * VECTORS * 4 elements.
// Sizes: any n from 0 to 2^31 - 1, any alignment. One launch at a time: the state is the module's.
// Look at: a step works on several tiles at once. Loads of later tiles are under way; consumers sum
// up tile s; the scout publishes the sum of tile s - 1 and only then looks back for tile s - LAG;
// consumers scan and store tile s - LAG - 1. What a look-back asks for was published LAG steps ago
// by everyone, so one trip ought to do. A slot of the ring is written and read by one thread, so
// the ring needs no barrier; the one barrier a step is for sums and offsets (and tickets).
// Progress: as lookback_scan, and besides, a block waits for tiles of every other block, so that all
// must get to run together. With TICKETS 1 they need not: a block works on its tiles in order, so
// the lowest unfinished tile of all is always being worked on.
//
// CONSUMERS  threads that load, scan and store (default 320)
// VECTORS    float4 of a tile a thread (default 9)
// STAGES     tiles in the ring, LAG + 2 to 14 (default 5)
// LAG        steps between summing a tile up and looking back for it, at least 1 (default 3)
// TICKETS    1: tiles are handed out in order; 0: block b works on b, b + gridDim.x, ... (default 0)
// STREAMING  1: evict-first stores (default 0)
// WINDOW, FIXED: see lookback.cuh; INTEGER: see scan.cuh

#ifndef CONSUMERS
#define CONSUMERS 320
#endif
#ifndef VECTORS
#define VECTORS 9
#endif
#ifndef STAGES
#define STAGES 5
#endif
#ifndef LAG
#define LAG 3
#endif
#ifndef TICKETS
#define TICKETS 0
#endif
#ifndef STREAMING
#define STREAMING 0
#endif

constexpr int TILE = CONSUMERS * VECTORS * 4;

#include "async_copy.cuh"
#include "lookback.cuh"
#include "tile_io.cuh"

constexpr int WARPS = CONSUMERS / WARP;
constexpr int AHEAD = STAGES - LAG - 1;     // steps between asking for a tile and summing it up
constexpr int STAGE = CONSUMERS * VECTORS;  // quads
constexpr int DRAWN = 16;  // a power of two, at least STAGES + 2: from drawing a ticket to storing

struct Shared {
    element totals[2][WARPS];   // sums of the warps of a tile
    element offsets[2][WARPS];  // what lies before each warp of a tile
#if TICKETS
    word tickets[DRAWN];
#endif
};

// The tile that this block sums up in a step, for steps from 0 on.
static __device__ __forceinline__ unsigned tile_of(int step, const Shared& shared) {
#if TICKETS
    return static_cast<unsigned>(shared.tickets[step % DRAWN]);
#else
    return blockIdx.x + step * gridDim.x;
#endif
}

// [sum_up]
// Of the tile that has arrived only the sum is needed yet; its elements stay in the ring.
static __device__ __forceinline__ void sum_up(unsigned tiles, int step, int warp, int lane,
                                              const quad* own, Shared& shared) {
    if (step < 0 || tile_of(step, shared) >= tiles) {
        return;
    }
    wait_for_copies_but<AHEAD - 1>();
    const quad* slots = own + step % STAGES * STAGE;
    element sum = 0;
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        quad q = slots[v * WARP];
        sum += (q.x + q.y) + (q.z + q.w);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        shared.totals[step & 1][warp] = sum;
    }
}
// [/sum_up]

// [consume]
// A step of the threads that move data. The next tile is asked for last, when this one has arrived
// and another has been stored: the fewer bytes queue up, the shorter the scout's trips should be.
static __device__ __forceinline__ void consume(const element* in, element* out, int n,
                                               unsigned tiles, int step, int warp, int lane,
                                               quad* own, Shared& shared) {
    sum_up(tiles, step, warp, lane, own, shared);
    int done = step - LAG - 1;
    int next = step + AHEAD;  // takes the place of the one that is done
    quad* slots = own + (next + STAGES) % STAGES * STAGE;
    if (done >= 0) {
        quad rows[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            rows[v] = slots[v * WARP];
        }
        scan_rows(rows, lane);
        store_rows(out, n, static_cast<int>(tile_of(done, shared)), warp, lane, rows,
                   shared.offsets[done & 1][warp]);
    }
    if (next >= 0) {
        fetch(in, n, tiles, tile_of(next, shared), warp, lane, slots);
    }
    commit_copies();
}
// [/consume]

// What the scout knows of the tiles it has published and not yet looked back for, the latest first.
struct Published {
    element own[LAG];
    element others[LAG];  // in lane w: what lies before warp w in its tile
};

// [scout]
// A step of the warp that looks back.
static __device__ __forceinline__ void scout(unsigned tiles, int step, int lane, unsigned launch,
                                             Published& published, Shared& shared) {
#pragma unroll
    for (int i = LAG - 1; i > 0; --i) {
        published.own[i] = published.own[i - 1];
        published.others[i] = published.others[i - 1];
    }
    if (step >= 1) {
        unsigned tile = tile_of(step - 1, shared);
        if (tile < tiles) {
            int at = (step - 1) & 1;
            element scanned = warp_scan(lane < WARPS ? shared.totals[at][lane] : element(0), lane);
            published.own[0] = last_lane(scanned);
            published.others[0] = exclusive_of(scanned, lane);
            if (lane == 0) {
                publish_own(tile, launch, published.own[0]);
            }
        }
    }
    if (step >= LAG) {
        unsigned tile = tile_of(step - LAG, shared);
        if (tile < tiles) {
            element prefix = look_back(tile, launch, published.own[LAG - 1], lane);
            if (lane < WARPS) {
                shared.offsets[(step - LAG) & 1][lane] = prefix + published.others[LAG - 1];
            }
        }
    }
}
// [/scout]

#if TICKETS
// A step of the scout, and the ticket of a later one: drawn before the look-back, waited for after it.
static __device__ __forceinline__ void scout_with_ticket(unsigned tiles, int step, int lane,
                                                         word& ticket, Published& published,
                                                         Shared& shared) {
    bool over = step > -AHEAD - 1 && static_cast<unsigned>(ticket) >= tiles;
    word next = ticket;
    if (!over && lane == 0) {
        next = draw();
    }
    scout(tiles, step, lane, static_cast<unsigned>(ticket >> 32), published, shared);
    if (!over && lane == 0) {
        close_if_last(next, tiles + gridDim.x);
    }
    ticket = __shfl_sync(ALL_LANES, next, 0);
    if (lane == 0) {
        shared.tickets[(step + AHEAD + 1) % DRAWN] = ticket;
    }
}
#endif

extern "C" __global__ void __launch_bounds__(CONSUMERS + WARP, 1)
    pipelined_scan(const element* in, element* out, int n) {
    extern __shared__ quad ring[];  // [STAGES][WARPS][VECTORS][WARP]
    __shared__ Shared shared;
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    quad* own = ring + warp * VECTORS * WARP + lane;
    unsigned tiles = static_cast<unsigned>((static_cast<long long>(n) + TILE - 1) / TILE);
    word ticket = 0;
    Published published = {};
#if !TICKETS
    // The scout needs the number of the launch; the last block to ask begins the next one's.
    if (threadIdx.x == CONSUMERS) {
        ticket = draw();
        close_if_last(ticket, gridDim.x);
    }
    ticket = __shfl_sync(ALL_LANES, ticket, 0);
#endif
    // [steps]
    for (int step = TICKETS ? -AHEAD - 1 : -AHEAD;; ++step) {
        if (warp < WARPS) {
            consume(in, out, n, tiles, step, warp, lane, own, shared);
        } else {
#if TICKETS
            scout_with_ticket(tiles, step, lane, ticket, published, shared);
#else
            scout(tiles, step, lane, static_cast<unsigned>(ticket >> 32), published, shared);
#endif
        }
        __syncthreads();
        int next = step - LAG;  // the tile to be stored next
        if (next >= 0 && tile_of(next, shared) >= tiles) {
            break;
        }
    }
    // [/steps]
}
