// Strided access: n elements are touched whatever the stride, so the useful bytes are always the same
//
// Launch: one thread an element touched, 256 threads a block, ceil(n / 256) blocks.
// Sizes: any n up to 2^31 - 256 and any stride of at least 1. The element's index is computed in 64
//        bits: at a stride of 32 an int would overflow from n = 2^26 on.
// Look at: neighbouring lanes are 4 * stride bytes apart. A sector is 32 bytes, so a request of a warp
// takes 4, 8, 16, 32, 32, 32 sectors at strides 1, 2, 4, 8, 16, 32: from 8 on, each lane has one.

// [good_access]
extern "C" __global__ void good_access(float* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] = -data[i];
    }
}
// [/good_access]

// [bad_access]
extern "C" __global__ void bad_access(float* data, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        long long at = static_cast<long long>(i) * stride;
        data[at] = -data[at];
    }
}
// [/bad_access]

// [one_side]
// Only the reads are strided ...
extern "C" __global__ void strided_read(const float* data, float* dense, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        dense[i] = -data[static_cast<long long>(i) * stride];
    }
}

// ... or only the writes.
extern "C" __global__ void strided_write(const float* dense, float* data, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[static_cast<long long>(i) * stride] = -dense[i];
    }
}
// [/one_side]
