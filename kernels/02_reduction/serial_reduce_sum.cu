// serial_reduce_sum: one thread adds up everything, one element after the other
//
// Launch: one thread.
// Sizes: any n >= 0 an int can hold.
// Look at: not the time but the error. Every addition rounds to the precision of the growing sum,
// and n - 1 roundings follow one another. COMPENSATED 1 carries the lost part along (Kahan).

#ifndef COMPENSATED
#define COMPENSATED 0
#endif

extern "C" __global__ void serial_reduce_sum(const float* x, float* sum, int n) {
    float total = 0.0f;
#if COMPENSATED
    float lost = 0.0f;
    for (int i = 0; i < n; ++i) {
        // The intrinsics keep the compiler from simplifying what is zero in exact arithmetic.
        float value = __fsub_rn(x[i], lost);
        float next = __fadd_rn(total, value);
        lost = __fsub_rn(__fsub_rn(next, total), value);
        total = next;
    }
#else
    for (int i = 0; i < n; ++i) {
        total += x[i];
    }
#endif
    sum[0] = total;
}
