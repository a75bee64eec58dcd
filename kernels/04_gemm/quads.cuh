// Loads and stores of four neighbouring floats that are right for every size and alignment.
//
// A row starts at a multiple of 16 bytes only if its length is a multiple of four floats and its
// matrix is aligned; elsewhere a 16-byte access faults. Whether it is so is the same for all
// threads, so the kernels ask once and the compiler makes two versions of them.

#pragma once

static __device__ __forceinline__ bool aligned(const float* matrix, int columns) {
    return columns % 4 == 0 && reinterpret_cast<size_t>(matrix) % 16 == 0;
}

static __device__ __forceinline__ float4 zeros() {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// Four neighbouring floats of a rows x columns matrix, zeros outside it.
template <bool WIDE>
static __device__ __forceinline__ float4 load_quad(const float* matrix, int rows, int columns,
                                                   int row, int col) {
    float4 quad = zeros();
    if (row < rows && col < columns) {
        const float* from = matrix + static_cast<size_t>(row) * columns + col;
        if (WIDE) {
            quad = *reinterpret_cast<const float4*>(from);
        } else {
            quad.x = from[0];
            quad.y = col + 1 < columns ? from[1] : 0.0f;
            quad.z = col + 2 < columns ? from[2] : 0.0f;
            quad.w = col + 3 < columns ? from[3] : 0.0f;
        }
    }
    return quad;
}

template <bool WIDE>
static __device__ __forceinline__ void store_quad(float* matrix, int rows, int columns, int row,
                                                  int col, float4 quad) {
    if (row < rows && col < columns) {
        float* to = matrix + static_cast<size_t>(row) * columns + col;
        if (WIDE) {
            *reinterpret_cast<float4*>(to) = quad;
        } else {
            to[0] = quad.x;
            if (col + 1 < columns) to[1] = quad.y;
            if (col + 2 < columns) to[2] = quad.z;
            if (col + 3 < columns) to[3] = quad.w;
        }
    }
}

// Four floats of shared memory in one 128-bit access; p is a multiple of 16 bytes.
static __device__ __forceinline__ float4 shared_quad(const float* p) {
    return *reinterpret_cast<const float4*>(p);
}

static __device__ __forceinline__ void put_quad(float* p, float4 quad) {
    *reinterpret_cast<float4*>(p) = quad;
}

// A quad along a row goes into a column of a transposed tile: four rows of it, pitch floats apart.
static __device__ __forceinline__ void put_column(float* p, int pitch, float4 quad) {
    p[0] = quad.x;
    p[pitch] = quad.y;
    p[2 * pitch] = quad.z;
    p[3 * pitch] = quad.w;
}

static __device__ __forceinline__ float part(float4 quad, int i) {
    return i == 0 ? quad.x : i == 1 ? quad.y : i == 2 ? quad.z : quad.w;
}
