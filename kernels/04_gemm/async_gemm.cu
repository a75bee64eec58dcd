// async_gemm: warp_tiled_gemm with the tiles copied by cp.async, STAGES of them in flight
//
// Launch: 256 threads a block, a 128x128 tile of C, grid (ceil(k/128), ceil(m/128)). Compute
//         capability 8.0.
// Look at: no registers and no stores between global and shared memory. B goes in 16-byte copies;
// A is transposed on its way, which only 4-byte copies can do: eight times as many instructions.

#include "quads.cuh"

#ifndef STAGES
#define STAGES 3
#endif
#define BM 128
#define BN 128
#define BK 8
#define WM 32  // the tile of a warp
#define WN 64
#define TM 8  // the tile of a thread, in strips of four rows and four columns
#define TN 8
#define THREADS (BM / TM * (BN / TN))
#define PITCH (BM + 4)
#define LANES_N (WN / TN)
#define LANES_M (WM / TM)

// Copies that go to shared memory on their own. A copy of size 0 reads nothing and writes zeros.
static __device__ __forceinline__ void copy_quad(float* to, const float* from, bool inside) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void copy_float(float* to, const float* from, bool inside) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 4 : 0)
                 : "memory");
}

static __device__ __forceinline__ void end_of_group() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// All groups but the newest STAGES - 2 have arrived.
static __device__ __forceinline__ void wait_for_oldest() {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
}

template <bool WIDE>
static __device__ __forceinline__ void multiply(const float* a, const float* b, float* c, int m,
                                                int n, int k, float* tile_a, float* tile_b) {
    const int t = threadIdx.x;
    // [lanes]
    const int lane = t % 32;
    const int warp_row = t / 32 / (BN / WN) * WM;
    const int warp_col = t / 32 % (BN / WN) * WN;
    // Four lanes down, eight across. Neighbours in lane number alternate between the directions.
    const int lane_m = lane / 2 % 2 + lane / 16 * 2;
    const int lane_n = lane % 2 + lane / 4 % 4 * 2;
    // [/lanes]
    const int row_in_tile = warp_row + 4 * lane_m;  // the first strip's first row
    const int col_in_tile = warp_col + 4 * lane_n;
    const int first_row = blockIdx.y * BM;
    const int first_col = blockIdx.x * BN;
    float value[TM][TN] = {};

    auto copy_tiles = [&](int stage, int start) {
        float* to_a = tile_a + stage * BK * PITCH;
        float* to_b = tile_b + stage * BK * BN;
        // [transposing_copy]
        // Eight lanes read 32 bytes of one row of A and write them down a column, float by float.
#pragma unroll
        for (int i = 0; i < BM * BK / THREADS; ++i) {
            const int x = t % BK, y = t / BK + i * (THREADS / BK), row = first_row + y;
            const bool inside = row < m && start + x < n;
            copy_float(to_a + x * PITCH + y,
                       inside ? a + static_cast<size_t>(row) * n + start + x : a, inside);
        }
        // [/transposing_copy]
        const int x = t / 32, y = t % 32 * 4, col = first_col + y;
        const float* row_b = b + static_cast<size_t>(start + x) * k;
        if (WIDE) {
            const bool inside = start + x < n && col < k;
            copy_quad(to_b + x * BN + y, inside ? row_b + col : b, inside);
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bool inside = start + x < n && col + j < k;
                copy_float(to_b + x * BN + y + j, inside ? row_b + col + j : b, inside);
            }
        }
        end_of_group();  // also where all of it is beyond the end, so that groups count tiles
    };
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        copy_tiles(stage, stage * BK);
    }
    int stage = 0;

    // [tile_loop]
    for (int start = 0; start < n; start += BK) {
        wait_for_oldest();
        __syncthreads();  // this tile is complete, and nobody still reads the one before
        copy_tiles((stage + STAGES - 1) % STAGES, start + (STAGES - 1) * BK);
        const float* from_a = tile_a + stage * BK * PITCH;
        const float* from_b = tile_b + stage * BK * BN;
#pragma unroll
        for (int x = 0; x < BK; ++x) {
            float4 fragment_a[2], fragment_b[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                fragment_a[half] =
                    shared_quad(from_a + x * PITCH + row_in_tile + half * 4 * LANES_M);
                fragment_b[half] = shared_quad(from_b + x * BN + col_in_tile + half * 4 * LANES_N);
            }
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    value[i][j] = fmaf(part(fragment_a[i / 4], i % 4),
                                       part(fragment_b[j / 4], j % 4), value[i][j]);
                }
            }
        }
        stage = (stage + 1) % STAGES;
    }
    // [/tile_loop]

    // [epilogue]
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + row_in_tile + i / 4 * 4 * LANES_M + i % 4;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            store_quad<WIDE>(
                c, m, k, row, first_col + col_in_tile + j * LANES_N,
                make_float4(value[i][j], value[i][j + 1], value[i][j + 2], value[i][j + 3]));
        }
    }
    // [/epilogue]
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    async_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ __align__(16) float tile_a[STAGES * BK * PITCH];
    __shared__ __align__(16) float tile_b[STAGES * BK * BN];
    if (aligned(a, n) && aligned(b, k) && aligned(c, k)) {
        multiply<true>(a, b, c, m, n, k, tile_a, tile_b);
    } else {
        multiply<false>(a, b, c, m, n, k, tile_a, tile_b);
    }
}
