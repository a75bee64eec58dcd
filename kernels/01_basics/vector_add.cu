// vector_add: C[i] = A[i] + B[i]
//
// Launch: one thread an element, 256 threads a block, ceil(n / 256) blocks.
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
