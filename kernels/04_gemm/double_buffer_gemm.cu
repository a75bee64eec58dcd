// double_buffer_gemm: tiled_gemm with two buffers, fetching the next tile in three ways
//
// Launch: 32x32 threads a block, one element of C each, grid (ceil(k/32), ceil(m/32)).
// Look at: when a warp waits for the fetch. A store to shared memory cannot begin before the value
// to be stored has arrived, so "load and store, then compute" waits first and computes later,
// however many buffers there are.
//
// OVERLAP  0: load and store before computing, as published: one barrier a tile instead of two,
//             but no overlap
//          1: load into registers before computing, store after
//          2: cp.async: the copy goes to shared memory on its own (compute capability 8.0)

#ifndef OVERLAP
#define OVERLAP 0
#endif
#define TILE 32

#if OVERLAP == 2
static __device__ void copy_async(float* to, const float* from, bool inside) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    // Reads nothing and writes a zero where the source size is 0.
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 4 : 0)
                 : "memory");
}

static __device__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#endif

extern "C" __global__ void double_buffer_gemm(const float* a, const float* b, float* c, int m,
                                              int n, int k) {
    __shared__ float tile_a[2][TILE][TILE];
    __shared__ float tile_b[2][TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    const float* row_a = a + static_cast<size_t>(row) * n;
    int buffer = 0;
    float value = 0.0f;

#if OVERLAP == 2
    copy_async(&tile_a[0][ty][tx], row < m && tx < n ? row_a + tx : a, row < m && tx < n);
    copy_async(&tile_b[0][ty][tx], ty < n && col < k ? b + static_cast<size_t>(ty) * k + col : b,
               ty < n && col < k);
    wait_for_copies();
#else
    tile_a[0][ty][tx] = row < m && tx < n ? row_a[tx] : 0.0f;
    tile_b[0][ty][tx] = ty < n && col < k ? b[static_cast<size_t>(ty) * k + col] : 0.0f;
#endif
    __syncthreads();

    // [tile_loop]
    for (int start = 0; start < n; start += TILE) {
        int x = start + TILE + tx;
        int y = start + TILE + ty;
        bool in_a = row < m && x < n;
        bool in_b = y < n && col < k;
        const float* next_a = in_a ? row_a + x : a;
        const float* next_b = in_b ? b + static_cast<size_t>(y) * k + col : b;
        int other = 1 - buffer;
#if OVERLAP == 0
        tile_a[other][ty][tx] = in_a ? *next_a : 0.0f;
        tile_b[other][ty][tx] = in_b ? *next_b : 0.0f;
#elif OVERLAP == 1
        float held_a = in_a ? *next_a : 0.0f;
        float held_b = in_b ? *next_b : 0.0f;
#else
        copy_async(&tile_a[other][ty][tx], next_a, in_a);
        copy_async(&tile_b[other][ty][tx], next_b, in_b);
#endif
        for (int i = 0; i < TILE; ++i) {
            value = fmaf(tile_a[buffer][ty][i], tile_b[buffer][i][tx], value);
        }
#if OVERLAP == 1
        tile_a[other][ty][tx] = held_a;
        tile_b[other][ty][tx] = held_b;
#elif OVERLAP == 2
        wait_for_copies();
#endif
        __syncthreads();  // the next tile is complete, and nobody still reads this one
        buffer = other;
    }
    // [/tile_loop]

    if (row < m && col < k) {
        c[static_cast<size_t>(row) * k + col] = value;
    }
}
