// fast_gemm: the whole ladder in one kernel, its shape chosen by size
//
// Launch: STREAM 0: one block a BM x BN tile of C in x; STREAM 1: as many as fit on the card. Tiles
//         are counted along bands of GROUP rows of tiles. SPLIT_K blocks in z, a cluster. THREADS
//         threads, dynamic shared memory as kernels/04_gemm/experiments.py computes it.
// Look at: what binds is not memory but, it seems, how registers are read. If two banks give a
// multiply-add one register each in a cycle, while it wants three, one has to come from the reuse
// cache, and the other two from different banks. Source cannot name registers, but it can leave
// the compiler free to choose them: registers to spare (no global load passes through any),
// accumulators that no 128-bit store ties to aligned quads (EPILOGUE 1), and an order of the
// multiply-adds that changes one operand at a time (ORDER).
//
// BM BN     the tile of a block           WM WN  of a warp          TM TN  of a thread
// BK        steps of the reduction a warp takes from one tile
// SLICES    groups of warps that share a tile of C, each with its own BK steps of every tile
// SPLIT_K   blocks that share a tile of C, each with its own part of the reduction, as a cluster
//           that adds up through distributed shared memory (compute capability 9.0)
// STAGES    tiles in shared memory: one that is multiplied, the others on their way
// STREAM    1: blocks share the whole work in equal ranges instead of whole tiles
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
#define STREAM 0
#define STAGES 2
#define GROUP 8
#define MIN_BLOCKS 2
#endif
#ifndef ORDER
#define ORDER 2
#endif
#ifndef EPILOGUE
#define EPILOGUE 1
#endif

#include "copies.cuh"
#include "shares.cuh"

#define DEPTH (BK * SLICES)  // of the tiles in shared memory
#define WARPS_N (BN / WN)
#define SLICE_WARPS (BM / WM * WARPS_N)
#define WARPS (SLICE_WARPS * SLICES)
#define THREADS (WARPS * 32)
#define LANES_M (WM / TM)
#define LANES_N (WN / TN)
#define PITCH_A (BM + 4)
#define STAGE_A (DEPTH * PITCH_A)
#define STAGE (STAGE_A + DEPTH * BN)

#define A_ROWS (THREADS / 8)  // eight lanes a row of A
#define A_LOADS (BM / A_ROWS)
#define B_ROWS (THREADS / (BN / 4))
#define B_LOADS (DEPTH / B_ROWS)

static_assert(LANES_M * LANES_N == 32, "a warp has 32 lanes");
static_assert(TM % 4 == 0 && TN % 4 == 0, "fragments are quads");
static_assert(DEPTH % 8 == 0 && A_LOADS * A_ROWS == BM, "the tile of A is divided evenly");
static_assert(B_ROWS * BN / 4 == THREADS && B_LOADS * B_ROWS == DEPTH, "and that of B");
static_assert(DEPTH % WARPS == 0 && BN % 32 == 0, "and float by float");

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

template <bool WIDE>
static __device__ __forceinline__ void multiply(const float* a, const float* b, float* c, int m,
                                                int n, int k, int tile_m, int tile_n, int begin,
                                                int end, int add_to, float* shared) {
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
    const int first_depth = n - (n - 1) / DEPTH * DEPTH;
    // [/remainder_first]
    const int start = begin == 0 ? 0 : first_depth + (begin - 1) * DEPTH;
    const int depth = begin == 0 ? first_depth : DEPTH;

    // [ways]
    // A: eight lanes a row, float by float, because each goes to another row of the transposed
    // tile: rows 4 banks apart, so that the 32 floats of a warp go to 32 banks. B: quads, or rows
    // of floats where its rows do not start at multiples of 16 bytes.
    const int a_x = t % 8;
    const int a_y = t / 8;
    const float* from_a = a + static_cast<size_t>(first_row) * n + start + a_x;
    int row[A_LOADS];
#pragma unroll
    for (int i = 0; i < A_LOADS; ++i) {
        row[i] = min(a_y + i * A_ROWS, m - 1 - first_row) * n;
    }
    const int b_x = WIDE ? t / (BN / 4) : t / 32;
    const int b_y = WIDE ? t % (BN / 4) * 4 : lane;
    const int col = first_col + b_y;
    const float* from_b = b + static_cast<size_t>(start + b_x) * k + (col < k ? col : 0);
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const unsigned to_a = to + (a_x * PITCH_A + a_y) * 4;
    const unsigned to_b = to + (STAGE_A + b_x * BN + b_y) * 4;

    auto copy = [&](int stage, int valid) {  // valid: depth of the tile; DEPTH if it is whole
        const bool whole = valid == DEPTH;
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
#pragma unroll
            for (int x = 0; x < DEPTH; x += 8) {
                copy_float(to_a + (stage * STAGE + x * PITCH_A + i * A_ROWS) * 4,
                           from_a + row[i] + x, whole || a_x + x < valid);
            }
        }
        constexpr int ROWS = WIDE ? B_ROWS : WARPS;
#pragma unroll
        for (int x = 0; x < DEPTH; x += ROWS) {
            const float* from = from_b + static_cast<size_t>(x) * k;
            const bool inside = whole || b_x + x < valid;
            if (WIDE) {
                copy_quad(to_b + (stage * STAGE + x * BN) * 4, from, inside);
            } else {
#pragma unroll
                for (int y = 0; y < BN; y += 32) {
                    copy_float(to_b + (stage * STAGE + x * BN + y) * 4, from + y,
                               inside && col + y < k);
                }
            }
        }
        from_a += valid;
        from_b += static_cast<size_t>(valid) * k;
    };
    // [/ways]

    __syncthreads();  // nobody reads from the segment before
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) {
        if (begin + s < end) {
            copy(s, s == 0 ? depth : DEPTH);
        }
        end_group();
    }
    wait_for_tile();
    __syncthreads();

    float value[TM][TN] = {};
    float4 fragment_a[2][TM / 4], fragment_b[2][TN / 4];
    const float* read_a = shared + slice * BK * PITCH_A + row_in_tile;
    const float* read_b = shared + STAGE_A + slice * BK * BN + col_in_tile;
    int stage = 0, free_stage = STAGES - 1;
    auto load = [&](int to, int x) {
#pragma unroll
        for (int i = 0; i < TM / 4; ++i) {
            fragment_a[to][i] =
                shared_quad(read_a + stage * STAGE + x * PITCH_A + i * 4 * LANES_M);
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

    load(0, 0);
    // [main_loop]
    // While a tile is multiplied, the next one is copied.
    for (int tile = begin; tile < end - 1; ++tile) {
        if (STAGES == 2 || tile + STAGES - 1 < end) {
            copy(STAGES == 2 ? stage ^ 1 : free_stage, DEPTH);
        }
        end_group();
        free_stage = next_stage(free_stage);
#pragma unroll
        for (int x = 0; x < BK; ++x) {
            if (x + 1 < BK) {
                load((x + 1) % 2, x + 1);
            } else {  // the first step of the next tile
                stage = next_stage(stage);
                wait_for_tile();
                __syncthreads();
                load(0, 0);
            }
            multiply_add(x % 2);
        }
    }
    // [/main_loop]
    // The last tile has none to copy, and is short enough not to be unrolled.
    if (begin < end) {
#pragma unroll 1
        for (int x = 0; x < BK; ++x) {
            load(0, x);
            multiply_add(0);
        }
    }

#if STREAM
    if (add_to >= 0) {
        await_deposit(add_to);
    }
#endif
    const bool add = add_to >= 0;
#if EPILOGUE == 0
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + row_in_tile + i / 4 * 4 * LANES_M + i % 4;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            put_in_c<WIDE>(
                c, m, k, row, first_col + col_in_tile + j * LANES_N, add,
                make_float4(value[i][j], value[i][j + 1], value[i][j + 2], value[i][j + 3]));
        }
    }
#else
    // [epilogue]
    // Through shared memory: floats go in one by one, so that no quad of accumulators has to lie
    // in neighbouring registers, and come out as quads that fill whole sectors of C. Slices add up
    // one after another. The way out is a loop of few instructions, hardly unrolled: it runs
    // once a tile, and instructions that were not fetched before cost more than they do.
#pragma unroll 1
    for (int s = 0; s < SLICES; ++s) {
        __syncthreads();
        if (slice == s) {
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    float* spot = shared + place_of_sum(row_in_tile + i / 4 * 4 * LANES_M + i % 4,
                                                        col_in_tile + j / 4 * 4 * LANES_N + j % 4);
                    *spot = s == 0 ? value[i][j] : *spot + value[i][j];
                }
            }
        }
    }
    cluster_barrier();
    constexpr int UNROLL = STREAM ? 4 : 2;  // more where what is left has to be read first
    if (WIDE) {
#pragma unroll UNROLL
        for (int q = blockIdx.z * THREADS + t; q < BM * BN / 4; q += THREADS * SPLIT_K) {
            const int y = q / (BN / 4), x = q % (BN / 4) * 4;
            float4 sum = quad_of_sum(shared, y, x, 0);
#pragma unroll
            for (int block = 1; block < SPLIT_K; ++block) {
                sum = sum_of_quads(sum, quad_of_sum(shared, y, x, block));
            }
            put_in_c<true>(c, m, k, first_row + y, first_col + x, add, sum);
        }
    } else {
#pragma unroll UNROLL
        for (int q = blockIdx.z * THREADS + t; q < BM * BN; q += THREADS * SPLIT_K) {
            const int y = q / BN, x = q % BN;
            float sum = float_of_block(shared + place_of_sum(y, x), 0);
#pragma unroll
            for (int block = 1; block < SPLIT_K; ++block) {
                sum += float_of_block(shared + place_of_sum(y, x), block);
            }
            put_in_c(c, m, k, first_row + y, first_col + x, add, sum);
        }
    }
    cluster_barrier();  // nobody goes on while others read its shared memory
    // [/epilogue]
#endif
}

#if SPLIT_K > 1
#define CLUSTER __cluster_dims__(1, 1, SPLIT_K)
#else
#define CLUSTER
#endif

extern "C" __global__ void CLUSTER __launch_bounds__(THREADS, MIN_BLOCKS)
    fast_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    extern __shared__ __align__(16) float shared[];
    const int tiles_m = (m + BM - 1) / BM;
    const int tiles_n = (k + BN - 1) / BN;
    const int steps = (n + DEPTH - 1) / DEPTH;
    const bool wide = aligned(a, n) && aligned(b, k) && aligned(c, k);
    // [stream]
    // All tiles, each with all its steps, one after another, cut into as many equal ranges as there
    // are blocks: no SM waits for others to finish a last, partial wave of tiles. A range that ends
    // within a tile waits for what the next one has left of it in C, and adds its own. Ranges are
    // dealt out backwards, so that a block only waits for one that started before it.
#if STREAM
    const long long work = static_cast<long long>(tiles_m) * tiles_n * steps;
    const int range = gridDim.x - 1 - blockIdx.x;
    int at = static_cast<int>(work * range / gridDim.x);
    const int last = static_cast<int>(work * (range + 1) / gridDim.x);
    while (at < last) {
        const int tile = at / steps;
        const int begin = at % steps;
        const int end = min(steps, begin + last - at);
        const int add_to = end < steps ? range + 1 : -1;
        at += end - begin;
#else
    {
        const int tile = blockIdx.x, begin = 0, end = steps, add_to = -1;
#endif
        // [/stream]
        // [bands]
        const int band = tile / (GROUP * tiles_n);
        const int in_band = tile % (GROUP * tiles_n);
        const int rows = min(GROUP, tiles_m - band * GROUP);
        const int tile_m = band * GROUP + in_band % rows;
        const int tile_n = in_band / rows;
        // [/bands]
        const int from = begin + (end - begin) * static_cast<int>(blockIdx.z) / SPLIT_K;
        const int to = begin + (end - begin) * static_cast<int>(blockIdx.z + 1) / SPLIT_K;
        if (wide) {
            multiply<true>(a, b, c, m, n, k, tile_m, tile_n, from, to, add_to, shared);
        } else {
            multiply<false>(a, b, c, m, n, k, tile_m, tile_n, from, to, add_to, shared);
        }
#if STREAM
        if (begin > 0) {
            deposit(range);
        }
#endif
    }
}
