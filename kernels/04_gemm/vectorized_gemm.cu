// vectorized_gemm: the tiles of tiled_gemm, loaded four floats at a time, in two ways
//
// Launch: 32x32 threads a block, one element of C each, grid (ceil(k/32), ceil(m/32)).
// Look at: who loads.
//
// WHOLE_WARPS  0: every fourth lane of every warp, as published: a warp issues as many load
//                 instructions as tiled_gemm, and four stores instead of one
//              1: all lanes of the first eight warps, for A, and of the next eight, for B: a
//                 quarter of the load instructions, and nobody idles beside a neighbour
//
// A row starts at a multiple of 16 bytes only if its length is a multiple of four floats (and its
// matrix is aligned); elsewhere a float4 load faults, so both fall back to single floats there.

#ifndef WHOLE_WARPS
#define WHOLE_WARPS 0
#endif
#define TILE 32
#define QUADS (TILE / 4)

static __device__ bool aligned(const float* matrix, int columns) {
    return columns % 4 == 0 && reinterpret_cast<size_t>(matrix) % 16 == 0;
}

// Four neighbouring floats of a rows x columns matrix, zeros outside it.
static __device__ float4 four(const float* matrix, int rows, int columns, int row, int col,
                              bool wide) {
    float4 quad = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < rows) {
        const float* from = matrix + static_cast<size_t>(row) * columns + col;
        if (wide && col < columns) {
            quad = *reinterpret_cast<const float4*>(from);
        } else if (!wide) {
            quad.x = col < columns ? from[0] : 0.0f;
            quad.y = col + 1 < columns ? from[1] : 0.0f;
            quad.z = col + 2 < columns ? from[2] : 0.0f;
            quad.w = col + 3 < columns ? from[3] : 0.0f;
        }
    }
    return quad;
}

static __device__ void put(float* to, float4 quad) {
    to[0] = quad.x;
    to[1] = quad.y;
    to[2] = quad.z;
    to[3] = quad.w;
}

extern "C" __global__ void vectorized_gemm(const float* a, const float* b, float* c, int m, int n,
                                           int k) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int first_row = blockIdx.y * TILE;
    int first_col = blockIdx.x * TILE;
    const bool wide_a = aligned(a, n);
    const bool wide_b = aligned(b, k);
    float value = 0.0f;

    for (int start = 0; start < n; start += TILE) {
#if WHOLE_WARPS
        // [whole_warps]
        int thread = ty * TILE + tx;
        int y = thread / QUADS % TILE;
        int x = thread % QUADS * 4;
        if (thread < TILE * QUADS) {
            put(&tile_a[y][x], four(a, m, n, first_row + y, start + x, wide_a));
        } else if (thread < 2 * TILE * QUADS) {
            put(&tile_b[y][x], four(b, n, k, start + y, first_col + x, wide_b));
        }
        // [/whole_warps]
#else
        // [every_fourth_lane]
        if (tx % 4 == 0) {
            put(&tile_a[ty][tx], four(a, m, n, first_row + ty, start + tx, wide_a));
            put(&tile_b[ty][tx], four(b, n, k, start + ty, first_col + tx, wide_b));
        }
        // [/every_fourth_lane]
#endif
        __syncthreads();
        for (int i = 0; i < TILE; ++i) {
            value = fmaf(tile_a[ty][i], tile_b[i][tx], value);
        }
        __syncthreads();
    }

    int row = first_row + ty;
    int col = first_col + tx;
    if (row < m && col < k) {
        c[static_cast<size_t>(row) * k + col] = value;
    }
}
