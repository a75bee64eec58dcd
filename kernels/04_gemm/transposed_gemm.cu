// transposed_gemm: the tile of A lies transposed in shared memory, so both fragments are quads
//
// Launch: 256 threads a block, a 128x128 tile of C, grid (ceil(k/128), ceil(m/128)).
// Look at: four 128-bit shared loads feed 64 multiply-adds, where conflict_free_gemm needs ten
// loads. The price is the transposition: a quad along a row of A becomes four stores. The padding
// of four floats keeps quads aligned and sends the stores of a warp to 32 different banks.

#include "quads.cuh"

#define BM 128
#define BN 128
#define BK 8
#define TM 8
#define TN 8
#define THREADS (BM / TM * (BN / TN))
#define PITCH (BM + 4)

template <bool WIDE>
static __device__ __forceinline__ void multiply(const float* a, const float* b, float* c, int m,
                                                int n, int k, float* tile_a, float* tile_b) {
    const int t = threadIdx.x;
    const int thread_row = t / (BN / TN);
    const int thread_col = t % (BN / TN);
    const int first_row = blockIdx.y * BM;
    const int first_col = blockIdx.x * BN;
    float value[TM][TN] = {};

    for (int start = 0; start < n; start += BK) {
        // [load]
        const int row = t / 2, x = t % 2 * 4;  // a thread's quad of the tile of A
        const int y = t / 32, col = t % 32 * 4;  // and of the tile of B
        put_column(tile_a + x * PITCH + row, PITCH,
                   load_quad<WIDE>(a, m, n, first_row + row, start + x));
        put_quad(tile_b + y * BN + col, load_quad<WIDE>(b, n, k, start + y, first_col + col));
        // [/load]
        __syncthreads();
        // [outer_product]
#pragma unroll
        for (int x = 0; x < BK; ++x) {
            float4 fragment_a[2], fragment_b[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                fragment_a[half] = shared_quad(tile_a + x * PITCH + half * BM / 2 + 4 * thread_row);
                fragment_b[half] = shared_quad(tile_b + x * BN + half * BN / 2 + 4 * thread_col);
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
        // [/outer_product]
        __syncthreads();
    }

    // [epilogue]
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + i / 4 * (BM / 2) + 4 * thread_row + i % 4;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            store_quad<WIDE>(
                c, m, k, row, first_col + j / 4 * (BN / 2) + 4 * thread_col,
                make_float4(value[i][j], value[i][j + 1], value[i][j + 2], value[i][j + 3]));
        }
    }
    // [/epilogue]
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    transposed_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ __align__(16) float tile_a[BK * PITCH];
    __shared__ __align__(16) float tile_b[BK * BN];
    if (aligned(a, n) && aligned(b, k) && aligned(c, k)) {
        multiply<true>(a, b, c, m, n, k, tile_a, tile_b);
    } else {
        multiply<false>(a, b, c, m, n, k, tile_a, tile_b);
    }
}
