// vector_add_wide: C[i] = A[i] + B[i], with more bytes in flight a thread
//
// Launch: VECTORS float4 a thread and array, 256 threads a block,
//         ceil(n / (256 * 4 * VECTORS)) blocks. Any n and any alignment: the last, partial block
//         and arrays that do not start on 16 bytes take the scalar path.
// Look at: the loads of a thread do not wait for one another, so up to 2 * VECTORS * 16 bytes are
// under way instead of 8. How many ptxas really issues before the first addition, the SASS says.
//
// VECTORS    float4 loads of each array a thread (default 1)
// STREAMING  1: evict-first loads and stores, since nothing is read twice (default 0)

#ifndef VECTORS
#define VECTORS 1
#endif
#ifndef STREAMING
#define STREAMING 0
#endif

__device__ __forceinline__ float4 load(const float4* p) {
#if STREAMING
    return __ldcs(p);
#else
    return *p;
#endif
}

__device__ __forceinline__ void store(float4* p, float4 v) {
#if STREAMING
    __stcs(p, v);
#else
    *p = v;
#endif
}

__device__ __forceinline__ bool aligned(const void* p) {
    return (reinterpret_cast<unsigned long long>(p) & 15) == 0;
}

// [vector_add_wide]
extern "C" __global__ void vector_add_wide(const float* a, const float* b, float* c, int n) {
    long long first = static_cast<long long>(blockIdx.x) * blockDim.x * 4 * VECTORS;
    long long last = first + static_cast<long long>(blockDim.x) * 4 * VECTORS;
    if (last <= n && aligned(a) && aligned(b) && aligned(c)) {
        const float4* a4 = reinterpret_cast<const float4*>(a + first) + threadIdx.x;
        const float4* b4 = reinterpret_cast<const float4*>(b + first) + threadIdx.x;
        float4* c4 = reinterpret_cast<float4*>(c + first) + threadIdx.x;
        float4 x[VECTORS];
        float4 y[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            x[v] = load(a4 + v * blockDim.x);
            y[v] = load(b4 + v * blockDim.x);
        }
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            store(c4 + v * blockDim.x, make_float4(x[v].x + y[v].x, x[v].y + y[v].y,
                                                   x[v].z + y[v].z, x[v].w + y[v].w));
        }
    } else {
        for (long long i = first + threadIdx.x; i < last && i < n; i += blockDim.x) {
            c[i] = a[i] + b[i];
        }
    }
}
// [/vector_add_wide]
