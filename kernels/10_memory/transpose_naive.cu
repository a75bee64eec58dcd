// transpose_naive: the element at (row, col) goes to (col, row), one a thread, nothing shared
//
// Launch: blocks of any shape, x over columns and y over rows, ceil(cols / x) x ceil(rows / y) blocks.
// Sizes: any rows and cols, as far as the grid allows: rows up to 65535 * blockDim.y. Places are
//        computed in 64 bits; an int would overflow from 2^31 elements on.
// Look at: what a warp covers. 32 x 8 threads: a row of 32, read in 4 sectors and written in 32. 8 x 32
// threads: four rows of 8, read in 4 sectors, one a row, and written in 8, four floats in each.

// [transpose_naive]
extern "C" __global__ void transpose_naive(const float* in, float* out, int rows, int cols) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < cols) {
        out[static_cast<long long>(col) * rows + row] =
            in[static_cast<long long>(row) * cols + col];
    }
}
// [/transpose_naive]
