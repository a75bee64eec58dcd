// How blocks share a tile of C: the blocks of a cluster through distributed shared memory, and
// ranges of the whole work, which end in the middle of a tile, through C itself.

#pragma once

static __device__ __forceinline__ void cluster_barrier() {
#if SPLIT_K > 1
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#else
    __syncthreads();
#endif
}

// A quad at this address in the shared memory of another block of the cluster.
static __device__ __forceinline__ float4 quad_of_block(const float* p, int block) {
#if SPLIT_K > 1
    unsigned there;
    float4 quad;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(p))), "r"(block));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(quad.x), "=f"(quad.y), "=f"(quad.z), "=f"(quad.w)
                 : "r"(there)
                 : "memory");
    return quad;
#else
    return shared_quad(p);
#endif
}

static __device__ __forceinline__ float float_of_block(const float* p, int block) {
#if SPLIT_K > 1
    unsigned there;
    float value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(p))), "r"(block));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
    return value;
#else
    return *p;
#endif
}

#if STREAM
// [deposit]
// One flag a block: it has left its part of a tile in C, where the range before it will add its
// own. Who waits clears the flag, so that the next launch finds all of them clear; two launches
// at once would meet in the same flags.
#define MAX_FLAGS 4096
static __device__ unsigned deposited[MAX_FLAGS];

static __device__ __forceinline__ unsigned* flag_of(int range) {
    return &deposited[range * SPLIT_K + blockIdx.z];
}

static __device__ __forceinline__ void deposit(int range) {
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("fence.acq_rel.gpu;\n"
                     "st.release.gpu.global.u32 [%0], %1;" ::"l"(flag_of(range)),
                     "r"(1u)
                     : "memory");
    }
}

static __device__ __forceinline__ void await_deposit(int range) {
    if (threadIdx.x == 0) {
        unsigned seen;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(seen)
                         : "l"(flag_of(range))
                         : "memory");
        } while (seen == 0);
        *flag_of(range) = 0;
    }
    __syncthreads();
}
// [/deposit]
#endif

// Puts a quad into C, or adds it to what another range has left there (read past the L1 cache,
// which does not see what other SMs write).
template <bool WIDE>
static __device__ __forceinline__ void put_in_c(float* c, int m, int k, int row, int col, bool add,
                                                float4 quad) {
#if STREAM
    if (WIDE && add && row < m && col < k) {
        const float* left = c + static_cast<size_t>(row) * k + col;
        const float4 more = __ldcg(reinterpret_cast<const float4*>(left));
        quad.x += more.x;
        quad.y += more.y;
        quad.z += more.z;
        quad.w += more.w;
    }
#endif
    store_quad<WIDE>(c, m, k, row, col, quad);
}

static __device__ __forceinline__ void put_in_c(float* c, int m, int k, int row, int col, bool add,
                                                float value) {
    if (row < m && col < k) {
        float* to = c + static_cast<size_t>(row) * k + col;
#if STREAM
        if (add) {
            value += __ldcg(to);
        }
#endif
        *to = value;
    }
}
