// Bulk copies of Hopper: one thread asks for a whole tile, and a barrier in shared memory counts bytes.

#pragma once

typedef unsigned long long barrier;

static __device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void init_barrier(barrier* b, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals)
                 : "memory");
}

// Makes barriers that were initialised known to the engine that copies.
static __device__ __forceinline__ void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Orders what threads wrote to shared memory before what the engine reads there.
static __device__ __forceinline__ void publish_tile() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// [bulk_load]
// The phase of the barrier ends when the one arrival is made and all of the bytes are there.
static __device__ __forceinline__ void bulk_load(void* to, const void* from, unsigned bytes,
                                                 barrier* b) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(b))
                 : "memory");
}

static __device__ __forceinline__ void wait_for(barrier* b, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(shared_address(b)),
                 "r"(parity)
                 : "memory");
}
// [/bulk_load]

// [bulk_store]
static __device__ __forceinline__ void bulk_store(void* to, const void* from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until all but the latest stores of this thread have read their shared memory.
template <int LATEST>
static __device__ __forceinline__ void wait_for_reads_but() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LATEST) : "memory");
}
// [/bulk_store]
