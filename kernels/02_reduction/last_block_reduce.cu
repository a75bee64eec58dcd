// last_block_reduce: one launch, and the block that finishes last adds up what all have left
//
// Launch: BLOCK threads a block, at most MAX_BLOCKS blocks. Not two launches at a time: the blocks
//         meet in variables of the module.
// Sizes: any n >= 0, any alignment; for n = 0 the result is the identity of the operation.
// Look at: the result no longer depends on who finishes when. The ticket must order what was
// written before it: ORDERED 0 leaves that out, and the last block may read old partial results.

#include "reduce.cuh"

#ifndef ORDERED
#define ORDERED 1
#endif
#define MAX_BLOCKS 65536

__device__ Element partials[MAX_BLOCKS];
__device__ unsigned arrived;  // blocks that have left their partial result; 0 between launches

// [leave]
// Leaves a block's partial result; true in the block that is the last to do so. The ticket releases
// what was written before it and acquires what the others released; after the last it is 0 again.
__device__ __forceinline__ bool leave(Element partial) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        unsigned ticket;
        partials[blockIdx.x] = partial;
#if ORDERED
        asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
                     : "=r"(ticket)
                     : "l"(&arrived), "r"(gridDim.x - 1)
                     : "memory");
#else
        ticket = atomicInc(&arrived, gridDim.x - 1);
#endif
        last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    return last;
}
// [/leave]

// [last_block_reduce]
extern "C" __global__ void __launch_bounds__(BLOCK)
    last_block_reduce(const Element* x, const Element* y, Element* result, long long n) {
    Element value = block_combine(own_share(x, y, n));
    if (leave(value)) {
        value = identity();
        for (int b = threadIdx.x; b < gridDim.x; b += BLOCK) {
            value = combine(value, partials[b]);
        }
        value = block_combine(value);
        if (threadIdx.x == 0) {
            result[0] = value;
        }
    }
}
// [/last_block_reduce]
