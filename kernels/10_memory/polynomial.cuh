// What the kernels with staged tiles compute: y = 1 + x + x^2 + ... + x^DEGREE by Horner's scheme.
//
// DEGREE multiply-adds an element, each of which waits for the one before: 1 is light, next to nothing
// beside the 8 bytes that move; with a few dozen, arithmetic takes as long as the memory does.
//
// DEGREE   multiply-adds an element (default 1)
// THREADS  threads a block (default 256)
// VECTORS  float4 of a tile a thread (default 4)
// CHUNK    tiles in a row that a block works on before it ends; 0: it goes over all of the array, in
//          steps of the grid (default 0). Of the kernels with a ring of tiles only.

#pragma once

#include "vectors.cuh"

#ifndef DEGREE
#define DEGREE 1
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
#ifndef CHUNK
#define CHUNK 0
#endif

constexpr int TILE = THREADS * VECTORS * 4;   // elements
constexpr int TILE_QUADS = THREADS * VECTORS;

// [polynomial]
static __device__ __forceinline__ float polynomial(float x) {
    float y = 1.0f;
#pragma unroll
    for (int d = 0; d < DEGREE; ++d) {
        y = fmaf(y, x, 1.0f);
    }
    return y;
}
// [/polynomial]

static __device__ __forceinline__ float4 polynomial(float4 q) {
    return make_float4(polynomial(q.x), polynomial(q.y), polynomial(q.z), polynomial(q.w));
}

// The tiles that all of the array is cut into, where it can be: aligned arrays go by whole tiles, and
// what is left goes by `last_elements`.
static __device__ __forceinline__ int whole_tiles(const float* x, const float* y, int n) {
    return aligned_16(x) && aligned_16(y) ? n / TILE : 0;
}

// [walk]
// The tiles of this block: first, first + step, ... below end.
struct Walk {
    long long first, end, step;
};

static __device__ __forceinline__ Walk walk_of(int tiles) {
#if CHUNK
    long long first = static_cast<long long>(blockIdx.x) * CHUNK;
    return {first, min(first + CHUNK, static_cast<long long>(tiles)), 1};
#else
    return {blockIdx.x, tiles, gridDim.x};
#endif
}
// [/walk]

// Elements that no whole tile has: fewer than a tile, or all of them where an array is not aligned.
static __device__ __forceinline__ void last_elements(const float* x, float* y, int n, int tiles) {
    long long step = static_cast<long long>(gridDim.x) * THREADS;
    long long i = static_cast<long long>(tiles) * TILE + blockIdx.x * THREADS + threadIdx.x;
    for (; i < n; i += step) {
        y[i] = polynomial(x[i]);
    }
}
