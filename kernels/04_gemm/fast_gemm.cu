// fast_gemm: the whole ladder in one kernel, its shape chosen by size
//
// Launch: one block a BM x BN tile of C in x, tiles counted along bands of GROUP rows of tiles;
//         SPLIT_K blocks a tile in z; THREADS threads; SHARED_FLOATS floats of dynamic shared
//         memory (kernels/04_gemm/experiments.py computes both).
// Look at: what binds is not memory but the read ports of the register file. Two banks give a
// multiply-add one register each in a cycle, and it wants three: one has to come from the reuse
// cache, and the other two from different banks. Source cannot name registers, but it can leave
// the compiler free to choose them: registers to spare (fragments one step ahead, no further),
// accumulators that no 128-bit store ties to aligned quads (EPILOGUE 1), and an order of the
// multiply-adds that changes one operand at a time (ORDER).
//
// BM BN     the tile of a block           WM WN  of a warp          TM TN  of a thread
// BK        steps of the reduction a warp takes from one tile
// SLICES    groups of warps that share a tile of C, each with its own BK steps of every tile
// SPLIT_K   blocks that share a tile of C, each with its own part of the reduction, as a cluster
//           that adds up through distributed shared memory (compute capability 9.0)
// GROUP     rows of tiles in a band; blocks that run together then share rows and columns
// ORDER     0: along the rows of the thread's tile; 1: likewise, every second row backwards;
//           2: along its columns, every second one backwards; 3: rows four columns wide, likewise
// EPILOGUE  0: 128-bit stores straight from the accumulators; 1: through shared memory

#include "quads.cuh"

#ifndef BM
#define BM 128
#define BN 128
#define BK 8
#define WM 64
#define WN 64
#define TM 8
#define TN 16
#define SLICES 1
#define SPLIT_K 1
#define GROUP 8
#define MIN_BLOCKS 2
#endif
#ifndef ORDER
#define ORDER 2
#endif
#ifndef EPILOGUE
#define EPILOGUE 1
#endif

#define DEPTH (BK * SLICES)  // of the tiles in shared memory
#define WARPS_N (BN / WN)
#define SLICE_WARPS (BM / WM * WARPS_N)
#define THREADS (SLICE_WARPS * SLICES * 32)
#define LANES_M (WM / TM)
#define LANES_N (WN / TN)
#define PITCH_A (BM + 4)
#define STAGE_A (DEPTH * PITCH_A)
#define STAGE (STAGE_A + DEPTH * BN)
#define PITCH_C (WN + 8)    // of a warp's corner in the epilogue
#define PITCH_SUM (BN + 4)  // of the tile of C where parts add up

// How the threads share the work of loading. A: two quads of a row beside each other, so that the
// four stores that transpose a quad each reach 32 different banks. B: along its rows.
#define A_LOADS (BM * DEPTH / 4 / THREADS)
#define A_BESIDE (THREADS / 2 > BM ? THREADS / 2 / BM : 1)  // pairs of quads beside each other
#define A_ROWS (THREADS / 2 / A_BESIDE)                     // rows that one load of all covers
#define A_DEEP (DEPTH / 8 / A_BESIDE)                       // loads to cover the depth
#define B_ROWS (THREADS / (BN / 4))
#define B_LOADS (DEPTH / B_ROWS)

static_assert(LANES_M * LANES_N == 32, "a warp has 32 lanes");
static_assert(TM % 4 == 0 && TN % 4 == 0, "fragments are quads");
static_assert(A_LOADS * 4 * THREADS == BM * DEPTH, "the tile of A is divided evenly");
static_assert(A_DEEP * 8 * A_BESIDE == DEPTH && A_LOADS % A_DEEP == 0, "and in pairs of quads");
static_assert(B_LOADS * 4 * THREADS == BN * DEPTH, "the tile of B is divided evenly");

static __device__ __forceinline__ void copy_quad(float* to, const float* from, bool inside) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void copy_float(float* to, const float* from, bool inside) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(inside ? 4 : 0)
                 : "memory");
}

static __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// Step p of a thread's TM * TN multiply-adds: which row and column of its tile.
// [order]
struct Place {
    int row, col;
};

static __device__ __forceinline__ constexpr Place place(int p) {
#if ORDER == 0
    return {p / TN, p % TN};
#elif ORDER == 1
    const int row = p / TN;
    return {row, row % 2 ? TN - 1 - p % TN : p % TN};
#elif ORDER == 2
    const int col = p / TM;
    return {col % 2 ? TM - 1 - p % TM : p % TM, col};
#else
    const int panel = p / (4 * TM), y = p / 4 % TM;
    return {panel % 2 ? TM - 1 - y : y, panel * 4 + (y % 2 ? 3 - p % 4 : p % 4)};
#endif
}
// [/order]

#if SPLIT_K > 1
#define CLUSTER __cluster_dims__(1, 1, SPLIT_K)
static __device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

// A quad at this address in the shared memory of another block of the cluster.
static __device__ __forceinline__ float4 quad_of_block(const float* p, int block) {
    unsigned there;
    float4 quad;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(p))), "r"(block));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(quad.x), "=f"(quad.y), "=f"(quad.z), "=f"(quad.w)
                 : "r"(there)
                 : "memory");
    return quad;
}
#else
#define CLUSTER
#endif

template <bool WIDE>
static __device__ __forceinline__ void multiply(const float* a, const float* b, float* c, int m,
                                                int n, int k, int tile_m, int tile_n,
                                                float* shared) {
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int slice = t / 32 / SLICE_WARPS;
    const int warp = t / 32 % SLICE_WARPS;
    // [lanes]
    // Lanes alternate between the two directions: a 128-bit load that finds neighbours at one
    // address needs two wavefronts, otherwise four.
    const int lane_m = lane / 2 % 2 + lane / (2 * LANES_N) * 2;
    const int lane_n = lane % 2 + lane / 4 % (LANES_N / 2) * 2;
    // [/lanes]
    const int row_in_tile = warp / WARPS_N * WM + 4 * lane_m;  // of the first strip
    const int col_in_tile = warp % WARPS_N * WN + 4 * lane_n;
    const int first_row = tile_m * BM;
    const int first_col = tile_n * BN;

    // [remainder_first]
    // The first tile takes what does not fill a whole tile, with zeros behind it; all others are
    // whole and need no test. Rows and columns outside the matrices are read from its last row and
    // first column instead: they only reach elements of C that nobody stores.
    const int tiles = (n + DEPTH - 1) / DEPTH;
    const int first_depth = n - (tiles - 1) * DEPTH;
    // [/remainder_first]
    const int begin = static_cast<int>(static_cast<long long>(tiles) * blockIdx.z / SPLIT_K);
    const int end = static_cast<int>(static_cast<long long>(tiles) * (blockIdx.z + 1) / SPLIT_K);
    const int start = begin == 0 ? 0 : first_depth + (begin - 1) * DEPTH;
    const int depth = begin == 0 ? first_depth : DEPTH;

    const int a_x = t % 2 * 4 + t / (2 * A_ROWS) * 8;
    const int a_y = t / 2 % A_ROWS;
    const int b_x = t / (BN / 4);
    const int b_y = t % (BN / 4) * 4;
    const float* from_a[A_LOADS / A_DEEP];
#pragma unroll
    for (int i = 0; i < A_LOADS / A_DEEP; ++i) {
        const int row = min(first_row + a_y + i * A_ROWS, m - 1);
        from_a[i] = a + static_cast<size_t>(row) * n + start;
    }
    const int col = first_col + b_y;
    const float* from_b = b + static_cast<size_t>(start + b_x) * k + (col < k ? col : 0);
    const size_t b_step = static_cast<size_t>(B_ROWS) * k;

    float4 held[A_LOADS];
    auto hold_a = [&](int valid) {  // valid: depth of the tile; DEPTH, a constant, if it is whole
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int x = a_x + i % A_DEEP * 8 * A_BESIDE;
            const float* from = from_a[i / A_DEEP] + x;
            if (WIDE) {
                const bool inside = valid == DEPTH || x < valid;
                held[i] = inside ? *reinterpret_cast<const float4*>(from) : zeros();
            } else {
                held[i].x = valid == DEPTH || x < valid ? from[0] : 0.0f;
                held[i].y = valid == DEPTH || x + 1 < valid ? from[1] : 0.0f;
                held[i].z = valid == DEPTH || x + 2 < valid ? from[2] : 0.0f;
                held[i].w = valid == DEPTH || x + 3 < valid ? from[3] : 0.0f;
            }
        }
    };
    auto put_a = [&](int stage) {
        float* to = shared + stage * STAGE + a_x * PITCH_A + a_y;
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int x = i % A_DEEP * 8 * A_BESIDE;
            put_column(to + x * PITCH_A + i / A_DEEP * A_ROWS, PITCH_A, held[i]);
        }
    };
    auto copy_b = [&](int stage, int i, int valid) {
        const bool inside = valid == DEPTH || b_x + i * B_ROWS < valid;
        const float* from = from_b + i * b_step;
        float* to = shared + stage * STAGE + STAGE_A + (b_x + i * B_ROWS) * BN + b_y;
        if (WIDE) {
            copy_quad(to, from, inside);
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                copy_float(to + j, from + j, inside && col + j < k);
            }
        }
    };
    auto advance_a = [&](int by) {
#pragma unroll
        for (int i = 0; i < A_LOADS / A_DEEP; ++i) {
            from_a[i] += by;
        }
    };

    if (begin < end) {
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            copy_b(0, i, depth);
        }
        hold_a(depth);
        put_a(0);
        advance_a(depth);
        from_b += static_cast<size_t>(depth) * k;
    }
    wait_for_copies();
    __syncthreads();

    float value[TM][TN] = {};
    float4 fragment_a[2][TM / 4], fragment_b[2][TN / 4];
    const float* read_a = shared + slice * BK * PITCH_A + row_in_tile;
    const float* read_b = shared + STAGE_A + slice * BK * BN + col_in_tile;
    int stage = 0;
    auto fetch = [&](int to, int x) {
#pragma unroll
        for (int i = 0; i < TM / 4; ++i) {
            fragment_a[to][i] = shared_quad(read_a + stage * STAGE + x * PITCH_A + i * 4 * LANES_M);
        }
#pragma unroll
        for (int j = 0; j < TN / 4; ++j) {
            fragment_b[to][j] = shared_quad(read_b + stage * STAGE + x * BN + j * 4 * LANES_N);
        }
    };
    auto multiply_add = [&](int from) {
#pragma unroll
        for (int p = 0; p < TM * TN; ++p) {
            const int i = place(p).row, j = place(p).col;
            value[i][j] = fmaf(part(fragment_a[from][i / 4], i % 4),
                               part(fragment_b[from][j / 4], j % 4), value[i][j]);
        }
    };

    fetch(0, 0);
    if (begin + 1 < end) {
        hold_a(DEPTH);
    }
    // [main_loop]
    for (int tile = begin; tile < end - 1; ++tile) {
        // While a tile is multiplied, the next one of B is copied, and the next but one of A waits
        // in registers: loaded before the barrier, it is stored a whole tile later. Where there is
        // no next but one, it is the last tile once more, rather than a question in the loop.
        advance_a(tile + 2 < end ? DEPTH : 0);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            copy_b(stage ^ 1, i, DEPTH);
        }
#pragma unroll
        for (int x = 0; x < BK; ++x) {
            if (x + 1 < BK) {
                fetch((x + 1) % 2, x + 1);
            } else {  // the first step of the next tile
                stage ^= 1;
                put_a(stage);
                hold_a(DEPTH);
                wait_for_copies();
                __syncthreads();
                fetch(0, 0);
            }
            multiply_add(x % 2);
        }
        from_b += static_cast<size_t>(DEPTH) * k;
    }
    // [/main_loop]
    // The last tile has none to fetch, and is short enough not to be unrolled.
    if (begin < end) {
#pragma unroll 1
        for (int x = 0; x < BK; ++x) {
            fetch(0, x);
            multiply_add(0);
        }
    }

#if SLICES == 1 && SPLIT_K == 1
#if EPILOGUE == 0
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + row_in_tile + i / 4 * 4 * LANES_M + i % 4;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            store_quad<WIDE>(
                c, m, k, row, first_col + col_in_tile + j * LANES_N,
                make_float4(value[i][j], value[i][j + 1], value[i][j + 2], value[i][j + 3]));
        }
    }
#else
    // [epilogue]
    // Row by row of the thread's tile, each warp in a corner of its own. Floats go in one by one,
    // to four places a quarter row apart, and come out as quads that fill whole sectors of C.
    __syncthreads();
    float* corner = shared + warp * LANES_M * PITCH_C;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            corner[lane_m * PITCH_C + j % 4 * (WN / 4) + j / 4 * LANES_N + lane_n] = value[i][j];
        }
        __syncwarp();
#pragma unroll
        for (int q = lane; q < LANES_M * WN / 4; q += 32) {
            const int y = q / (WN / 4), x = q % (WN / 4);
            const float* from = corner + y * PITCH_C + x;
            store_quad<WIDE>(c, m, k,
                             first_row + warp / WARPS_N * WM + i / 4 * 4 * LANES_M + 4 * y + i % 4,
                             first_col + warp % WARPS_N * WN + 4 * x,
                             make_float4(from[0], from[WN / 4], from[WN / 2], from[WN / 4 * 3]));
        }
        __syncwarp();
    }
    // [/epilogue]
#endif
#else
    // [sum_of_parts]
    // The slices add up in shared memory one after another, then the blocks of the cluster share
    // the tile out among them, and each adds up its share over all blocks.
    for (int s = 0; s < SLICES; ++s) {
        __syncthreads();
        if (slice == s) {
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    float* to = shared + (row_in_tile + i / 4 * 4 * LANES_M + i % 4) * PITCH_SUM +
                                col_in_tile + j / 4 * 4 * LANES_N + j % 4;
                    *to = s == 0 ? value[i][j] : *to + value[i][j];
                }
            }
        }
    }
#if SPLIT_K > 1
    cluster_barrier();
#else
    __syncthreads();
#endif
    for (int q = blockIdx.z * THREADS + t; q < BM * BN / 4; q += THREADS * SPLIT_K) {
        const int y = q / (BN / 4), x = q % (BN / 4) * 4;
        const float* from = shared + y * PITCH_SUM + x;
#if SPLIT_K > 1
        float4 sum = zeros();
#pragma unroll
        for (int block = 0; block < SPLIT_K; ++block) {
            const float4 more = quad_of_block(from, block);
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
#else
        const float4 sum = shared_quad(from);
#endif
        store_quad<WIDE>(c, m, k, first_row + y, first_col + x, sum);
    }
#if SPLIT_K > 1
    cluster_barrier();  // nobody leaves while others read its shared memory
#endif
    // [/sum_of_parts]
#endif
}

extern "C" __global__ void CLUSTER __launch_bounds__(THREADS, MIN_BLOCKS)
    fast_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    extern __shared__ __align__(16) float shared[];
    // [bands]
    const int tiles_m = (m + BM - 1) / BM;
    const int tiles_n = (k + BN - 1) / BN;
    const int band = blockIdx.x / (GROUP * tiles_n);
    const int in_band = blockIdx.x % (GROUP * tiles_n);
    const int rows = min(GROUP, tiles_m - band * GROUP);
    const int tile_m = band * GROUP + in_band % rows;
    const int tile_n = in_band / rows;
    // [/bands]
    if (aligned(a, n) && aligned(b, k) && aligned(c, k)) {
        multiply<true>(a, b, c, m, n, k, tile_m, tile_n, shared);
    } else {
        multiply<false>(a, b, c, m, n, k, tile_m, tile_n, shared);
    }
}
