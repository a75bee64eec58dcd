// How the tiles of a single-pass scan hand their sums on: state words, tickets, look-back.
//
// A state word is 64 bits, a value below and a tag above, written and read at once: whoever reads
// the tag has the value, so no fence is needed. The tag holds the number of the launch: words of an
// earlier launch read as "not yet", and nothing has to be cleared before the next one.
//
// TILE    elements a tile
// WINDOW  words that a lane of the looking warp reads at once
// FIXED   1: sums are added up in an order that does not depend on timing, so bits repeat
//         0: the classic look-back, which stops at the nearest tile that knows its prefix

#pragma once

#include "scan.cuh"

#ifndef WINDOW
#define WINDOW 4
#endif
#ifndef FIXED
#define FIXED 1
#endif

constexpr int GROUP = WARP * WINDOW;
constexpr int MAX_TILES = static_cast<int>(((1ull << 31) - 2) / TILE + 1);  // of 2^31 - 1 elements

using word = unsigned long long;

__device__ word next_ticket;  // above: number of the launch; below: tiles handed out
__device__ word tile_state[MAX_TILES];
__device__ word group_state[MAX_TILES / GROUP + 1];

static __device__ __forceinline__ void publish(word* to, unsigned tag, element value) {
#if INTEGER
    unsigned bits = value;
#else
    unsigned bits = __float_as_uint(value);
#endif
    word w = static_cast<word>(tag) << 32 | bits;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(w) : "memory");
}

static __device__ __forceinline__ word look(const word* at) {
    word w;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(w) : "l"(at) : "memory");
    return w;
}

static __device__ __forceinline__ unsigned tag_of(word w) {
    return static_cast<unsigned>(w >> 32);
}

static __device__ __forceinline__ element value_of(word w) {
#if INTEGER
    return static_cast<unsigned>(w);
#else
    return __uint_as_float(static_cast<unsigned>(w));
#endif
}

// [ticket]
// Tiles are handed out in order to whoever asks: a tile's predecessors belong to blocks that run
// already, in whatever order blocks start.
static __device__ __forceinline__ word draw() {
    return atomicAdd(&next_ticket, 1ull);
}

// The last of all draws of a launch begins the next launch's count. Apart from the draw itself,
// because it has to wait for the ticket, and the one who drew may have something better to do.
static __device__ __forceinline__ void close_if_last(word ticket, unsigned draws) {
    if (static_cast<unsigned>(ticket) == draws - 1) {
        atomicExch(&next_ticket, ((ticket >> 32) + 1) << 32);
    }
}
// [/ticket]

#if FIXED
static __device__ __forceinline__ void publish_own(int tile, unsigned launch, element own) {
    publish(tile_state + tile, launch + 1, own);
}

// [fixed_lookback]
// Sum of the first ``count`` tiles of a group, all at once: a lane adds up its words, then a tree.
static __device__ __forceinline__ bool sum_of_tiles(const word* tiles, int count, unsigned tag,
                                                    int lane, element& sum) {
    word words[WINDOW];
#pragma unroll
    for (int w = 0; w < WINDOW; ++w) {
        bool wanted = w * WARP + lane < count;
        words[w] = wanted ? look(tiles + w * WARP + lane) : static_cast<word>(tag) << 32;
    }
    sum = 0;
    bool ready = true;
#pragma unroll
    for (int w = 0; w < WINDOW; ++w) {
        ready = ready && tag_of(words[w]) == tag;
        sum += value_of(words[w]);
    }
    return __all_sync(ALL_LANES, ready);
}

// The sum of everything before a tile, by a whole warp. Before a group lies either the prefix that
// its predecessor published or, if that is late, the one before it plus that group's sum: the same
// additions, so the same bits.
static __device__ __forceinline__ element look_back(int tile, unsigned launch, element own,
                                                    int lane) {
    unsigned tag = launch + 1;
    int group = tile / GROUP;
    int place = tile % GROUP;
    const word* first = tile_state + group * GROUP;
    element before = 0;  // this group's tiles
    element head = 0;    // all groups before
    bool have_tiles = false;
    bool have_head = group == 0;
    while (!have_tiles || !have_head) {
        word nearest = group > 0 ? look(group_state + group - 1) : 0;
        word second = group > 1 ? look(group_state + group - 2) : static_cast<word>(tag) << 32;
        element late;
        bool have_late = group > 0 && sum_of_tiles(first - GROUP, GROUP, tag, lane, late);
        if (!have_tiles) {
            have_tiles = sum_of_tiles(first, place, tag, lane, before);
        }
        if (!have_head) {
            if (tag_of(nearest) == tag) {
                head = value_of(nearest);
                have_head = true;
            } else if (have_late && tag_of(second) == tag) {
                head = value_of(second) + warp_sum(late);
                have_head = true;
            }
        }
    }
    if (place == GROUP - 1) {
        element whole = warp_sum(before + (lane == WARP - 1 ? own : element(0)));
        if (lane == 0) {
            publish(group_state + group, tag, head + whole);
        }
    }
    return head + warp_sum(before);
}
// [/fixed_lookback]
#else
static __device__ __forceinline__ void publish_own(int tile, unsigned launch, element own) {
    publish(tile_state + tile, tile == 0 ? 2 * launch + 3 : 2 * launch + 2, own);
}

// [lookback]
// The sum of everything before a tile, by a whole warp: read the states of the nearest
// predecessors, all at once; add up sums of single tiles back to the nearest prefix.
static __device__ __forceinline__ element look_back(int tile, unsigned launch, element own,
                                                    int lane) {
    unsigned tag = 2 * launch + 2;  // of a tile's own sum; the next higher one is of a prefix
    element before = 0;
    bool found = tile == 0;
    for (int nearest = tile - 1; !found; nearest -= GROUP) {
        word words[WINDOW];
        bool missing = true;
        while (missing) {
            missing = false;
#pragma unroll
            for (int w = 0; w < WINDOW; ++w) {
                int at = nearest - w * WARP - lane;
                words[w] = at >= 0 ? look(tile_state + at) : static_cast<word>(tag + 1) << 32;
            }
            found = false;
            element sum = 0;
#pragma unroll
            for (int w = 0; w < WINDOW; ++w) {
                unsigned absent = __ballot_sync(ALL_LANES, (tag_of(words[w]) | 1) != (tag | 1));
                unsigned prefixes = __ballot_sync(ALL_LANES, tag_of(words[w]) == tag + 1);
                // Lanes up to the nearest prefix; all of them where there is none.
                unsigned counted = prefixes ? prefixes ^ (prefixes - 1) : ALL_LANES;
                if (!found && !missing) {
                    missing = (absent & counted) != 0;
                    found = !missing && prefixes != 0;
                    if (counted >> lane & 1) {
                        sum += value_of(words[w]);
                    }
                }
            }
            if (!missing) {
                before += sum;
            }
        }
    }
    before = warp_sum(before);
    if (lane == 0 && tile > 0) {
        publish(tile_state + tile, tag + 1, before + own);
    }
    return before;
}
// [/lookback]
#endif
