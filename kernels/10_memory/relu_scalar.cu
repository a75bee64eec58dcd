// relu_scalar: y[i] = max(0, x[i]), one float a thread
//
// Launch: 256 threads a block, ceil(n / 256) blocks, at least one.
// Sizes: any n up to 2^31 - 256: blockIdx.x * blockDim.x is a product of 32-bit numbers.
// Look at: 4 bytes under way a thread, 8 KiB an SM that is full.

// [relu_scalar]
extern "C" __global__ void relu_scalar(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = fmaxf(0.0f, x[i]);
    }
}
// [/relu_scalar]
