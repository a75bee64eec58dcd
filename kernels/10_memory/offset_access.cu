// Misaligned access: neighbouring lanes, neighbouring elements, but the first is not on a boundary
//
// Launch: one thread an element, 256 threads a block, ceil(n / 256) blocks.
// Sizes: any n up to 2^31 - 256 and any offset: the index is computed in 64 bits.
// Look at: the 128 bytes of a warp lie in 4 sectors where the offset is a multiple of 8 elements, and
// in 5 elsewhere. The fifth is also the next warp's first, so L1 or L2 may spare DRAM the second trip.

// [offset_access]
extern "C" __global__ void offset_read(const float* in, float* out, int n, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = -in[static_cast<long long>(i) + offset];
    }
}

extern "C" __global__ void offset_write(const float* dense, float* shifted, int n, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        shifted[static_cast<long long>(i) + offset] = -dense[i];
    }
}
// [/offset_access]
