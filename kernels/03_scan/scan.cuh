// What the scans of this chapter share: four elements at a time, and scans within a warp.
//
// INTEGER  0: float; 1: int32, added modulo 2^32, where every order of additions gives the same bits

#pragma once

#ifndef INTEGER
#define INTEGER 0
#endif

#if INTEGER
using element = unsigned;  // its overflow is defined, and its bits are those of int
using quad = uint4;
#else
using element = float;
using quad = float4;
#endif

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

static __device__ __forceinline__ bool aligned(const void* p) {
    return (reinterpret_cast<unsigned long long>(p) & 15) == 0;
}

static __device__ __forceinline__ quad quad_of(element a, element b, element c, element d) {
    quad q;
    q.x = a;
    q.y = b;
    q.z = c;
    q.w = d;
    return q;
}

// Running sums within a quad: three additions one after another.
static __device__ __forceinline__ quad scan_quad(quad q) {
    q.y += q.x;
    q.z += q.y;
    q.w += q.z;
    return q;
}

static __device__ __forceinline__ quad add_to_all(quad q, element x) {
    return quad_of(q.x + x, q.y + x, q.z + x, q.w + x);
}

// [warp_scan]
// Inclusive scan over the lanes of a warp: Kogge-Stone with shuffles, five steps, no barrier.
static __device__ __forceinline__ element warp_scan(element x, int lane) {
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        element left = __shfl_up_sync(ALL_LANES, x, distance);
        if (lane >= distance) {
            x += left;
        }
    }
    return x;
}
// [/warp_scan]

// What lies before each lane: its inclusive scan moved by one, nothing before the first lane.
static __device__ __forceinline__ element exclusive_of(element inclusive, int lane) {
    element left = __shfl_up_sync(ALL_LANES, inclusive, 1);
    return lane == 0 ? element(0) : left;
}

static __device__ __forceinline__ element last_lane(element x) {
    return __shfl_sync(ALL_LANES, x, WARP - 1);
}

// Sum over a warp, in all of its lanes, added up in the same order every time.
static __device__ __forceinline__ element warp_sum(element x) {
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        x += __shfl_xor_sync(ALL_LANES, x, distance);
    }
    return x;
}
