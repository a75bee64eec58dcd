// pipelined_scan: the single-pass scan with every wait hidden behind another tile
//
// Launch: CONSUMERS + 32 threads a block, as many blocks as stay resident (at most one a tile);
//         dynamic shared memory for STAGES tiles of CONSUMERS * VECTORS * 4 elements.
// Sizes: any n from 0 to 2^31 - 1, any alignment. One launch at a time: the state is the module's.
// Look at: a step works on several tiles at once. Loads of later tiles are under way; consumers sum
// up tile s; the scout looks back for tile s - 1; consumers scan and store tile s - 2. A slot of the
// ring is written and read by one thread, so the ring needs no barrier; the one barrier a step is for
// sums, offsets and tickets.
// Progress: as lookback_scan. A block works on its tickets in order, so the lowest unfinished tile
// of all is always being worked on.
//
// CONSUMERS  threads that load, scan and store (default 512)
// VECTORS    float4 of a tile a thread (default 4)
// STAGES     tiles in the ring, at least 4 (default 6)
// RESIDENT   blocks an SM (default 1)
// STREAMING  1: evict-first stores (default 1)
// BULK       1: a warp's part of a tile is one bulk copy, counted in by a barrier of its own; 0: cp.async
// WINDOW, FIXED: see lookback.cuh; INTEGER: see scan.cuh

#ifndef CONSUMERS
#define CONSUMERS 512
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
#ifndef STAGES
#define STAGES 6
#endif
#ifndef RESIDENT
#define RESIDENT 1
#endif
#ifndef STREAMING
#define STREAMING 1
#endif
#ifndef BULK
#define BULK 0
#endif

constexpr int TILE = CONSUMERS * VECTORS * 4;

#include "lookback.cuh"
#include "tile_io.cuh"

constexpr int WARPS = CONSUMERS / WARP;
constexpr int TICKETS = STAGES + 2;  // from drawing one to storing its tile

struct Shared {
    element totals[2][WARPS];   // sums of the warps of a tile
    element offsets[2][WARPS];  // what lies before each warp of a tile
    int tickets[TICKETS];
#if BULK
    word arrived[STAGES][WARPS];
#endif
};

#if BULK
static __device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void copy_bulk(quad* to, const element* from, word* arrived) {
    constexpr int bytes = VECTORS * ROW * sizeof(element);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(arrived)),
                 "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(arrived))
        : "memory");
}

static __device__ __forceinline__ void await(word* arrived, int parity) {
    asm volatile(
        "{\n.reg .pred p;\n"
        "again%=:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@!p bra again%=;\n}" ::"r"(shared_address(arrived)),
        "r"(parity)
        : "memory");
}
#endif

static __device__ __forceinline__ void copy_16(quad* to, const element* from) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

static __device__ __forceinline__ void copy_4(element* to, const element* from, bool exists) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(exists ? 4 : 0)
                 : "memory");
}

// Start copying a thread's part of a tile into its slots.
static __device__ __forceinline__ void fetch(const element* in, int n, int tile, int warp, int lane,
                                             quad* slots, word* arrived) {
    if (whole(in, n, tile)) {
        const element* from = in + place_of(tile, warp, lane, 0);
#if BULK
        __syncwarp();  // the slots of all lanes have been read
        if (lane == 0) {
            copy_bulk(slots, from, arrived);
        }
#else
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            copy_16(slots + v * WARP, from + v * ROW);
        }
#endif
    } else {
        for (int v = 0; v < VECTORS; ++v) {
            long long i = place_of(tile, warp, lane, v);
            element* to = reinterpret_cast<element*>(slots + v * WARP);
            for (int e = 0; e < 4; ++e) {
                bool exists = i + e < n;
                copy_4(to + e, exists ? in + i + e : in, exists);
            }
        }
    }
}

// [consume]
// A step of the threads that move data. Of the tile that has arrived only the sums are needed yet.
static __device__ __forceinline__ void consume(const element* in, element* out, int n, int tiles,
                                               int step, int warp, int lane, quad* ring,
                                               Shared& shared) {
    constexpr int STAGE = VECTORS * CONSUMERS;
    quad* own = ring + warp * VECTORS * WARP + lane;
    if (step >= 0) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 3) : "memory");
        const quad* slots = own + step % STAGES * STAGE;
        element sum = 0;
        if (shared.tickets[step % TICKETS] < tiles) {
#if BULK
            if (whole(in, n, shared.tickets[step % TICKETS])) {
                await(&shared.arrived[step % STAGES][warp], step / STAGES & 1);
            }
#endif
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
    }
    if (step >= 2) {
        const quad* slots = own + (step - 2) % STAGES * STAGE;
        quad rows[VECTORS];
        element before[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            rows[v] = slots[v * WARP];
        }
        scan_rows(rows, before, lane);
        store_rows(out, n, shared.tickets[(step - 2) % TICKETS], warp, lane, rows, before,
                   shared.offsets[step & 1][warp]);
    }
    int next = step + STAGES - 2;
    if (next >= 0) {
        int tile = shared.tickets[next % TICKETS];
        if (tile < tiles) {
            fetch(in, n, tile, warp, lane, own + next % STAGES * STAGE,
#if BULK
                  &shared.arrived[next % STAGES][warp]
#else
                  nullptr
#endif
            );
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}
// [/consume]

// [scout]
// A step of the warp that looks back. The ticket it asks for is needed only at the end.
static __device__ __forceinline__ void scout(int tiles, int step, int lane, unsigned& launch,
                                             bool& over, Shared& shared) {
    word ticket = static_cast<word>(launch) << 32 | static_cast<unsigned>(tiles);
    if (!over && lane == 0) {
        ticket = draw(tiles + gridDim.x);
    }
    if (step >= 1) {
        int tile = shared.tickets[(step - 1) % TICKETS];
        if (tile < tiles) {
            int at = (step - 1) & 1;
            element scanned = warp_scan(lane < WARPS ? shared.totals[at][lane] : element(0), lane);
            element others = exclusive_of(scanned, lane);
            element prefix = look_back(tile, launch, last_lane(scanned), lane);
            if (lane < WARPS) {
                shared.offsets[at][lane] = prefix + others;
            }
        }
    }
    ticket = __shfl_sync(ALL_LANES, ticket, 0);
    launch = static_cast<unsigned>(ticket >> 32);
    over = static_cast<unsigned>(ticket) >= static_cast<unsigned>(tiles);
    if (lane == 0) {
        shared.tickets[(step + STAGES - 1) % TICKETS] = static_cast<int>(ticket);
    }
}
// [/scout]

extern "C" __global__ void __launch_bounds__(CONSUMERS + WARP, RESIDENT)
    pipelined_scan(const element* in, element* out, int n) {
    extern __shared__ quad ring[];  // [STAGES][WARPS][VECTORS][WARP]
    __shared__ Shared shared;
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    int tiles = static_cast<int>((static_cast<long long>(n) + TILE - 1) / TILE);
    unsigned launch = 0;
    bool over = false;
#if BULK
    for (int i = threadIdx.x; i < STAGES * WARPS; i += blockDim.x) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
            shared_address(&shared.arrived[i / WARPS][i % WARPS])));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
#endif
    // [steps]
    for (int step = 1 - STAGES;; ++step) {
        if (warp < WARPS) {
            consume(in, out, n, tiles, step, warp, lane, ring, shared);
        } else {
            scout(tiles, step, lane, launch, over, shared);
        }
        __syncthreads();
        if (step >= 1 && shared.tickets[(step - 1) % TICKETS] >= tiles) {
            break;  // the tile to be stored next does not exist
        }
    }
    // [/steps]
}
