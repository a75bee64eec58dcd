// Moving a tile between memory and registers: a warp holds VECTORS rows of 32 float4, and scans them.
//
// Elements past the end read as zeros and are not stored. Only a full tile of aligned arrays goes
// by float4; the same for all threads of a block.

#pragma once

#include "scan.cuh"

constexpr int ROW = WARP * 4;

static __device__ __forceinline__ bool whole(const void* array, int n, int tile) {
    return aligned(array) && static_cast<long long>(tile + 1) * TILE <= n;
}

// The first of the four elements of a lane in row v of a warp.
static __device__ __forceinline__ long long place_of(int tile, int warp, int lane, int v) {
    return static_cast<long long>(tile) * TILE + (warp * VECTORS + v) * ROW + lane * 4;
}

static __device__ __forceinline__ void load_rows(const element* in, int n, int tile, int warp,
                                                 int lane, quad* rows) {
    if (whole(in, n, tile)) {
        const quad* from = reinterpret_cast<const quad*>(in + place_of(tile, warp, lane, 0));
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            rows[v] = from[v * WARP];
        }
    } else {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            long long i = place_of(tile, warp, lane, v);
            rows[v] = quad_of(i < n ? in[i] : 0, i + 1 < n ? in[i + 1] : 0,
                              i + 2 < n ? in[i + 2] : 0, i + 3 < n ? in[i + 3] : 0);
        }
    }
}

// [scan_rows]
// Inclusive scan of a warp's part of a tile, in place: within each quad, then the last elements of the
// quads across each row, then row by row. Rows do not wait for one another. Returns the total.
static __device__ __forceinline__ element scan_rows(quad* rows, int lane) {
    element scanned[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        rows[v] = scan_quad(rows[v]);
        scanned[v] = warp_scan(rows[v].w, lane);
    }
    element total = 0;
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        rows[v] = add_to_all(rows[v], total + exclusive_of(scanned[v], lane));
        total += last_lane(scanned[v]);
    }
    return total;
}
// [/scan_rows]

static __device__ __forceinline__ void store(quad* to, quad q) {
#if STREAMING
    __stcs(to, q);
#else
    __stwb(to, q);  // an ordinary store, but one that the compiler leaves whole
#endif
}

static __device__ __forceinline__ void store_rows(element* out, int n, int tile, int warp, int lane,
                                                  const quad* rows, element offset) {
    if (whole(out, n, tile)) {
        quad* to = reinterpret_cast<quad*>(out + place_of(tile, warp, lane, 0));
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            store(to + v * WARP, add_to_all(rows[v], offset));
        }
    } else {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            long long i = place_of(tile, warp, lane, v);
            quad q = add_to_all(rows[v], offset);
            if (i < n) out[i] = q.x;
            if (i + 1 < n) out[i + 1] = q.y;
            if (i + 2 < n) out[i + 2] = q.z;
            if (i + 3 < n) out[i + 3] = q.w;
        }
    }
}
