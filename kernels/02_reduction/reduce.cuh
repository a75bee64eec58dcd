// reduce.cuh: what the kernels that differ in how blocks come together have in common
//
// OP       0: sum of x; 1: largest element of x; 2: dot product of x and y
// INTEGER  1: elements are int, and a sum is exact modulo 2^32
// BLOCK    threads a block, a multiple of 32
// VECTORS  loads of 16 bytes a thread, round and array

#pragma once

#ifndef OP
#define OP 0
#endif
#ifndef INTEGER
#define INTEGER 0
#endif
#ifndef BLOCK
#define BLOCK 512
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
#define WARP 32
#define ROUND (BLOCK * VECTORS)  // vectors of four elements a block and round

#if INTEGER
typedef int Element;
typedef int4 Four;
#else
typedef float Element;
typedef float4 Four;
#endif

// [operation]
__device__ __forceinline__ Element identity() {
#if OP == 1
    return __int_as_float(0xff800000);  // minus infinity
#else
    return 0;
#endif
}

__device__ __forceinline__ Element combine(Element a, Element b) {
#if OP == 1
    return fmaxf(a, b);
#else
    return a + b;
#endif
}

// Takes in one element of x, or one of x and one of y.
__device__ __forceinline__ Element take(Element value, Element x, Element y) {
#if OP == 2
    return fmaf(x, y, value);
#else
    return combine(value, x);
#endif
}
// [/operation]

// [block_combine]
__device__ __forceinline__ Element warp_combine(Element value) {
#pragma unroll
    for (int distance = WARP / 2; distance >= 1; distance /= 2) {
        value = combine(value, __shfl_down_sync(0xffffffff, value, distance));
    }
    return value;  // lane 0 has the result
}

__device__ __forceinline__ Element block_combine(Element value) {
    __shared__ Element of_warp[BLOCK / WARP];
    value = warp_combine(value);
    if (threadIdx.x % WARP == 0) {
        of_warp[threadIdx.x / WARP] = value;
    }
    __syncthreads();
    if (threadIdx.x < WARP) {
        value = warp_combine(threadIdx.x < BLOCK / WARP ? of_warp[threadIdx.x] : identity());
    }
    return value;  // thread 0 has the result
}
// [/block_combine]

__device__ __forceinline__ bool aligned(const void* p) {
    return (reinterpret_cast<unsigned long long>(p) & 15) == 0;
}

// What this thread takes of x and y. Blocks take whole rounds in turn and then share what is left,
// which is everything where an array does not start on 16 bytes.
__device__ __forceinline__ Element own_share(const Element* __restrict__ x,
                                             const Element* __restrict__ y, long long n) {
    // [rounds]
    const Four* x4 = reinterpret_cast<const Four*>(x) + threadIdx.x;
    const Four* y4 = reinterpret_cast<const Four*>(y) + threadIdx.x;
    long long rounds = aligned(x) && aligned(y) ? n / (4 * ROUND) : 0;
    // Four chains a thread: shorter ones round less, and an addition waits less for the one before.
    Element a = identity(), b = identity(), c = identity(), d = identity();
    for (long long r = blockIdx.x; r < rounds; r += gridDim.x) {
        Four u[VECTORS];
        Four v[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            u[k] = x4[r * ROUND + k * BLOCK];
#if OP == 2
            v[k] = y4[r * ROUND + k * BLOCK];
#else
            v[k] = u[k];
#endif
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            a = take(a, u[k].x, v[k].x);
            b = take(b, u[k].y, v[k].y);
            c = take(c, u[k].z, v[k].z);
            d = take(d, u[k].w, v[k].w);
        }
    }
    // [/rounds]
    long long all = static_cast<long long>(gridDim.x) * BLOCK;
    for (long long i = rounds * 4 * ROUND + blockIdx.x * BLOCK + threadIdx.x; i < n; i += all) {
        a = take(a, x[i], y[i]);
    }
    return combine(combine(a, b), combine(c, d));
}
