// vector_add: C[i] = A[i] + B[i]
//
// Launch: one thread an element, 256 threads a block, ceil(n / 256) blocks.
// Sizes: any n up to 2^31 - 256, since the index is an int that the last block rounds up.
// Look at: 12 bytes move for one addition, so DRAM sets the pace; neighbouring lanes touch
// neighbouring floats, so a warp's load is one request of four 32-byte sectors.

// [vector_add]
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {  // the grid is rounded up to whole blocks
        c[i] = a[i] + b[i];
    }
}
// [/vector_add]
