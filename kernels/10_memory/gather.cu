// gather: out[i] = table[somewhere], at random
//
// Launch: one thread an element, 256 threads a block, ceil(n / 256) blocks.
// Sizes: any n up to 2^31 - 256 and any size of the table up to 2^31 - 1. An index is a 31-bit fraction
//        of the table, so that random numbers name its elements evenly, whatever its size.
// Look at: the indices arrive in order, 4 sectors a request. What they name lies in up to 32 sectors,
// 4 bytes of each. A table that L2 holds is another case than one that it does not.

// [gather]
extern "C" __global__ void gather(const int* index, const float* table, float* out, int n,
                                  int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        long long at = static_cast<long long>(index[i]) * size >> 31;
        out[i] = table[at];
    }
}
// [/gather]
