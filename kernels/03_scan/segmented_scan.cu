// segmented_scan: any number of elements in three launches, as scans of many blocks used to be made
//
// Launch: segmented_scan with THREADS threads a block and a block for every SECTION elements; then
//         scan_block_sums with one block; then add_block_sums as the first.
// Sizes: any n from 0 to 2^31 - 1, any alignment. One scan at a time: the sums are the module's.
// Look at: the launches are the barrier between blocks. The price is a second trip through memory:
// what the first launch wrote the third reads and writes again, 4 n elements in place of 2 n.

#define THREADS 256
#define VECTORS 4
#define STREAMING 0

constexpr int TILE = THREADS * VECTORS * 4;

#include "tile_io.cuh"

constexpr int WARPS = THREADS / WARP;
constexpr int MAX_BLOCKS = static_cast<int>((1ull << 31) / TILE);

__device__ float block_sums[MAX_BLOCKS];

// Scans one tile whose first element follows ``carry``; returns the sum of the tile.
static __device__ __forceinline__ float scan_tile(const float* in, float* out, int n, int tile,
                                                  float carry) {
    __shared__ float totals[WARPS];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    float4 quads[VECTORS];
    load_rows(in, n, tile, warp, lane, quads);
    float total = scan_rows(quads, lane);
    if (lane == 0) {
        totals[warp] = total;
    }
    __syncthreads();
    float scanned = warp_scan(lane < WARPS ? totals[lane] : 0.0f, lane);
    float others = __shfl_sync(ALL_LANES, exclusive_of(scanned, lane), warp);
    store_rows(out, n, tile, warp, lane, quads, carry + others);
    __syncthreads();  // before the totals of another tile
    return last_lane(scanned);
}

// [three_passes]
// 1. Every block scans its own section, as if nothing lay before it.
extern "C" __global__ void __launch_bounds__(THREADS)
    segmented_scan(const float* in, float* out, int n) {
    float sum = scan_tile(in, out, n, blockIdx.x, 0.0f);
    if (threadIdx.x == 0) {
        block_sums[blockIdx.x] = sum;
    }
}

// 2. One block scans the sums of the sections, in place.
extern "C" __global__ void __launch_bounds__(THREADS) scan_block_sums(int n) {
    int count = static_cast<int>((static_cast<long long>(n) + TILE - 1) / TILE);
    float carry = 0.0f;
    for (int tile = 0; static_cast<long long>(tile) * TILE < count; ++tile) {
        carry += scan_tile(block_sums, block_sums, count, tile, carry);
    }
}

// 3. Every block adds what lies before its section.
extern "C" __global__ void __launch_bounds__(THREADS) add_block_sums(float* out, int n) {
    if (blockIdx.x == 0) {
        return;
    }
    float before = block_sums[blockIdx.x - 1];
    float4 quads[VECTORS];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    load_rows(out, n, blockIdx.x, warp, lane, quads);
    store_rows(out, n, blockIdx.x, warp, lane, quads, before);
}
// [/three_passes]
