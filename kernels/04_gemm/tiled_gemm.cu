// tiled_gemm: C = A * B through shared memory, row-major; A is m x n, B is n x k, C is m x k
//
// Launch: 32x32 threads a block, one element of C each, grid (ceil(k/32), ceil(m/32)).
// Look at: the inner loop asks shared memory for two floats and gets one multiply-add out of them.
// This is where the ladder of this chapter starts.

#define TILE 32

extern "C" __global__ void tiled_gemm(const float* a, const float* b, float* c, int m, int n,
                                      int k) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    float value = 0.0f;

    for (int start = 0; start < n; start += TILE) {
        tile_a[ty][tx] =
            row < m && start + tx < n ? a[static_cast<size_t>(row) * n + start + tx] : 0.0f;
        tile_b[ty][tx] =
            start + ty < n && col < k ? b[static_cast<size_t>(start + ty) * k + col] : 0.0f;
        __syncthreads();
        // [inner_loop]
        for (int x = 0; x < TILE; ++x) {
            value = fmaf(tile_a[ty][x], tile_b[x][tx], value);
        }
        // [/inner_loop]
        __syncthreads();
    }

    if (row < m && col < k) {
        c[static_cast<size_t>(row) * k + col] = value;
    }
}
