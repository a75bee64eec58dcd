// single_pass_reduce: one launch, the same bits every time, and next to nothing after the last load
//
// Launch: BLOCK threads a block, at most MAX_BLOCKS blocks. Not two launches at a time: the blocks
//         meet in variables of the module.
// Sizes: any n >= 0, any alignment; for n = 0 the result is the identity of the operation.
// Look at: last_block_reduce waits three times for L2 after its last addition: until its partial
// result is written, for its ticket, and for the partial results of the others. Here a partial
// result and the mark that it is there are one word, so the ticket has nothing to order and is
// asked for at once. Who sees a mark has the value, too.

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

// [taken]
// The partial result of a block; leaves its slot empty. It may still be on its way when the block's
// ticket is not: then the slot is looked at again.
__device__ __forceinline__ Element taken(Slot* slot) {
    Slot found = look(slot);
    while (!(found & PRESENT)) {
        found = look(slot);
    }
    put(slot, 0);
    return value_of(found);
}
// [/taken]

// [single_pass_reduce]
extern "C" __global__ void __launch_bounds__(BLOCK)
    single_pass_reduce(const Element* x, const Element* y, Element* result, long long n) {
    __shared__ bool last;
    const unsigned t = threadIdx.x;
    Element value = block_combine(own_share(x, y, n));
    if (gridDim.x > 1) {
        if (t == 0) {
            put(&slots[blockIdx.x], slot_of(value));
            last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (!last) {
            return;
        }
        value = identity();  // and again in the order of the blocks, whoever is the last
        for (unsigned b = t; b < gridDim.x; b += BLOCK) {
            value = combine(value, taken(&slots[b]));
        }
        value = block_combine(value);
    }
    if (t == 0) {
        result[0] = value;
    }
}
// [/single_pass_reduce]
