// single_pass_reduce: sum, maximum or dot product in one launch, the same bits every time
//
// Launch: BLOCK threads a block; the grid decides how x is cut: block b takes the b-th of gridDim.x
//         stretches of whole rounds. At most MAX_BLOCKS blocks. Not two launches at a time: the
//         blocks meet in variables of the module.
// Sizes: any n >= 0, any alignment; for n = 0 the result is the identity of the operation.
// Look at: nothing is left to the order in which blocks finish. Each leaves its partial result in a
// place of its own, and whichever block happens to come last adds all of them in the same order.
//
// OP       0: sum of x; 1: largest element of x; 2: dot product of x and y
// INTEGER  1: elements are int, and a sum is exact modulo 2^32
// VECTORS  loads of 16 bytes a thread and round (default 4)
// ORDERED  0: a ticket that orders nothing, wrong on purpose (default 1)

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
#ifndef ORDERED
#define ORDERED 1
#endif
#define MAX_BLOCKS 65536
#define WARP 32
#define ROUND (BLOCK * VECTORS)  // vectors of four elements a block and round

#if INTEGER
typedef int Element;
typedef int4 Four;
#else
typedef float Element;
typedef float4 Four;
#endif

__device__ Element partials[MAX_BLOCKS];
__device__ unsigned arrived;  // blocks that have left their partial result; 0 between launches

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
    return value;
}

__device__ Element block_combine(Element value) {
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

// What this block adds up: whole rounds of a stretch of its own, then its share of what is left.
__device__ __forceinline__ Element own_share(const Element* x, const Element* y, long long n) {
    long long t = threadIdx.x;
    // [stretch]
    long long rounds = aligned(x) && aligned(y) ? n / (4 * ROUND) : 0;
    long long first = rounds * blockIdx.x / gridDim.x;
    long long last = rounds * (blockIdx.x + 1) / gridDim.x;
    // Four chains a thread: shorter chains round less and wait less for one another.
    Element a = identity(), b = identity(), c = identity(), d = identity();
    for (long long r = first; r < last; ++r) {
        Four u[VECTORS];
        Four v[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            u[k] = reinterpret_cast<const Four*>(x)[r * ROUND + k * BLOCK + t];
#if OP == 2
            v[k] = reinterpret_cast<const Four*>(y)[r * ROUND + k * BLOCK + t];
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
    // [/stretch]
    long long all = static_cast<long long>(gridDim.x) * BLOCK;
    for (long long i = rounds * 4 * ROUND + blockIdx.x * BLOCK + t; i < n; i += all) {
        a = take(a, x[i], y[i]);
    }
    return combine(combine(a, b), combine(c, d));
}

// [last_block]
// Leaves a block's partial result; true in the block that is the last to do so. The ticket releases
// what was written before it and acquires what the others released; after the last it is 0 again.
__device__ __forceinline__ bool leave(Element partial) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        unsigned ticket;
        partials[blockIdx.x] = partial;
#if ORDERED
        asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
                     : "=r"(ticket)
                     : "l"(&arrived), "r"(gridDim.x - 1)
                     : "memory");
#else
        ticket = atomicInc(&arrived, gridDim.x - 1);
#endif
        last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    return last;
}
// [/last_block]

// [single_pass_reduce]
extern "C" __global__ void __launch_bounds__(BLOCK)
    single_pass_reduce(const Element* x, const Element* y, Element* result, long long n) {
    Element value = block_combine(own_share(x, y, n));
    if (leave(value)) {
        value = identity();
        for (int b = threadIdx.x; b < gridDim.x; b += BLOCK) {
            value = combine(value, partials[b]);
        }
        value = block_combine(value);
        if (threadIdx.x == 0) {
            result[0] = value;
        }
    }
}
// [/single_pass_reduce]
