// flush: what the harness itself runs between samples
//
// Launch: flush_write and flush_read with a few blocks an SM, grid-stride; spin and empty with one
//         thread.
// Look at: the order. Writing pushes old lines out of L2 but leaves dirty ones that the measured
// kernel would have to write back; reading other memory after it pushes those out in turn.

extern "C" __global__ void flush_write(float4* scratch, long long n, float value) {
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += step) {
        scratch[i] = make_float4(value, value, value, value);
    }
}

// The sum is stored only if it is `never`, which it is not: the loads cannot be optimised away.
extern "C" __global__ void flush_read(const float4* scratch, long long n, float never,
                                      float* sink) {
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    float sum = 0.0f;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += step) {
        float4 v = scratch[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == never) {
        *sink = sum;
    }
}

// Keeps the device busy while the host queues what is to be timed, so that no measured time
// contains the host's own.
extern "C" __global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

extern "C" __global__ void empty() {}
