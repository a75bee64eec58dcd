// single_pass_reduce: one launch, the same bits every time, and next to nothing after the last load
//
// Launch: BLOCK threads a block, at most MAX_BLOCKS blocks. Not two launches at a time: the blocks
//         meet in variables of the module.
// Sizes: any n >= 0, any alignment; for n = 0 the result is the identity of the operation.
// Look at: last_block_reduce waits three times for L2 after its last addition: until its partial
// result is written, for its ticket, and for the partial results of the others. Here a partial
// result and the mark that it is there are one word, so the ticket has nothing to order: it is
// asked for at once, and everybody's slots with it. Who sees a mark has the value, too.

#include "reduce.cuh"

#define MAX_BLOCKS 65536
typedef unsigned long long Slot;  // a partial result in the low half, PRESENT, or 0: empty
#define PRESENT (1ull << 32)

__device__ Slot slots[MAX_BLOCKS];  // empty between launches
__device__ unsigned arrived;        // tickets taken; 0 between launches

__device__ __forceinline__ Slot slot_of(Element value) {
    return PRESENT | reinterpret_cast<unsigned&>(value);
}

__device__ __forceinline__ Element value_of(Slot slot) {
    unsigned bits = static_cast<unsigned>(slot);
    return reinterpret_cast<Element&>(bits);
}

// Relaxed accesses at the scope of the card: one word whole, ordered with nothing else.
__device__ __forceinline__ Slot look(const Slot* slot) {
    Slot found;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(found) : "l"(slot) : "memory");
    return found;
}

__device__ __forceinline__ void put(Slot* slot, Slot value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(slot), "l"(value) : "memory");
}

// [slot]
// The partial result of a block, `found` being the first look at its slot. It may still be on its
// way when its block's ticket is not: then it is looked at again. Leaves the slot empty.
__device__ __forceinline__ Element taken_from(Slot* slot, Slot found) {
    while (!(found & PRESENT)) {
        found = look(slot);
    }
    put(slot, 0);
    return value_of(found);
}
// [/slot]

// [single_pass_reduce]
extern "C" __global__ void __launch_bounds__(BLOCK)
    single_pass_reduce(const Element* x, const Element* y, Element* result, long long n) {
    __shared__ bool last;
    const unsigned t = threadIdx.x;
    Element value = block_combine(own_share(x, y, n));
    if (gridDim.x > 1) {
        unsigned ticket = 0;
        if (t == 0) {
            put(&slots[blockIdx.x], slot_of(value));
            ticket = atomicInc(&arrived, gridDim.x - 1);
        }
        Slot early = t < gridDim.x ? look(&slots[t]) : 0;
        if (t == 0) {
            last = ticket == gridDim.x - 1;
        }
        __syncthreads();
        if (!last) {
            return;
        }
        // In the order of the blocks, whoever is the last.
        value = t < gridDim.x ? taken_from(&slots[t], early) : identity();
        for (unsigned b = t + BLOCK; b < gridDim.x; b += BLOCK) {
            value = combine(value, taken_from(&slots[b], look(&slots[b])));
        }
        value = block_combine(value);
    }
    if (t == 0) {
        result[0] = value;
    }
}
// [/single_pass_reduce]
