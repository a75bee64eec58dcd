// relu_vectorized_short: float4 without a tail, as it is often written. Wrong on purpose.
//
// Launch: 256 threads a block, ceil(n / 1024) blocks, at least one.
// Look at: the guard lets whole quads pass and nothing does what is left, so the last n % 4 elements
// are never written; and an array that does not begin on 16 bytes is a fault.

// [relu_vectorized_short]
extern "C" __global__ void relu_vectorized_short(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4LL * i + 3 < n) {
        float4 q = reinterpret_cast<const float4*>(x)[i];
        q.x = fmaxf(0.0f, q.x);
        q.y = fmaxf(0.0f, q.y);
        q.z = fmaxf(0.0f, q.z);
        q.w = fmaxf(0.0f, q.w);
        reinterpret_cast<float4*>(y)[i] = q;
    }
}
// [/relu_vectorized_short]
