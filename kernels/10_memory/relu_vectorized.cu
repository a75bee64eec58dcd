// relu_vectorized: four floats a load, for every n and wherever the arrays begin
//
// Launch: THREADS threads a block, ceil(n / (THREADS * 4 * VECTORS)) blocks, at least one.
// Sizes: any n from 0 to 2^31 - 1. Views that do not begin on 16 bytes: where x and y are off by the
//        same, the block steps over up to three elements and is aligned again; where they are not, no
//        float4 of one is a float4 of the other, and it goes element by element.
// Look at: VECTORS loads of 16 bytes under way a thread before the first is used. `n / 4` threads with
// nothing for n % 4 leave up to three elements unwritten; the first block does them here.
//
// THREADS  threads a block (default 256)
// VECTORS  float4 a thread (default 1)
// HINTS    see vectors.cuh

#include "vectors.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef VECTORS
#define VECTORS 1
#endif

static __device__ __forceinline__ float4 relu(float4 q) {
    return make_float4(fmaxf(0.0f, q.x), fmaxf(0.0f, q.y), fmaxf(0.0f, q.z), fmaxf(0.0f, q.w));
}

// [edges]
// Elements before x is on 16 bytes: none to three.
static __device__ __forceinline__ int before_boundary(const float* x) {
    return static_cast<int>(-(reinterpret_cast<unsigned long long>(x) / 4) & 3);
}
// [/edges]

// [relu_vectorized]
static __device__ __forceinline__ void relu_quads(const float4* x, float4* y, int quads) {
    long long first = static_cast<long long>(blockIdx.x) * THREADS * VECTORS + threadIdx.x;
    float4 q[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        if (first + v * THREADS < quads) {
            q[v] = load_quad(x + first + v * THREADS);
        }
    }
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        if (first + v * THREADS < quads) {
            store_quad(y + first + v * THREADS, relu(q[v]));
        }
    }
}

static __device__ __forceinline__ void relu_any(const float* x, float* y, int n) {
    int head = min(before_boundary(x), n);
    if (aligned_16(y + before_boundary(x))) {
        int quads = (n - head) / 4;
        relu_quads(reinterpret_cast<const float4*>(x + head), reinterpret_cast<float4*>(y + head),
                   quads);
        int edges = n - 4 * quads;  // before the first quad and after the last: up to six
        if (blockIdx.x == 0 && threadIdx.x < edges) {
            int i = threadIdx.x < head ? threadIdx.x : threadIdx.x + 4 * quads;
            y[i] = fmaxf(0.0f, x[i]);
        }
        return;
    }
    long long first = static_cast<long long>(blockIdx.x) * THREADS * 4 * VECTORS + threadIdx.x;
#pragma unroll 1
    for (int v = 0; v < VECTORS; ++v, first += 4 * THREADS) {
        float f[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (first + e * THREADS < n) {
                f[e] = x[first + e * THREADS];
            }
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (first + e * THREADS < n) {
                y[first + e * THREADS] = fmaxf(0.0f, f[e]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    relu_vectorized(const float* x, float* y, int n) {
    relu_any(x, y, n);
}
// [/relu_vectorized]

// The same on views of n elements that begin x_skip and y_skip elements into their arrays.
extern "C" __global__ void __launch_bounds__(THREADS)
    relu_views(const float* x, float* y, int n, int x_skip, int y_skip) {
    relu_any(x + x_skip, y + y_skip, n);
}
