// cp.async: from global to shared memory past the registers, in the background.

#pragma once

// [cp_async]
// 16 bytes; zeros where the elements do not exist, and then nothing is read.
static __device__ __forceinline__ void copy_16(float4* to, const float* from, bool exists) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(exists ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void copy_4(float* to, const float* from, bool exists) {
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
// [/cp_async]
