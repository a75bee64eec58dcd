// register_tiled_gemm: a 4x4 tile of C in the registers of each thread
//
// Launch: 32x32 threads a block, a 128x128 tile of C, grid (ceil(k/128), ceil(m/128)).
// Look at: eight shared reads feed sixteen multiply-adds. And at the grid: a 1024x1024 product
// has 64 blocks, so about half of the SMs of a large card have nothing to do.

#define TILE 32
#define TM 4
#define TN 4

extern "C" __global__ void register_tiled_gemm(const float* a, const float* b, float* c, int m,
                                               int n, int k) {
    __shared__ float tile_a[TM * TILE][TILE];
    __shared__ float tile_b[TILE][TN * TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int first_row = blockIdx.y * TM * TILE + ty;
    int first_col = blockIdx.x * TN * TILE + tx;
    float value[TM][TN] = {};

    for (int start = 0; start < n; start += TILE) {
        for (int i = 0; i < TM; ++i) {
            int row = first_row + i * TILE;
            tile_a[i * TILE + ty][tx] =
                row < m && start + tx < n ? a[static_cast<size_t>(row) * n + start + tx] : 0.0f;
        }
        for (int j = 0; j < TN; ++j) {
            int col = first_col + j * TILE;
            tile_b[ty][j * TILE + tx] =
                start + ty < n && col < k ? b[static_cast<size_t>(start + ty) * k + col] : 0.0f;
        }
        __syncthreads();
        // [outer_product]
        for (int x = 0; x < TILE; ++x) {
            for (int i = 0; i < TM; ++i) {
                for (int j = 0; j < TN; ++j) {
                    value[i][j] = fmaf(tile_a[i * TILE + ty][x], tile_b[x][j * TILE + tx],
                                       value[i][j]);
                }
            }
        }
        // [/outer_product]
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i) {
        for (int j = 0; j < TN; ++j) {
            int row = first_row + i * TILE;
            int col = first_col + j * TILE;
            if (row < m && col < k) {
                c[static_cast<size_t>(row) * k + col] = value[i][j];
            }
        }
    }
}
