// transpose_wide: float4 from memory, float4 to memory, and float4 both ways through shared memory
//
// Launch: THREADS threads a block, one tile a block, as many blocks as tiles, in one dimension.
// Sizes: any rows and cols of at least 1 with fewer than 2^31 tiles, any alignment. Rows whose length
//        is no multiple of four cannot be read (or written) by float4; that side goes float by float,
//        still along rows.
// Look at: a thread reads four quads that lie below one another, a block of 4 x 4. Transposing it takes
// no instruction, and then each of its columns is a quad of the output. The tile in shared memory is
// made of these: quad q of column c lies at q ^ swizzle(c), so that eight lanes, which are served at
// once, are never in the same banks, whether they go over columns four apart, next to one another, or
// down a column.
//
// TILE_ROWS, TILE_COLS, THREADS, BAND, RESIDENT: see tiles.cuh; HINTS: see vectors.cuh

#include "tiles.cuh"

// [swizzle]
static __device__ __forceinline__ int slot(int column, int quad) {
    return column * ROW_QUADS + (quad ^ ((column ^ (column >> 3)) & 7));
}
// [/swizzle]

// [load]
static __device__ __forceinline__ void load_quads(const float* in, int rows, int cols, Place at,
                                                  float4* tile) {
    float4 block[BLOCKS_4X4][4];
#pragma unroll
    for (int b = 0; b < BLOCKS_4X4; ++b) {
        int i = threadIdx.x + b * THREADS;
        int col = at.col + i % COL_QUADS * 4;
        int row = at.row + i / COL_QUADS * 4;
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            block[b][r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (row + r < rows && col < cols) {
                block[b][r] = load_quad(reinterpret_cast<const float4*>(
                    in + static_cast<long long>(row + r) * cols + col));
            }
        }
    }
#pragma unroll
    for (int b = 0; b < BLOCKS_4X4; ++b) {
        int i = threadIdx.x + b * THREADS;
        float4 columns[4];
        transpose_4x4(block[b], columns);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            tile[slot(i % COL_QUADS * 4 + c, i / COL_QUADS)] = columns[c];
        }
    }
}
// [/load]

// A lane a column: four floats below one another are a quad of the output, too.
static __device__ __forceinline__ void load_floats(const float* in, int rows, int cols, Place at,
                                                   float4* tile) {
    float below[4 * BLOCKS_4X4][4];
#pragma unroll
    for (int b = 0; b < 4 * BLOCKS_4X4; ++b) {
        int i = threadIdx.x + b * THREADS;
        int col = at.col + i % TILE_COLS;
        int row = at.row + i / TILE_COLS * 4;
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            bool inside = row + r < rows && col < cols;
            below[b][r] = inside ? in[static_cast<long long>(row + r) * cols + col] : 0.0f;
        }
    }
#pragma unroll
    for (int b = 0; b < 4 * BLOCKS_4X4; ++b) {
        int i = threadIdx.x + b * THREADS;
        tile[slot(i % TILE_COLS, i / TILE_COLS)] =
            make_float4(below[b][0], below[b][1], below[b][2], below[b][3]);
    }
}

// [store]
// All of a thread's quads are read before the first is stored: what lies outside was filled with zeros.
static __device__ __forceinline__ void store_quads(float* out, int rows, int cols, Place at,
                                                   const float4* tile) {
    float4 quads[4 * BLOCKS_4X4];
#pragma unroll
    for (int b = 0; b < 4 * BLOCKS_4X4; ++b) {
        int i = threadIdx.x + b * THREADS;
        quads[b] = tile[slot(i / ROW_QUADS, i % ROW_QUADS)];
    }
#pragma unroll
    for (int b = 0; b < 4 * BLOCKS_4X4; ++b) {
        int i = threadIdx.x + b * THREADS;
        int row = at.row + i % ROW_QUADS * 4;
        int col = at.col + i / ROW_QUADS;
        if (row < rows && col < cols) {
            store_quad(reinterpret_cast<float4*>(out + static_cast<long long>(col) * rows + row),
                       quads[b]);
        }
    }
}
// [/store]

// Four at a time: this path must not be what the kernel's registers are counted for.
static __device__ __forceinline__ void store_floats(float* out, int rows, int cols, Place at,
                                                    const float4* tile) {
    const float* words = reinterpret_cast<const float*>(tile);
#pragma unroll 1
    for (int first = threadIdx.x; first < TILE_ROWS * TILE_COLS; first += 4 * THREADS) {
        float floats[4];
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            int i = first + b * THREADS;
            int row = i % TILE_ROWS;
            floats[b] = words[4 * slot(i / TILE_ROWS, row / 4) + row % 4];
        }
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            int i = first + b * THREADS;
            int row = at.row + i % TILE_ROWS;
            int col = at.col + i / TILE_ROWS;
            if (row < rows && col < cols) {
                out[static_cast<long long>(col) * rows + row] = floats[b];
            }
        }
    }
}

// [transpose_wide]
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    transpose_wide(const float* in, float* out, int rows, int cols) {
    __shared__ float4 tile[TILE_COLS * ROW_QUADS];
    Place at = place_of(blockIdx.x, rows, cols);
    if (in_quads(in, cols)) {
        load_quads(in, rows, cols, at, tile);
    } else {
        load_floats(in, rows, cols, at, tile);
    }
    __syncthreads();
    if (in_quads(out, rows)) {
        store_quads(out, rows, cols, at, tile);
    } else {
        store_floats(out, rows, cols, at, tile);
    }
}
// [/transpose_wide]
