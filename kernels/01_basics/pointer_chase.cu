// pointer_chase: one thread, each load's address comes from the load before
//
// Launch: one thread. The array's size decides which level of the memory hierarchy answers.
// Look at: time / steps is the latency of one load plus the dozen cycles of the add, the mask and
// the address; nothing overlaps, so bandwidth plays no part.

// [pointer_chase]
extern "C" __global__ void pointer_chase(const int* table, int* last, int n, int steps) {
    unsigned i = 0;
    unsigned jump = 0;
    for (int s = 0; s < steps; ++s) {
        // Each address waits for the load before it. Without the growing jump, a walk over random
        // entries runs in a circle after about sqrt(n) steps and never leaves the L1; n is a power
        // of two.
        i = (static_cast<unsigned>(table[i]) + jump) & (n - 1);
        jump += 0x9e3779b9u;
    }
    *last = static_cast<int>(i);
}
// [/pointer_chase]
