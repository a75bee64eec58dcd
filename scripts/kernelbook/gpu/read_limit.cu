// read_limit: reads everything once and keeps nothing, as fast as a card can
//
// Launch: THREADS threads a block. STRETCH 0: any grid; blocks take rounds of THREADS * VECTORS
//         vectors of 16 bytes in turn. STRETCH > 0: a block takes that many rounds that lie side
//         by side, and the grid has to cover all of them.
// Look at: nothing depends on a load but an addition in a register, so what is measured is how fast
// bytes arrive. Loads of one round are under way together.
//
// Two arrays of na and nb words are read one after the other; the second may be empty. Words are
// added up modulo 2^32, which the host can check: with `keep`, every thread leaves its sum.

#ifndef THREADS
#define THREADS 512
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
#ifndef STRETCH
#define STRETCH 0
#endif
#ifndef ALLOCATE
#define ALLOCATE 0
#endif
#define ROUND (THREADS * VECTORS)

// Bypasses L1, unless ALLOCATE: what is read once is not worth a line of it.
__device__ __forceinline__ uint4 load(const uint4* p) {
#if ALLOCATE
    return *p;
#else
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
#endif
}

__device__ __forceinline__ unsigned add(uint4 v) { return (v.x + v.y) + (v.z + v.w); }

// Vectors `first` to `first + ROUND` of an array of n, as far as there are that many.
__device__ __forceinline__ unsigned round_of(const uint4* x, long long first, long long n) {
    uint4 v[VECTORS];
    unsigned sum = 0;
    const uint4* mine = x + first + threadIdx.x;
    if (first + ROUND <= n) {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            v[k] = load(mine + k * THREADS);
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            sum += add(v[k]);
        }
    } else {
        for (long long i = first + threadIdx.x; i < n; i += THREADS) {
            sum += add(load(x + i));
        }
    }
    return sum;
}

// The words after an array's last whole vector, by one thread each.
__device__ __forceinline__ unsigned rest_of(const unsigned* x, long long words) {
    long long i = words / 4 * 4 + threadIdx.x;
    return blockIdx.x == 0 && i < words ? x[i] : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    read_limit(const uint4* a, long long na, const uint4* b, long long nb, unsigned* sums,
               int keep) {
    long long vectors_of_a = na / 4;
    long long vectors_of_b = nb / 4;
    long long rounds_of_a = (vectors_of_a + ROUND - 1) / ROUND;
    long long rounds = rounds_of_a + (vectors_of_b + ROUND - 1) / ROUND;
#if STRETCH > 0
    long long r = static_cast<long long>(blockIdx.x) * STRETCH;
    long long last = r + STRETCH < rounds ? r + STRETCH : rounds;
    const int step = 1;
#else
    long long r = blockIdx.x;
    long long last = rounds;
    const int step = gridDim.x;
#endif
    unsigned sum = rest_of(reinterpret_cast<const unsigned*>(a), na) +
                   rest_of(reinterpret_cast<const unsigned*>(b), nb);
    for (; r < last; r += step) {
        sum += r < rounds_of_a ? round_of(a, r * ROUND, vectors_of_a)
                               : round_of(b, (r - rounds_of_a) * ROUND, vectors_of_b);
    }
    if (keep) {
        sums[static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x] = sum;
    }
}
