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

// Four chains a thread: shorter ones round less, and an addition waits less for the one before.
__device__ __forceinline__ void take_four(Element (&value)[4], Four x, Four y) {
    value[0] = take(value[0], x.x, y.x);
    value[1] = take(value[1], x.y, y.y);
    value[2] = take(value[2], x.z, y.z);
    value[3] = take(value[3], x.w, y.w);
}

// What this thread takes of x and y. For a given n and grid always the same, in the same order.
__device__ __forceinline__ Element own_share(const Element* __restrict__ x,
                                             const Element* __restrict__ y, long long n) {
    const Four* x4 = reinterpret_cast<const Four*>(x);
    const Four* y4 = reinterpret_cast<const Four*>(y);
    const unsigned grid_threads = gridDim.x * BLOCK;
    const long long vectors = aligned(x) && aligned(y) ? n / 4 : 0;
    Element value[4] = {identity(), identity(), identity(), identity()};
    Four u[VECTORS];
    Four v[VECTORS];

    // [rounds]
    // Rounds of the whole grid: every thread asks for VECTORS vectors before it adds up any.
    const long long whole = vectors - vectors % (grid_threads * VECTORS);
    for (long long i = static_cast<long long>(blockIdx.x) * ROUND + threadIdx.x; i < whole;
         i += grid_threads * VECTORS) {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            u[k] = x4[i + k * BLOCK];
            v[k] = OP == 2 ? y4[i + k * BLOCK] : u[k];
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            take_four(value, u[k], v[k]);
        }
    }
    // [/rounds]
    // [rest]
    // What is left is less than VECTORS a thread: dealt out evenly, so that nobody works for long.
    const unsigned mine = blockIdx.x * BLOCK + threadIdx.x;
    const long long rest = whole + mine;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        if (rest + k * grid_threads < vectors) {
            u[k] = x4[rest + k * grid_threads];
            v[k] = OP == 2 ? y4[rest + k * grid_threads] : u[k];
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        if (rest + k * grid_threads < vectors) {
            take_four(value, u[k], v[k]);
        }
    }
    // Up to three elements, or all where an array does not start on 16 bytes.
    for (long long i = 4 * vectors + mine; i < n; i += grid_threads) {
        value[0] = take(value[0], x[i], y[i]);
    }
    // [/rest]
    return combine(combine(value[0], value[1]), combine(value[2], value[3]));
}
