// Array of structures against structure of arrays: four floats a point, all of them read or one
//
// Launch: one thread a point, 256 threads a block, ceil(n / 256) blocks.
// Sizes: any n up to 2^31 - 256 points; the fields of `soa` lie n elements apart, in 64-bit arithmetic.
// Look at: a point in one 16-byte load is 16 sectors a request, all of them used. Field by field each
// load of a warp spans the same 16 sectors and takes 4 bytes in 16 of each; L1 has to keep them for
// the next three. One field alone moves four times what it needs; of `soa` it moves nothing else.

struct Point {
    float x, y, z, w;
};

static __device__ __forceinline__ float length_squared(float x, float y, float z, float w) {
    return x * x + y * y + z * z + w * w;
}

// [aos]
// As a structure of floats is compiled: a float is aligned to 4 bytes, so its fields come one by one.
extern "C" __global__ void aos_fields(const Point* points, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = length_squared(points[i].x, points[i].y, points[i].z, points[i].w);
    }
}

// float4 is aligned to 16 bytes: one load.
extern "C" __global__ void aos_whole(const float4* points, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 p = points[i];
        out[i] = length_squared(p.x, p.y, p.z, p.w);
    }
}

extern "C" __global__ void aos_one(const Point* points, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = points[i].x * points[i].x;
    }
}
// [/aos]

// [soa]
extern "C" __global__ void soa_all(const float* fields, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float* x = fields + i;
        long long next = n;
        out[i] = length_squared(x[0], x[next], x[2 * next], x[3 * next]);
    }
}

extern "C" __global__ void soa_one(const float* fields, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = fields[i] * fields[i];
    }
}
// [/soa]
