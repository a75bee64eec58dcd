// vectorized_reduce: as many blocks as fit the card, striding over x in vectors of 16 bytes
//
// Launch: BLOCK threads a block, any number of blocks: as many as are resident at once.
// Sizes: any n >= 0, any alignment; result[0] must be 0 before the launch. Sums and dot products.
// Look at: a thread has VECTORS loads of 16 bytes under way before it adds anything, and a block's
// tree and atomic are paid once a block, however long x is. What remains is that the order of the
// atomic additions, and with it the last bits of the result, is left to chance.

#include "reduce.cuh"

// [vectorized_reduce]
extern "C" __global__ void __launch_bounds__(BLOCK)
    vectorized_reduce(const Element* x, const Element* y, Element* result, long long n) {
    Element value = block_combine(own_share(x, y, n));
    if (threadIdx.x == 0) {
        atomicAdd(result, value);
    }
}
// [/vectorized_reduce]
