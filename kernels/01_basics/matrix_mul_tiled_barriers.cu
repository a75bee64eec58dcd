// matrix_mul_tiled_barriers: the tiled product with a barrier left out, wrong on purpose
//
// Launch: as matrix_mul_tiled.
// Sizes: any m, n, k >= 1 with fewer than 2^31 elements a matrix, since indices are int.
// Look at: what the race check says of each version, and that a race may still print the right
// answer. FIRST and SECOND say where each barrier stands:
//
// FIRST   1: after loading a tile, as it must be; 0: nowhere
// SECOND  1: after using a tile; 0: nowhere; 2: after every tile but the last, which nobody
//         overwrites

#ifndef FIRST
#define FIRST 1
#endif
#ifndef SECOND
#define SECOND 1
#endif
#define TILE_WIDTH 32

extern "C" __global__ void matrix_mul_tiled_barriers(const float* a, const float* b, float* c,
                                                     int m, int n, int k) {
    __shared__ float tile_a[TILE_WIDTH][TILE_WIDTH];
    __shared__ float tile_b[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0.0f;

    // [barriers]
    for (int start = 0; start < n; start += TILE_WIDTH) {
        tile_a[ty][tx] = (row < m && start + tx < n) ? a[row * n + start + tx] : 0.0f;
        tile_b[ty][tx] = (start + ty < n && col < k) ? b[(start + ty) * k + col] : 0.0f;
#if FIRST == 1
        __syncthreads();
#endif
        for (int i = 0; i < TILE_WIDTH; ++i) {
            sum += tile_a[ty][i] * tile_b[i][tx];
        }
#if SECOND == 1
        __syncthreads();
#elif SECOND == 2
        if (start + TILE_WIDTH < n) {  // the same for the whole block, so all arrive or none
            __syncthreads();
        }
#endif
    }
    // [/barriers]

    if (row < m && col < k) {
        c[row * k + col] = sum;
    }
}
