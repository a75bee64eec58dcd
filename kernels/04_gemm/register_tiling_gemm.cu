// register_tiling_gemm: a 128x128 tile of C a block, an 8x8 tile a thread, as published
//
// Launch: 256 threads a block, grid (ceil(k/128), ceil(m/128)).
// Look at: sixteen shared reads feed 64 multiply-adds, but which banks do a warp's reads fall on?
// A warp is two rows of sixteen threads. Both rows of tile_a are 64 words apart: one bank. The
// sixteen columns of tile_b start 8 words apart: four banks.
//
// UNROLL  1: the loop over a tile stays a loop, as the compiler leaves it; 8: unrolled
// PAD_A   added to the pitch of tile_a; 1 takes its two rows to different banks
// PAD_B   added to the pitch of tile_b; all lanes read one row of it, so no pitch can help

#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef PAD_A
#define PAD_A 0
#endif
#ifndef PAD_B
#define PAD_B 0
#endif
#define BM 128
#define BN 128
#define BK 8
#define TM 8
#define TN 8
#define THREADS (BM / TM * (BN / TN))

extern "C" __global__ void register_tiling_gemm(const float* a, const float* b, float* c, int m,
                                                int n, int k) {
    // [tiles]
    __shared__ float tile_a[BM][BK + PAD_A];
    __shared__ float tile_b[BK][BN + PAD_B];
    // [/tiles]
    const int t = threadIdx.x;
    const int thread_row = t / (BN / TN);
    const int thread_col = t % (BN / TN);
    const int first_row = blockIdx.y * BM;
    const int first_col = blockIdx.x * BN;
    float value[TM][TN] = {};
    float fragment_a[TM];
    float fragment_b[TN];
    constexpr int unroll = UNROLL;

    for (int start = 0; start < n; start += BK) {
        // [load]
        for (int i = t; i < BM * BK; i += THREADS) {
            int row = first_row + i / BK;
            int x = start + i % BK;
            tile_a[i / BK][i % BK] =
                row < m && x < n ? a[static_cast<size_t>(row) * n + x] : 0.0f;
        }
        for (int i = t; i < BK * BN; i += THREADS) {
            int x = start + i / BN;
            int col = first_col + i % BN;
            tile_b[i / BN][i % BN] =
                x < n && col < k ? b[static_cast<size_t>(x) * k + col] : 0.0f;
        }
        // [/load]
        __syncthreads();
        // [outer_product]
#pragma unroll unroll
        for (int x = 0; x < BK; ++x) {
            for (int i = 0; i < TM; ++i) {
                fragment_a[i] = tile_a[thread_row * TM + i][x];
            }
            for (int j = 0; j < TN; ++j) {
                fragment_b[j] = tile_b[x][thread_col * TN + j];
            }
            for (int i = 0; i < TM; ++i) {
                for (int j = 0; j < TN; ++j) {
                    value[i][j] = fmaf(fragment_a[i], fragment_b[j], value[i][j]);
                }
            }
        }
        // [/outer_product]
        __syncthreads();
    }

    // [epilogue]
    for (int i = 0; i < TM; ++i) {
        for (int j = 0; j < TN; ++j) {
            int row = first_row + thread_row * TM + i;
            int col = first_col + thread_col * TN + j;
            if (row < m && col < k) {
                c[static_cast<size_t>(row) * k + col] = value[i][j];
            }
        }
    }
    // [/epilogue]
}
