// pipelined_scan: the single-pass scan with every wait behind other tiles, and sums published early
//
// Launch: CONSUMERS + 32 threads a block, one block an SM (at most one a tile); dynamic shared
//         memory for STAGES tiles of CONSUMERS * VECTORS * 4 elements.
// Sizes: any n from 0 to 2^31 - 1, any alignment. One launch at a time: the state is the module's.
// Look at: a step works on several tiles at once. Loads of later tiles are under way; consumers sum
// up tile s; the scout publishes the sum of tile s - 1 and only then looks back for tile s - LAG;
// consumers scan and store tile s - LAG - 1. What a look-back asks for was published LAG steps ago
// by everyone, so one trip ought to do. A slot of the ring is written and read by one thread, so
// the ring needs no barrier; the one barrier a step is for sums, offsets and tickets.
// Progress: as lookback_scan. A block works on its tiles in order, so the lowest unfinished tile of
// all is always being worked on. With NUMBERED 1 all blocks must be resident at once.
//
// CONSUMERS  threads that load, scan and store (default 320)
// VECTORS    float4 of a tile a thread (default 8)
// STAGES     tiles in the ring, LAG + 2 to 14 (default 5)
// LAG        steps between summing a tile up and looking back for it, at least 1 (default 3)
// NUMBERED   1: tiles go by the number of the block, without tickets (default 0)
// STREAMING  1: evict-first stores (default 1)
// WINDOW, FIXED: see lookback.cuh; INTEGER: see scan.cuh

#ifndef CONSUMERS
#define CONSUMERS 320
#endif
#ifndef VECTORS
#define VECTORS 8
#endif
#ifndef STAGES
#define STAGES 5
#endif
#ifndef LAG
#define LAG 3
#endif
#ifndef NUMBERED
#define NUMBERED 0
#endif
#ifndef STREAMING
#define STREAMING 1
#endif

constexpr int TILE = CONSUMERS * VECTORS * 4;

#include "async_copy.cuh"
#include "lookback.cuh"
#include "tile_io.cuh"

constexpr int WARPS = CONSUMERS / WARP;
constexpr int TICKETS = 16;  // a power of two, at least STAGES + 2: from drawing to storing
constexpr int AHEAD = STAGES - LAG - 1;     // steps between asking for a tile and summing it up
constexpr int STAGE = CONSUMERS * VECTORS;  // quads

struct Shared {
    element totals[2][WARPS];   // sums of the warps of a tile
    element offsets[2][WARPS];  // what lies before each warp of a tile
    word tickets[TICKETS];
};

// [sum_up]
// Of the tile that has arrived only the sum is needed yet; its elements stay in the ring.
static __device__ __forceinline__ void sum_up(unsigned tiles, int step, int warp, int lane,
                                              const quad* own, Shared& shared) {
    if (step < 0 || static_cast<unsigned>(shared.tickets[step % TICKETS]) >= tiles) {
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
        store_rows(out, n, static_cast<int>(shared.tickets[done % TICKETS]), warp, lane, rows,
                   shared.offsets[done & 1][warp]);
    }
    if (next >= 0) {
        fetch(in, n, tiles, shared.tickets[next % TICKETS], warp, lane, slots);
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
// A step of the warp that looks back. The ticket it asks for is needed only at the end.
static __device__ __forceinline__ void scout(unsigned tiles, int step, int lane, word& ticket,
                                             Published& published, Shared& shared) {
    unsigned launch = static_cast<unsigned>(ticket >> 32);
    bool over = step > -AHEAD - 1 && static_cast<unsigned>(ticket) >= tiles;
    word next = ticket;
#if NUMBERED
    unsigned number = blockIdx.x + static_cast<unsigned>(step + AHEAD + 1) * gridDim.x;
    next = static_cast<word>(step > -AHEAD - 1 ? launch : launch_number()) << 32 | number;
#endif
#pragma unroll
    for (int i = LAG - 1; i > 0; --i) {
        published.own[i] = published.own[i - 1];
        published.others[i] = published.others[i - 1];
    }
    if (step >= 1) {
        unsigned tile = static_cast<unsigned>(shared.tickets[(step - 1) % TICKETS]);
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
#if !NUMBERED
    if (!over && lane == 0) {
        next = draw();  // on its way while the scout looks back
    }
#endif
    if (step >= LAG) {
        unsigned tile = static_cast<unsigned>(shared.tickets[(step - LAG) % TICKETS]);
        if (tile < tiles) {
            element prefix = look_back(tile, launch, published.own[LAG - 1], lane);
            if (lane < WARPS) {
                shared.offsets[(step - LAG) & 1][lane] = prefix + published.others[LAG - 1];
            }
        }
    }
#if !NUMBERED
    if (!over && lane == 0) {
        close_if_last(next, tiles + gridDim.x);
    }
#endif
    ticket = __shfl_sync(ALL_LANES, next, 0);
    if (lane == 0) {
        shared.tickets[(step + AHEAD + 1) % TICKETS] = ticket;
    }
}
// [/scout]

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
    // [steps]
    for (int step = -AHEAD - 1;; ++step) {
        if (warp < WARPS) {
            consume(in, out, n, tiles, step, warp, lane, own, shared);
        } else {
            scout(tiles, step, lane, ticket, published, shared);
        }
        __syncthreads();
        int next = step - LAG;  // the tile to be stored next
        if (next >= 0 && static_cast<unsigned>(shared.tickets[next % TICKETS]) >= tiles) {
            break;
        }
    }
    // [/steps]
#if NUMBERED
    if (threadIdx.x == 0) {
        close_if_last(draw(), gridDim.x);  // by now every block knows the number of this launch
    }
#endif
}
