// transpose_shared: through a tile of shared memory, so that both sides go along rows
//
// Launch: 32 x THREAD_ROWS threads, ceil(cols / 32) x ceil(rows / 32) blocks: each thread has
//         32 / THREAD_ROWS rows of a 32 x 32 tile. A block of another shape leaves elements unwritten,
//         so THREAD_ROWS is what the kernel is compiled for.
// Sizes: any rows and cols, rows up to 65535 * 32; places are computed in 64 bits.
// Look at: a warp writes a row of the tile and reads a column. In rows of 32 words a column is one bank,
// 32 passes; in rows of 33 it is 32 banks; and so it is where row r keeps column c at c ^ r.
//
// THREAD_ROWS  rows of threads (default 32)
// LAYOUT       0: rows of 32 words; 1: rows of 33; 2: rows of 32, swizzled (default 1)

#ifndef THREAD_ROWS
#define THREAD_ROWS 32
#endif
#ifndef LAYOUT
#define LAYOUT 1
#endif

constexpr int TILE = 32;

// [layout]
static __device__ __forceinline__ int place(int row, int column) {
#if LAYOUT == 0
    return row * TILE + column;
#elif LAYOUT == 1
    return row * (TILE + 1) + column;
#else
    return row * TILE + (column ^ row);
#endif
}
// [/layout]

// [transpose_shared]
extern "C" __global__ void __launch_bounds__(TILE* THREAD_ROWS)
    transpose_shared(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[TILE * (TILE + (LAYOUT == 1))];
    int col = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int r = 0; r < TILE; r += THREAD_ROWS) {
        if (row + r < rows && col < cols) {
            tile[place(threadIdx.y + r, threadIdx.x)] =
                in[static_cast<long long>(row + r) * cols + col];
        }
    }
    __syncthreads();
    // The tile's place in the output: its rows are the input's columns.
    col = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
    for (int r = 0; r < TILE; r += THREAD_ROWS) {
        if (row + r < cols && col < rows) {
            out[static_cast<long long>(row + r) * rows + col] =
                tile[place(threadIdx.x, threadIdx.y + r)];
        }
    }
}
// [/transpose_shared]
