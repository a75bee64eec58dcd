// coarse_gemm: four elements of C a thread, in one row, 32 columns apart
//
// Launch: 32x32 threads a block, a 32 x 128 tile of C, grid (ceil(k/128), ceil(m/32)).
// Look at: a tile of A is fetched from global memory once for four tiles of B. Does an element of
// A stay in a register for four multiply-adds, too? That depends on where the loop over the four
// columns stands:
//
// KEEP_A  0: outside the loop over the tile, as published: A is read from shared memory again for
//            every column, two shared reads a multiply-add, as in tiled_gemm
//         1: inside it, with four tiles of B at hand: five shared reads for four multiply-adds

#ifndef KEEP_A
#define KEEP_A 0
#endif
#define TILE 32
#define COARSE_FACTOR 4
#define B_TILES (KEEP_A ? COARSE_FACTOR : 1)

extern "C" __global__ void coarse_gemm(const float* a, const float* b, float* c, int m, int n,
                                       int k) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[B_TILES][TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int first_col = blockIdx.x * TILE * COARSE_FACTOR + tx;
    float value[COARSE_FACTOR] = {};

    for (int start = 0; start < n; start += TILE) {
        tile_a[ty][tx] =
            row < m && start + tx < n ? a[static_cast<size_t>(row) * n + start + tx] : 0.0f;
        const size_t row_b = static_cast<size_t>(start + ty) * k;
#if KEEP_A
        // [keep_a]
        for (int j = 0; j < COARSE_FACTOR; ++j) {
            int col = first_col + j * TILE;
            tile_b[j][ty][tx] = start + ty < n && col < k ? b[row_b + col] : 0.0f;
        }
        __syncthreads();
        for (int x = 0; x < TILE; ++x) {
            const float kept = tile_a[ty][x];
            for (int j = 0; j < COARSE_FACTOR; ++j) {
                value[j] = fmaf(kept, tile_b[j][x][tx], value[j]);
            }
        }
        __syncthreads();
        // [/keep_a]
#else
        // [as_published]
        for (int j = 0; j < COARSE_FACTOR; ++j) {
            int col = first_col + j * TILE;
            tile_b[0][ty][tx] = start + ty < n && col < k ? b[row_b + col] : 0.0f;
            __syncthreads();
            for (int x = 0; x < TILE; ++x) {
                value[j] = fmaf(tile_a[ty][x], tile_b[0][x][tx], value[j]);
            }
            __syncthreads();
        }
        // [/as_published]
#endif
    }

    for (int j = 0; j < COARSE_FACTOR; ++j) {
        int col = first_col + j * TILE;
        if (row < m && col < k) {
            c[static_cast<size_t>(row) * k + col] = value[j];
        }
    }
}
