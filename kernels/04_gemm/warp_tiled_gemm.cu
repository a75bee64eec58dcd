// warp_tiled_gemm: the threads of a warp lie in a 4x8 block of tiles instead of two rows of sixteen
//
// Launch: 256 threads a block, a 128x128 tile of C, grid (ceil(k/128), ceil(m/128)).
// Look at: what one step of a warp needs from shared memory: 32 floats of A and 64 of B, where two
// rows of sixteen threads need 16 and 128. And at the order of the lanes: a 128-bit load is served
// half a warp at a time if neighbouring lanes ask for the same quad, a quarter if not.

#include "quads.cuh"

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
    const int a_row = t / 2, a_x = t % 2 * 4;  // a thread's quad of the tile of A
    const int b_x = t / 32, b_col = t % 32 * 4;  // and of the tile of B

    for (int start = 0; start < n; start += BK) {
        put_column(tile_a + a_x * PITCH + a_row, PITCH,
                   load_quad<WIDE>(a, m, n, first_row + a_row, start + a_x));
        put_quad(tile_b + b_x * BN + b_col,
                 load_quad<WIDE>(b, n, k, start + b_x, first_col + b_col));
        __syncthreads();
        // [outer_product]
#pragma unroll
        for (int x = 0; x < BK; ++x) {
            float4 fragment_a[2], fragment_b[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                fragment_a[half] =
                    shared_quad(tile_a + x * PITCH + row_in_tile + half * 4 * LANES_M);
                fragment_b[half] = shared_quad(tile_b + x * BN + col_in_tile + half * 4 * LANES_N);
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
    warp_tiled_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ __align__(16) float tile_a[BK * PITCH];
    __shared__ __align__(16) float tile_b[BK * BN];
    if (aligned(a, n) && aligned(b, k) && aligned(c, k)) {
        multiply<true>(a, b, c, m, n, k, tile_a, tile_b);
    } else {
        multiply<false>(a, b, c, m, n, k, tile_a, tile_b);
    }
}
