// selftest: kernels whose time is known, or known relative to each other
//
// Launch: wait_ns with one thread; fill and sum_up with a few blocks an SM, grid-stride.
// Look at: wait_ns times itself by the card's own nanosecond counter, a clock that has nothing to
//          do with the events it is held against.

extern "C" __global__ void wait_ns(long long* took, long long ns) {
    long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < ns);
    *took = now - start;
}

extern "C" __global__ void fill(float* scratch, long long m) {
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < m;
         i += step) {
        scratch[i] = 1.0f;
    }
}

// Inputs are below 1, so their sum is never 2n + 1: the loads stay, and nothing is written.
extern "C" __global__ void sum_up(const float* x, float* sink, long long n) {
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    float sum = 0.0f;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += step) {
        sum += x[i];
    }
    if (sum == 2.0f * static_cast<float>(n) + 1.0f) {
        *sink = sum;
    }
}
