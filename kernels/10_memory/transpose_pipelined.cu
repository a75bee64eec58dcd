// transpose_pipelined: blocks that stay, with the next tiles on their way while one is turned
//
// Launch: THREADS threads a block, at most one block a tile and as many as are resident at once;
//         dynamic shared memory for STAGES tiles of TILE_ROWS x TILE_COLS floats.
// Sizes: any rows and cols of at least 1 with fewer than 2^31 tiles, any alignment; sides that are not
//        on 16 bytes go by floats.
// Look at: cp.async brings a tile as it is, row by row; only what leaves it turns. A thread takes a
// block of 4 x 4 in four quads, each of another row; quad q of row r lies at q ^ (r / 4 % 8), so eight
// lanes that go down are in different banks. One barrier a tile: behind it, this tile is there for
// everyone and the one before is done with, so that its place can be filled again.
//
// STAGES     tiles in the ring, at least 2 (default 3)
// TILE_ROWS, TILE_COLS, THREADS, BAND, RESIDENT: see tiles.cuh; HINTS: see vectors.cuh, stores only

#include "async_copy.cuh"
#include "tiles.cuh"

#ifndef STAGES
#define STAGES 3
#endif

constexpr int TILE_QUADS = TILE_ROWS * COL_QUADS;

static __device__ __forceinline__ int slot(int row, int quad) {
    return row * COL_QUADS + (quad ^ (row / 4 & 7));
}

// [fetch]
static __device__ __forceinline__ void fetch(const float* in, int rows, int cols, unsigned tile,
                                             float4* ring) {
    Place at = place_of(tile, rows, cols);
    if (in_quads(in, cols)) {
#pragma unroll
        for (int b = 0; b < 4 * BLOCKS_4X4; ++b) {
            int i = threadIdx.x + b * THREADS;
            int row = i / COL_QUADS;
            int quad = i % COL_QUADS;
            bool inside = at.row + row < rows && at.col + 4 * quad < cols;
            long long from = static_cast<long long>(at.row + row) * cols + at.col + 4 * quad;
            copy_16(ring + slot(row, quad), inside ? in + from : in, inside);
        }
    } else {
        float* words = reinterpret_cast<float*>(ring);
#pragma unroll 4
        for (int b = 0; b < 16 * BLOCKS_4X4; ++b) {
            int i = threadIdx.x + b * THREADS;
            int row = i / TILE_COLS;
            int col = i % TILE_COLS;
            bool inside = at.row + row < rows && at.col + col < cols;
            long long from = static_cast<long long>(at.row + row) * cols + at.col + col;
            copy_4(words + 4 * slot(row, col / 4) + col % 4, inside ? in + from : in, inside);
        }
    }
}
// [/fetch]

// [turn]
static __device__ __forceinline__ void turn_quads(float* out, int rows, int cols, Place at,
                                                  const float4* tile) {
#pragma unroll
    for (int b = 0; b < BLOCKS_4X4; ++b) {
        int i = threadIdx.x + b * THREADS;
        int down = i % ROW_QUADS;
        int across = i / ROW_QUADS;
        float4 block[4];
        float4 columns[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            block[r] = tile[slot(4 * down + r, across)];
        }
        transpose_4x4(block, columns);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            int col = at.col + 4 * across + c;
            if (at.row + 4 * down < rows && col < cols) {
                long long to = static_cast<long long>(col) * rows + at.row + 4 * down;
                store_quad(reinterpret_cast<float4*>(out + to), columns[c]);
            }
        }
    }
}
// [/turn]

// Along rows of the output, float by float: four rows of a quad share a bank, four passes a load.
static __device__ __forceinline__ void turn_floats(float* out, int rows, int cols, Place at,
                                                   const float4* tile) {
    const float* words = reinterpret_cast<const float*>(tile);
#pragma unroll 4
    for (int b = 0; b < 16 * BLOCKS_4X4; ++b) {
        int i = threadIdx.x + b * THREADS;
        int row = i % TILE_ROWS;
        int col = i / TILE_ROWS;
        if (at.row + row < rows && at.col + col < cols) {
            out[static_cast<long long>(at.col + col) * rows + at.row + row] =
                words[4 * slot(row, col / 4) + col % 4];
        }
    }
}

// [transpose_pipelined]
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    transpose_pipelined(const float* in, float* out, int rows, int cols) {
    extern __shared__ float4 ring[];  // [STAGES][TILE_QUADS]
    unsigned tiles = tiles_of(rows, cols);
    unsigned next = blockIdx.x;  // the tile to be asked for
    for (int s = 0; s < STAGES - 1; ++s, next += gridDim.x) {
        if (next < tiles) {
            fetch(in, rows, cols, next, ring + s * TILE_QUADS);
        }
        commit_copies();
    }
    int filled = STAGES - 1;
    int stage = 0;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x, next += gridDim.x) {
        wait_for_copies_but<STAGES - 2>();
        __syncthreads();
        if (next < tiles) {
            fetch(in, rows, cols, next, ring + filled * TILE_QUADS);
        }
        commit_copies();
        Place at = place_of(tile, rows, cols);
        if (in_quads(out, rows)) {
            turn_quads(out, rows, cols, at, ring + stage * TILE_QUADS);
        } else {
            turn_floats(out, rows, cols, at, ring + stage * TILE_QUADS);
        }
        filled = filled + 1 == STAGES ? 0 : filled + 1;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
}
// [/transpose_pipelined]
