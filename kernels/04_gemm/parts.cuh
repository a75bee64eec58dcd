// The way out of parts_gemm: from the slices' tiles in shared memory to C, or to where the parts of
// a tile of C add up.

#pragma once

#define QUADS (BM * BN / 4)

static __device__ __forceinline__ int row_of(int quad) { return quad / (BN / 4); }

static __device__ __forceinline__ int col_of(int quad) { return quad % (BN / 4) * 4; }

static __device__ __forceinline__ float4 sum_of_slices(const float* shared, int quad) {
    float4 sum = quad_of_sum(shared, row_of(quad), col_of(quad), 0);
#pragma unroll
    for (int slice = 1; slice < SLICES; ++slice) {
        sum = sum_of_quads(sum, quad_of_sum(shared + slice * TILE_OF_SUM, row_of(quad),
                                            col_of(quad), 0));
    }
    return sum;
}

// [store_rows]
// Rows that are not aligned go out float by float, a row a warp: a thread keeps its columns, so
// that only its row is left to count and to test.
static __device__ __forceinline__ void store_rows(float* c, int m, int k, int first_row,
                                                  int first_col, const float* shared) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    float* to = c + static_cast<size_t>(first_row + warp) * k + first_col + lane;
    const float* from = shared + place_of_sum(warp, lane);
#pragma unroll 4
    for (int y = warp; y < min(BM, m - first_row); y += WARPS) {
#pragma unroll
        for (int x = 0; x < BN; x += 32) {
            float sum = from[x / 4];
#pragma unroll
            for (int slice = 1; slice < SLICES; ++slice) {
                sum += from[slice * TILE_OF_SUM + x / 4];
            }
            if (first_col + lane + x < k) {
                to[x] = sum;
            }
        }
        from += WARPS * (BN + 1);
        to += static_cast<size_t>(WARPS) * k;
    }
}
// [/store_rows]

#if PARTS
static __device__ __forceinline__ int parts_of_tile() { return gridDim.y * gridDim.z; }

static __device__ __forceinline__ int part_of_tile() {
    return blockIdx.z * gridDim.y + blockIdx.y;
}

// [parts]
// Every part leaves its sums in a room of its own. Blocks start in the order of z, y and x: those
// of the last z, which all fit on the card at once, wait until all parts of their tile are there,
// and add up a share of it each. A block counts before it waits, and none waits for one that comes
// after the last z. CUDA does not promise that order, nor that no other program holds a part of the
// card: what is promised is the number of blocks (see rounds_of in configurations.py).
//
// One counter a tile: it counts the parts that are there, then the waiting blocks that are done;
// the last of those wraps it to zero for the next launch. Two launches at once would meet in the
// same rooms, and one that is cut short leaves its counts to the next.
static __device__ float4 rooms[MAX_PARTS][QUADS];
static __device__ unsigned counted[MAX_PARTS];

static __device__ __forceinline__ void count() {
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.inc.u32 [%0], %1;" ::"l"(&counted[blockIdx.x]),
                     "r"(parts_of_tile() + gridDim.y - 1)
                     : "memory");
    }
}

static __device__ __forceinline__ void await_parts() {
    if (threadIdx.x == 0) {
        unsigned seen;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(seen)
                         : "l"(&counted[blockIdx.x])
                         : "memory");
        } while (seen < parts_of_tile());
    }
    __syncthreads();
}

// [/parts]

// [add_parts]
template <bool WIDE>
static __device__ __forceinline__ void add_parts(float* c, int m, int k, int first_row,
                                                 int first_col, const float* shared) {
    const int parts = parts_of_tile(), part = part_of_tile();
    const bool adds = blockIdx.z == gridDim.z - 1;
    const int share = (QUADS + gridDim.y - 1) / gridDim.y;
    const int low = adds ? blockIdx.y * share : 0;
    const int high = adds ? min(QUADS, low + share) : 0;
    float4* room = rooms[blockIdx.x * parts + part];
#pragma unroll 4
    for (int q = threadIdx.x; q < QUADS; q += THREADS) {
        if (q < low || q >= high) {  // its own share stays where it is
            __stcg(room + q, sum_of_slices(shared, q));
        }
    }
    count();
    if (!adds) {
        return;
    }
    await_parts();
    const float4* of_tile = rooms[blockIdx.x * parts];
    for (int q = low + threadIdx.x; q < high; q += THREADS) {
        float4 sum = zeros();
#pragma unroll 8
        for (int p = 0; p < part; ++p) {
            sum = sum_of_quads(sum, __ldcg(of_tile + p * QUADS + q));
        }
        sum = sum_of_quads(sum, sum_of_slices(shared, q));
#pragma unroll 8
        for (int p = part + 1; p < parts; ++p) {
            sum = sum_of_quads(sum, __ldcg(of_tile + p * QUADS + q));
        }
        put_in_c<WIDE>(c, m, k, first_row + row_of(q), first_col + col_of(q), false, sum);
    }
    count();
}
// [/add_parts]
#endif
