// parts_gemm: the last kernel for products whose tiles of C do not fill the SMs, or not evenly
//
// Launch: the BM x BN tiles of C in x, counted along bands of GROUP rows of tiles; the parts of a
//         tile in y and z. The blocks of the last z of all tiles must fit on the card at once.
//         THREADS threads, dynamic shared memory as kernels/04_gemm/experiments.py computes it.
// Look at: what differs from fast_gemm. The parts of a tile add up all at once, not one after
// another ([parts]). A block has one part and is done, so that no loop surrounds the main loop: its
// variables would cost the main loop registers. Slices leave their sums side by side ([slices]).
// Where rows of B do not start at multiples of 16 bytes, a warp copies 32 columns and not a row
// ([ways]), so that a tile can be 96 columns wide: 1037 columns are 10.8 of those.
//
// BM BN     the tile of a block           WM WN  of a warp          TM TN  of a thread
// BK        steps of the reduction a warp takes from one tile
// SLICES    groups of warps that share a tile of C, each with its own BK steps of every tile
// PARTS     1: gridDim.y * gridDim.z blocks share a tile of C, each with its part of the reduction
// STAGES    tiles in shared memory: one that is multiplied, the others on their way
// GROUP     rows of tiles in a band; blocks that run together then share rows and columns
// ORDER     1: along the rows of the thread's tile, every second one backwards; 2: along its
//           columns, likewise; 3: rows four columns wide, likewise

#include "quads.cuh"

#ifndef BM
#define BM 96
#define BN 96
#define BK 8
#define WM 96
#define WN 32
#define TM 12
#define TN 8
#define SLICES 4
#define PARTS 1
#define STAGES 2
#define GROUP 8
#define MIN_BLOCKS 1
#define MAX_PARTS 396
#endif
#ifndef ORDER
#define ORDER 1
#endif

// Blocks neither form a cluster nor add up in C: of shares.cuh the places of sums are used.
#define SPLIT_K 1
#define STREAM 0

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
// Quads of B: as many lanes a row as it has quads, or else eight, with one in each 32 columns.
#define WHOLE_ROWS (THREADS % (BN / 4) == 0 && DEPTH % (THREADS / (BN / 4)) == 0)
#define B_LANES (WHOLE_ROWS ? BN / 4 : 8)
#define B_ROWS (THREADS / B_LANES)
// Floats of B: a row a warp, or else 32 columns of a row.
#define ROW_A_WARP (DEPTH % WARPS == 0)
#define FLOAT_ROWS (ROW_A_WARP ? WARPS : WARPS / (BN / 32))
#define TILE_OF_SUM (BM * (BN + 1))

static_assert(LANES_M * LANES_N == 32, "a warp has 32 lanes");
static_assert(TM % 4 == 0 && TN % 4 == 0, "fragments are quads");
static_assert(DEPTH % 8 == 0 && A_LOADS * A_ROWS == BM, "the tile of A is divided evenly");
static_assert(BN % 32 == 0 && DEPTH % B_ROWS == 0, "and that of B");
static_assert(ROW_A_WARP || (WARPS % (BN / 32) == 0 && DEPTH % FLOAT_ROWS == 0), "in both ways");

#include "parts.cuh"

// Step p of a thread's TM * TN multiply-adds: which row and column of its tile.
struct Place {
    int row, col;
};

static __device__ __forceinline__ constexpr Place place(int p) {
#if ORDER == 1
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

template <bool WIDE>
static __device__ __forceinline__ void multiply(const float* a, const float* b, float* c, int m,
                                                int n, int k, int tile_m, int tile_n, int start,
                                                int depth, int tiles, float* shared) {
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int slice = t / 32 / SLICE_WARPS;
    const int warp = t / 32 % SLICE_WARPS;
    // Lanes alternate between the two directions, as in fast_gemm.
    const int lane_m = lane / 2 % 2 + lane / (2 * LANES_N) * 2;
    const int lane_n = lane % 2 + lane / 4 % (LANES_N / 2) * 2;
    const int row_in_tile = warp / WARPS_N * WM + 4 * lane_m;  // of the first strip
    const int col_in_tile = warp % WARPS_N * WN + 4 * lane_n;
    const int first_row = tile_m * BM;
    const int first_col = tile_n * BN;
    // [ways]
    // A as in fast_gemm. B: quads, or floats where its rows do not start at multiples of 16 bytes:
    // a row a warp, if its warps divide the tile's rows; otherwise a warp keeps to 32 columns.
    // Rows and columns outside the matrices are read from inside; nobody stores their sums.
    const int a_x = t % 8;
    const int a_y = t / 8;
    const float* from_a = a + static_cast<size_t>(first_row) * n + start + a_x;
    int row[A_LOADS];
#pragma unroll
    for (int i = 0; i < A_LOADS; ++i) {
        row[i] = min(a_y + i * A_ROWS, m - 1 - first_row) * n;
    }
    const int b_x = WIDE ? t / B_LANES : ROW_A_WARP ? t / 32 : t / 32 / (BN / 32);
    const int b_y = WIDE ? t % B_LANES * 4 : ROW_A_WARP ? lane : t / 32 % (BN / 32) * 32 + lane;
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
        constexpr int ROWS = WIDE ? B_ROWS : FLOAT_ROWS;  // and columns of one step of all threads
        constexpr int WIDTH = WIDE ? 4 * B_LANES : ROW_A_WARP ? 32 : BN;
#pragma unroll
        for (int x = 0; x < DEPTH; x += ROWS) {
            const float* from = from_b + static_cast<size_t>(x) * k;
            const bool inside = whole || b_x + x < valid;
#pragma unroll
            for (int y = 0; y < BN; y += WIDTH) {
                const unsigned there = to_b + (stage * STAGE + x * BN + y) * 4;
                if (WIDE) {
                    if (B_LANES == BN / 4) {
                        copy_quad(there, from, inside);
                    } else {
                        copy_quad(there, col + y < k ? from + y : b, inside);
                    }
                } else {
                    copy_float(there, from + y, inside && col + y < k);
                }
            }
        }
        from_a += valid;
        from_b += static_cast<size_t>(valid) * k;
    };
    // [/ways]

#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < tiles) {
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
    for (int tile = 0; tile < tiles - 1; ++tile) {
        if (STAGES == 2 || tile + STAGES - 1 < tiles) {
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
    if (tiles > 0) {
#pragma unroll 1
        for (int x = 0; x < BK; ++x) {
            load(0, x);
            multiply_add(0);
        }
    }

    // [slices]
    // Every slice leaves its sums in a tile of its own; whoever moves them on adds the tiles up.
    __syncthreads();
    float* of_slice = shared + slice * TILE_OF_SUM;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            of_slice[place_of_sum(row_in_tile + i / 4 * 4 * LANES_M + i % 4,
                                  col_in_tile + j / 4 * 4 * LANES_N + j % 4)] = value[i][j];
        }
    }
    __syncthreads();
    // [/slices]
#if PARTS
    if (gridDim.y * gridDim.z > 1) {
        add_parts<WIDE>(c, m, k, first_row, first_col, shared);
        return;
    }
#endif
    if (WIDE) {
#pragma unroll 4
        for (int q = t; q < QUADS; q += THREADS) {
            put_in_c<true>(c, m, k, first_row + row_of(q), first_col + col_of(q), false,
                           sum_of_slices(shared, q));
        }
    } else {
        store_rows(c, m, k, first_row, first_col, shared);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    parts_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    extern __shared__ __align__(16) float shared[];
    const bool wide = aligned(b, k) && aligned(c, k);  // A is copied float by float anyway
    const int tiles_m = (m + BM - 1) / BM;
    const int tiles_n = (k + BN - 1) / BN;
    const int band = blockIdx.x / (GROUP * tiles_n);
    const int in_band = blockIdx.x % (GROUP * tiles_n);
    const int rows = min(GROUP, tiles_m - band * GROUP);
    const int tile_m = band * GROUP + in_band % rows;
    const int tile_n = in_band / rows;
    // The first tile takes what does not fill a whole tile; all others need no test.
    const int steps = (n + DEPTH - 1) / DEPTH;
    const int depth = n - (n - 1) / DEPTH * DEPTH;
#if PARTS
    const int begin = steps * part_of_tile() / parts_of_tile();
    const int tiles = steps * (part_of_tile() + 1) / parts_of_tile() - begin;
    const int start = begin == 0 ? 0 : depth + (begin - 1) * DEPTH;
    const int first = begin == 0 ? depth : DEPTH;
#else
    const int start = 0, first = depth, tiles = steps;
#endif
    if (wide) {
        multiply<true>(a, b, c, m, n, k, tile_m, tile_n, start, first, tiles, shared);
    } else {
        multiply<false>(a, b, c, m, n, k, tile_m, tile_n, start, first, tiles, shared);
    }
}
