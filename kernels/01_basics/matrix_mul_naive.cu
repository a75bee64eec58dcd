// matrix_mul_naive: C = A * B, row-major; A is m x n, B is n x k, C is m x k
//
// Launch: one thread an element of C, 16x16 threads a block, grid (ceil(k/16), ceil(m/16)).
// Sizes: any m, n, k >= 1 with fewer than 2^31 elements a matrix, since indices are int.
// Look at: which addresses a warp asks for in one step of the loop. With blockDim.x = 16 a warp
// covers two rows and sixteen columns of C; with 32 it covers one row and thirty-two columns.

// [matrix_mul_naive]
extern "C" __global__ void matrix_mul_naive(const float* a, const float* b, float* c, int m, int n,
                                            int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < k) {
        float sum = 0.0f;
        // [inner_loop]
        for (int i = 0; i < n; ++i) {
            sum += a[row * n + i] * b[i * k + col];
        }
        // [/inner_loop]
        c[row * k + col] = sum;
    }
}
// [/matrix_mul_naive]
