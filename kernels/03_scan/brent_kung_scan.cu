// brent_kung_scan: inclusive scan of each row; a tree of sums upwards, then filled in downwards
//
// Launch: THREADS threads a block (a power of two), one block a row; 2 * THREADS elements at a time.
// Sizes: any number of rows from 1 to 2^31 - 1, rows of any length.
// Look at: 2 n - 2 - log2(n) additions in 2 log2(n) - 1 steps: few additions, but steps in which a
// handful of threads work while all wait at the barrier. Neighbouring threads work on elements a
// power of two apart, which lie in the same bank.
//
// PADDED  1: one unused word after every 32, so that elements 32 apart lie in different banks

#ifndef THREADS
#define THREADS 512
#endif
#ifndef PADDED
#define PADDED 0
#endif

constexpr int SECTION = 2 * THREADS;

static __device__ __forceinline__ unsigned at(unsigned i) {
    return PADDED ? i + i / 32 : i;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    brent_kung_scan(const float* in, float* out, int rows, int n) {
    __shared__ float sums[SECTION + (PADDED ? SECTION / 32 : 0)];
    const float* from = in + static_cast<long long>(blockIdx.x) * n;
    float* to = out + static_cast<long long>(blockIdx.x) * n;
    int t = threadIdx.x;
    float carry = 0.0f;
    for (long long start = 0; start < n; start += SECTION) {
        for (int i = t; i < SECTION; i += THREADS) {
            sums[at(i)] = start + i < n ? from[start + i] : 0.0f;
        }
        if (t == 0 && start > 0) {
            sums[0] += carry;  // goes to all that follow
        }
        // [brent_kung]
        // Up: element i comes to hold the sum of the 2 * distance elements that end with it.
        for (int distance = 1; distance <= THREADS; distance *= 2) {
            __syncthreads();
            int i = (t + 1) * 2 * distance - 1;
            if (i < SECTION) {
                sums[at(i)] += sums[at(i - distance)];
            }
        }
        // Down: what is complete at i completes the element half a span further on.
        for (int distance = THREADS / 2; distance > 0; distance /= 2) {
            __syncthreads();
            int i = (t + 1) * 2 * distance - 1;
            if (i + distance < SECTION) {
                sums[at(i + distance)] += sums[at(i)];
            }
        }
        __syncthreads();
        // [/brent_kung]
        for (int i = t; i < SECTION; i += THREADS) {
            if (start + i < n) {
                to[start + i] = sums[at(i)];
            }
        }
        if (start + SECTION < n) {
            carry = sums[at(SECTION - 1)];
            __syncthreads();
        }
    }
}
