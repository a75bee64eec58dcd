// Copying a thread's part of a tile to shared memory in the background, by cp.async.

#pragma once

#include "tile_io.cuh"

static __device__ __forceinline__ void copy_16(quad* to, const element* from) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

// Zero where the element does not exist; then nothing is read.
static __device__ __forceinline__ void copy_4(element* to, const element* from, bool exists) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(exists ? 4 : 0)
                 : "memory");
}

// Copies are counted in groups: those that a thread has started since it last closed one.
static __device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LATEST>
static __device__ __forceinline__ void wait_for_copies_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATEST) : "memory");
}

// Starts to copy a thread's part of a tile into its slots.
static __device__ __forceinline__ void fetch(const element* in, int n, unsigned tiles,
                                             unsigned long long ticket, int warp, int lane,
                                             quad* slots) {
    if (static_cast<unsigned>(ticket) >= tiles) {
        return;
    }
    int tile = static_cast<int>(ticket);
    if (whole(in, n, tile)) {
        const element* from = in + place_of(tile, warp, lane, 0);
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            copy_16(slots + v * WARP, from + v * ROW);
        }
    } else {
        for (int v = 0; v < VECTORS; ++v) {
            long long i = place_of(tile, warp, lane, v);
            element* to = reinterpret_cast<element*>(slots + v * WARP);
            for (int e = 0; e < 4; ++e) {
                bool exists = i + e < n;
                copy_4(to + e, exists ? in + i + e : in, exists);
            }
        }
    }
}
