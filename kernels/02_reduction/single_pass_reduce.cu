// single_pass_reduce: one launch, the same bits every time, and next to nothing after the last load
//
// Launch: BLOCK threads a block, at most MAX_BLOCKS blocks. Not two launches at a time: the blocks
//         meet in variables of the module.
// Sizes: any n >= 0, any alignment; for n = 0 the result is the identity of the operation.
// Look at: last_block_reduce waits three times for L2 after its last addition: for the write of its
// partial result, for the ticket, for the partial results of the others. Here a partial result and
// the mark that it is there are one word. The ticket has nothing to order and is asked for at
// once; who sees a mark has the value, too. And one warp finishes, without barriers.

#include "reduce.cuh"

#define MAX_BLOCKS 65536
#define BATCH 8  // slots a lane asks for before it looks at the first answer

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

// [gather]
// The partial results of all blocks, in the order of the blocks; leaves the slots empty. A slot
// may still be on its way when its block's ticket is not: it is looked at until it is there.
__device__ __forceinline__ Element gather(int lane) {
    Element value = identity();
    for (unsigned first = lane; first < gridDim.x; first += WARP * BATCH) {
        Slot found[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            unsigned b = first + k * WARP;
            found[k] = b < gridDim.x ? look(&slots[b]) : slot_of(identity());
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            unsigned b = first + k * WARP;
            while (!(found[k] & PRESENT)) {
                found[k] = look(&slots[b]);
            }
            if (b < gridDim.x) {
                put(&slots[b], 0);
            }
            value = combine(value, value_of(found[k]));
        }
    }
    return warp_combine(value);
}
// [/gather]

// [single_pass_reduce]
extern "C" __global__ void __launch_bounds__(BLOCK)
    single_pass_reduce(const Element* x, const Element* y, Element* result, long long n) {
    Element value = block_combine(own_share(x, y, n));
    int lane = threadIdx.x;
    if (lane >= WARP) {
        return;
    }
    if (gridDim.x > 1) {
        unsigned ticket = 0;
        if (lane == 0) {
            put(&slots[blockIdx.x], slot_of(value));
            ticket = atomicInc(&arrived, gridDim.x - 1);
        }
        if (__shfl_sync(0xffffffff, ticket, 0) != gridDim.x - 1) {
            return;  // somebody else is the last
        }
        value = gather(lane);
    }
    if (lane == 0) {
        result[0] = value;
    }
}
// [/single_pass_reduce]
