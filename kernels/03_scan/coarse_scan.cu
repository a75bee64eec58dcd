// coarse_scan: inclusive scan of each row; a thread scans ITEMS neighbours alone, then threads join
//
// Launch: THREADS threads a block (a power of two), one block a row; THREADS * ITEMS elements at a
//         time.
// Sizes: any number of rows from 1 to 2^31 - 1, rows of any length.
// Look at: the serial part needs neither barrier nor second copy, and what is left for Kogge-Stone
// is one number a thread. Global accesses stay coalesced because elements go through shared memory;
// there a thread's neighbours lie ITEMS words from another thread's, which costs bank conflicts.
//
// ITEMS   elements a thread (default 4)
// PADDED  1: one unused word after every 32

#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 4
#endif
#ifndef PADDED
#define PADDED 0
#endif

constexpr int SECTION = THREADS * ITEMS;

static __device__ __forceinline__ unsigned at(unsigned i) {
    return PADDED ? i + i / 32 : i;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    coarse_scan(const float* in, float* out, int rows, int n) {
    __shared__ float elements[SECTION + (PADDED ? SECTION / 32 : 0)];
    __shared__ float totals[2][THREADS];
    const float* from = in + static_cast<long long>(blockIdx.x) * n;
    float* to = out + static_cast<long long>(blockIdx.x) * n;
    int t = threadIdx.x;
    float carry = 0.0f;
    for (long long start = 0; start < n; start += SECTION) {
        for (int i = t; i < SECTION; i += THREADS) {
            elements[at(i)] = start + i < n ? from[start + i] : 0.0f;
        }
        __syncthreads();
        // [coarse]
        float own[ITEMS];  // running sums of this thread's neighbours
        own[0] = elements[at(t * ITEMS)];
#pragma unroll
        for (int i = 1; i < ITEMS; ++i) {
            own[i] = own[i - 1] + elements[at(t * ITEMS + i)];
        }
        int now = 0;
        float sum = own[ITEMS - 1];
        totals[now][t] = sum;
        __syncthreads();
        for (int distance = 1; distance < THREADS; distance *= 2) {
            if (t >= distance) {
                sum += totals[now][t - distance];
            }
            now = 1 - now;
            totals[now][t] = sum;
            __syncthreads();
        }
        float before = carry + (t > 0 ? totals[now][t - 1] : 0.0f);
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            elements[at(t * ITEMS + i)] = before + own[i];
        }
        // [/coarse]
        __syncthreads();
        for (int i = t; i < SECTION; i += THREADS) {
            if (start + i < n) {
                to[start + i] = elements[at(i)];
            }
        }
        if (start + SECTION < n) {
            carry = elements[at(SECTION - 1)];
            __syncthreads();
        }
    }
}
