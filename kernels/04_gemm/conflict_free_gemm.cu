// conflict_free_gemm: register_tiling_gemm with other columns for each thread, nothing else
//
// Launch: 256 threads a block, a 128x128 tile of C, grid (ceil(k/128), ceil(m/128)).
// Look at: a thread's eight columns are two strips of four, 4c and 64 + 4c. Sixteen threads beside
// each other then read 64 neighbouring floats in one 128-bit load, instead of sixteen quads eight
// floats apart. The pitch of tile_a is odd, so that its two rows lie in different banks.

#include "quads.cuh"

#define BM 128
#define BN 128
#define BK 8
#define TM 8
#define TN 8
#define THREADS (BM / TM * (BN / TN))

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    conflict_free_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float tile_a[BM][BK + 1];
    __shared__ __align__(16) float tile_b[BK][BN];
    const int t = threadIdx.x;
    const int thread_row = t / (BN / TN);
    const int thread_col = t % (BN / TN);
    const int first_row = blockIdx.y * BM;
    const int first_col = blockIdx.x * BN;
    float value[TM][TN] = {};

    for (int start = 0; start < n; start += BK) {
        for (int i = t; i < BM * BK; i += THREADS) {
            int row = first_row + i / BK;
            int x = start + i % BK;
            tile_a[i / BK][i % BK] = row < m && x < n ? a[static_cast<size_t>(row) * n + x] : 0.0f;
        }
        for (int i = t; i < BK * BN; i += THREADS) {
            int x = start + i / BN;
            int col = first_col + i % BN;
            tile_b[i / BN][i % BN] = x < n && col < k ? b[static_cast<size_t>(x) * k + col] : 0.0f;
        }
        __syncthreads();
        // [outer_product]
#pragma unroll
        for (int x = 0; x < BK; ++x) {
            const float4 left = shared_quad(&tile_b[x][4 * thread_col]);
            const float4 right = shared_quad(&tile_b[x][BN / 2 + 4 * thread_col]);
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                const float from_a = tile_a[thread_row * TM + i][x];
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    value[i][j] = fmaf(from_a, part(j < 4 ? left : right, j % 4), value[i][j]);
                }
            }
        }
        // [/outer_product]
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            int row = first_row + thread_row * TM + i;
            int col = first_col + j / 4 * (BN / 2) + 4 * thread_col + j % 4;
            if (row < m && col < k) {
                c[static_cast<size_t>(row) * k + col] = value[i][j];
            }
        }
    }
}
