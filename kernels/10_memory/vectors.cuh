// Four floats at a time, with hints: what the vectorised kernels of this chapter share.
//
// HINTS  0: ordinary loads and stores
//        1: evict-first loads and stores (ld.global.cs, st.global.cs)
//        2: loads that leave nothing in L1, ordinary stores
//        3: loads that leave nothing in L1, evict-first stores

#pragma once

#ifndef HINTS
#define HINTS 0
#endif

static __device__ __forceinline__ bool aligned_16(const void* p) {
    return (reinterpret_cast<unsigned long long>(p) & 15) == 0;
}

// volatile: the compiler may not move one past another, so loads stay ahead of the first use.
static __device__ __forceinline__ float4 load_quad(const float4* p) {
#if HINTS == 0
    return *p;
#elif HINTS == 1
    return __ldcs(p);
#else
    float4 q;
    asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(q.x), "=f"(q.y), "=f"(q.z), "=f"(q.w)
                 : "l"(p));
    return q;
#endif
}

static __device__ __forceinline__ void store_quad(float4* p, float4 q) {
#if HINTS == 1 || HINTS == 3
    __stcs(p, q);
#else
    *p = q;
#endif
}
