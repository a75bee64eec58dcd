// kogge_stone_scan: inclusive scan of each row; every thread adds what lies 1, 2, 4, … before it
//
// Launch: THREADS threads a block (a power of two), one block a row; THREADS elements at a time.
// Sizes: any number of rows from 1 to 2^31 - 1, rows of any length.
// Look at: log2(THREADS) steps, which no scan by pairs of elements can beat, but nearly every thread
// adds in each of them: n log2(n) additions where n - 1 are enough.
//
// BUFFERS  2: a step reads one copy and writes the other, one barrier a step
//          1: reads and writes the same copy with the same single barrier: a race, wrong on purpose

#ifndef THREADS
#define THREADS 1024
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    kogge_stone_scan(const float* in, float* out, int rows, int n) {
    __shared__ float buffer[BUFFERS][THREADS];
    const float* from = in + static_cast<long long>(blockIdx.x) * n;
    float* to = out + static_cast<long long>(blockIdx.x) * n;
    int t = threadIdx.x;
    float carry = 0.0f;  // the sum of what earlier rounds have scanned
    for (long long start = 0; start < n; start += THREADS) {
        bool inside = start + t < n;
        float sum = inside ? from[start + t] : 0.0f;
        if (t == 0 && start > 0) {
            sum += carry;  // goes to all that follow
        }
        // [kogge_stone]
        int now = 0;
        buffer[now][t] = sum;
        __syncthreads();
        for (int distance = 1; distance < THREADS; distance *= 2) {
            if (t >= distance) {
                sum += buffer[now][t - distance];
            }
            now = (now + 1) % BUFFERS;
            buffer[now][t] = sum;
            __syncthreads();
        }
        // [/kogge_stone]
        if (inside) {
            to[start + t] = sum;
        }
        if (start + THREADS < n) {  // another round, the same for all threads
            carry = buffer[now][THREADS - 1];
            __syncthreads();
        }
    }
}
