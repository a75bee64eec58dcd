// Copies of fast_gemm from global to shared memory, and the ring of STAGES tiles they fill.

#pragma once

// [copies]
// From global to shared memory past the registers; what lies outside the matrices becomes zero.
static __device__ __forceinline__ void copy_quad(unsigned to, const float* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(inside ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void copy_float(unsigned to, const float* from, bool inside) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                 "r"(inside ? 4 : 0)
                 : "memory");
}

// Every tile is a group of copies. Waits until the next tile is there; others are still on the way.
static __device__ __forceinline__ void end_group() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

static __device__ __forceinline__ void wait_for_tile() {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
}

static __device__ __forceinline__ int next_stage(int stage) {
    return STAGES == 2 ? stage ^ 1 : stage + 1 == STAGES ? 0 : stage + 1;
}
// [/copies]
