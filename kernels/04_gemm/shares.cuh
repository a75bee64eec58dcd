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

// [place_of_sum]
// Where the tile of C lies in shared memory. Alone, a block keeps its columns sorted by their
// remainder of 4 and its rows one bank apart: threads hold every fourth column of every fourth row,
// and so write to 32 banks. A cluster keeps quads together, for one access to another block each.
static __device__ __forceinline__ int place_of_sum(int row, int col) {
    return SPLIT_K > 1 ? row * (BN + 4) + col : row * (BN + 1) + col % 4 * (BN / 4) + col / 4;
}

static __device__ __forceinline__ float4 quad_of_sum(const float* tile, int row, int col,
                                                     int block) {
    const float* p = tile + place_of_sum(row, col);
    if (SPLIT_K > 1) {
        return quad_of_block(p, block);
    }
    return make_float4(p[0], p[BN / 4], p[BN / 2], p[BN / 4 * 3]);
}
// [/place_of_sum]

static __device__ __forceinline__ float4 sum_of_quads(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
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

// Puts floats into C, or adds them to what another range has left there (read past the L1 cache,
// which does not see what other SMs write).
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

template <bool WIDE>
static __device__ __forceinline__ void put_in_c(float* c, int m, int k, int row, int col, bool add,
                                                float4 quad) {
    if (!WIDE) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            put_in_c(c, m, k, row, col + j, add, part(quad, j));
        }
        return;
    }
#if STREAM
    if (add && row < m && col < k) {
        const float* left = c + static_cast<size_t>(row) * k + col;
        quad = sum_of_quads(quad, __ldcg(reinterpret_cast<const float4*>(left)));
    }
#endif
    store_quad<WIDE>(c, m, k, row, col, quad);
}
