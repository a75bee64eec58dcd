// ffma_loop: multiply-adds on registers and nothing else, to see what the FMA units give
//
// Launch: 256 threads a block, as many blocks as the card holds at once; a thread an element.
// Look at: the main loop in SASS: UNROLL * CHAINS FFMAs and three instructions that count. No load,
//         no barrier, no dependence sooner than CHAINS multiply-adds later.
//
// Every chain runs v = v * a + b from another start to b / (1 - a), so that the compiler can leave
// out none of them, and the sum of all can be checked.

#define THREADS 256
#define CHAINS 16
#define UNROLL 16

extern "C" __global__ void __launch_bounds__(THREADS, 8)
    ffma_loop(const float* x, float* y, int n, int steps) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) {
        return;
    }
    const float b = x[i];
    const float a = 0.5f * b;
    float value[CHAINS];
#pragma unroll
    for (int j = 0; j < CHAINS; ++j) {
        value[j] = b + static_cast<float>(j);
    }
    // [main_loop]
#pragma unroll UNROLL
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int j = 0; j < CHAINS; ++j) {
            value[j] = fmaf(value[j], a, b);
        }
    }
    // [/main_loop]
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < CHAINS; ++j) {
        sum += value[j];
    }
    y[i] = sum;
}
