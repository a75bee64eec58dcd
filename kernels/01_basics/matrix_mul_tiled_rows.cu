// matrix_mul_tiled_rows: the tiled product with fewer threads a block at the same 32x32 tile
//
// Launch: 32 x BLOCK_ROWS threads a block; each computes 32 / BLOCK_ROWS elements of one column
//         of the tile. Grid (ceil(k/32), ceil(m/32)). BLOCK_ROWS 32 is matrix_mul_tiled itself.
// Sizes: any m, n, k >= 1 with fewer than 2^31 elements a matrix, since indices are int.
// Look at: 1024 threads a block leave an SM little choice of whom to run while a block waits at
// its barrier. Mind what else changes: an element of tile_b now serves several sums.

#ifndef BLOCK_ROWS
#define BLOCK_ROWS 8
#endif
#define TILE_WIDTH 32
#define ROWS_A_THREAD (TILE_WIDTH / BLOCK_ROWS)

// [matrix_mul_tiled_rows]
extern "C" __global__ void matrix_mul_tiled_rows(const float* a, const float* b, float* c, int m,
                                                 int n, int k) {
    __shared__ float tile_a[TILE_WIDTH][TILE_WIDTH];
    __shared__ float tile_b[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int first_row = blockIdx.y * TILE_WIDTH;
    int col = blockIdx.x * TILE_WIDTH + tx;
    float sum[ROWS_A_THREAD] = {};

    for (int start = 0; start < n; start += TILE_WIDTH) {
        for (int y = ty; y < TILE_WIDTH; y += BLOCK_ROWS) {
            int row = first_row + y;
            tile_a[y][tx] = (row < m && start + tx < n) ? a[row * n + start + tx] : 0.0f;
            tile_b[y][tx] = (start + y < n && col < k) ? b[(start + y) * k + col] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) {
            float from_b = tile_b[i][tx];
            for (int r = 0; r < ROWS_A_THREAD; ++r) {
                sum[r] += tile_a[ty + r * BLOCK_ROWS][i] * from_b;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < ROWS_A_THREAD; ++r) {
        int row = first_row + ty + r * BLOCK_ROWS;
        if (row < m && col < k) {
            c[row * k + col] = sum[r];
        }
    }
}
// [/matrix_mul_tiled_rows]
