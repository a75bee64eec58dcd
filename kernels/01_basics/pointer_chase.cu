// pointer_chase: one thread, each load's address comes from the load before
//
// Launch: one thread. The array's size decides which level of the memory hierarchy answers.
// Look at: time / steps is the latency of one load, plus the few cycles of the address
// arithmetic; nothing overlaps, so bandwidth plays no part.

// [pointer_chase]
extern "C" __global__ void pointer_chase(const int* table, int* last, int n, int steps) {
    unsigned i = 0;
    for (int s = 0; s < steps; ++s) {
        // n is a power of two. The multiplier spreads the walk over the whole array, and the
        // value that was loaded makes each address wait for the load before it.
        i = (i * 1664525u + static_cast<unsigned>(table[i]) + 1013904223u) & (n - 1);
    }
    *last = static_cast<int>(i);
}
// [/pointer_chase]
