// Which tile a block takes, and the tile's place: what the transposes by float4 share.
//
// TILE_ROWS  rows of a tile, 32, 64 or 128 (default 64)
// TILE_COLS  columns of a tile, 32, 64 or 128 (default 64)
// THREADS    threads a block, which divide the quads of a tile (default 256)
// BAND       rows of tiles that are walked through together, column by column; 1: along the rows of
//            tiles; 0: all of them, down the columns of tiles (default 1). Blocks that run at the same
//            time then lie side by side in the input, in a rectangle, or side by side in the output.
// RESIDENT   blocks an SM that the compiler leaves registers for (default 1)

#pragma once

#include "vectors.cuh"

#ifndef RESIDENT
#define RESIDENT 1
#endif

#ifndef TILE_ROWS
#define TILE_ROWS 64
#endif
#ifndef TILE_COLS
#define TILE_COLS 64
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef BAND
#define BAND 1
#endif

constexpr int ROW_QUADS = TILE_ROWS / 4;  // of a column of the tile: rows r to r + 3
constexpr int COL_QUADS = TILE_COLS / 4;  // of a row of the tile
constexpr int BLOCKS_4X4 = ROW_QUADS * COL_QUADS / THREADS;  // of a thread
static_assert(ROW_QUADS * COL_QUADS % THREADS == 0, "threads divide the 4 x 4 blocks of a tile");

// The first element of a tile, within a matrix of rows x cols.
struct Place {
    int row, col;
};

static __device__ __forceinline__ unsigned tiles_of(int rows, int cols) {
    return static_cast<unsigned>((rows - 1) / TILE_ROWS + 1) *
           static_cast<unsigned>((cols - 1) / TILE_COLS + 1);
}

// [bands]
static __device__ __forceinline__ Place place_of(unsigned tile, int rows, int cols) {
    unsigned down = static_cast<unsigned>((rows - 1) / TILE_ROWS + 1);
#if BAND == 0
    return {static_cast<int>(tile % down * TILE_ROWS), static_cast<int>(tile / down * TILE_COLS)};
#else
    unsigned across = static_cast<unsigned>((cols - 1) / TILE_COLS + 1);
    unsigned band = tile / (BAND * across);
    unsigned within = tile % (BAND * across);
    unsigned height = min(static_cast<unsigned>(BAND), down - band * BAND);
    return {static_cast<int>((band * BAND + within % height) * TILE_ROWS),
            static_cast<int>(within / height * TILE_COLS)};
#endif
}
// [/bands]

// Rows of this length, from this address on, all begin on 16 bytes.
static __device__ __forceinline__ bool in_quads(const float* matrix, int row_length) {
    return row_length % 4 == 0 && aligned_16(matrix);
}

// [transpose_4x4]
// In registers: no data moves, the compiler only renames.
static __device__ __forceinline__ void transpose_4x4(const float4 (&in)[4], float4 (&out)[4]) {
    out[0] = make_float4(in[0].x, in[1].x, in[2].x, in[3].x);
    out[1] = make_float4(in[0].y, in[1].y, in[2].y, in[3].y);
    out[2] = make_float4(in[0].z, in[1].z, in[2].z, in[3].z);
    out[3] = make_float4(in[0].w, in[1].w, in[2].w, in[3].w);
}
// [/transpose_4x4]
