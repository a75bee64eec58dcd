// matrix_mul_tiled: C = A * B through shared memory, row-major; A is m x n, B is n x k, C is m x k
//
// Launch: TILE_WIDTH x TILE_WIDTH threads a block, one element of C each,
//         grid (ceil(k/TILE_WIDTH), ceil(m/TILE_WIDTH)).
// Sizes: any m, n, k >= 1 with fewer than 2^31 elements a matrix, since indices are int.
// Look at: each float of A and B is fetched from global memory once a block and then used
// TILE_WIDTH times from shared memory; the two barriers that make the reuse safe.

#ifndef TILE_WIDTH
#define TILE_WIDTH 32
#endif

extern "C" __global__ void matrix_mul_tiled(const float* a, const float* b, float* c, int m, int n,
                                            int k) {
    // [tiles]
    __shared__ float tile_a[TILE_WIDTH][TILE_WIDTH];
    __shared__ float tile_b[TILE_WIDTH][TILE_WIDTH];
    // [/tiles]

    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0.0f;

    // [tile_loop]
    for (int start = 0; start < n; start += TILE_WIDTH) {
        // [load]
        // Every thread brings in one float of each tile; outside the matrices it brings a zero,
        // which adds nothing to the sum.
        tile_a[ty][tx] = (row < m && start + tx < n) ? a[row * n + start + tx] : 0.0f;
        tile_b[ty][tx] = (start + ty < n && col < k) ? b[(start + ty) * k + col] : 0.0f;
        // [/load]
        __syncthreads();  // nobody reads a tile before all of it is there

        // [compute]
        for (int i = 0; i < TILE_WIDTH; ++i) {
            sum += tile_a[ty][i] * tile_b[i][tx];
        }
        // [/compute]
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }
    // [/tile_loop]

    if (row < m && col < k) {
        c[row * k + col] = sum;
    }
}
