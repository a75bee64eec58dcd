// cheats: kernels that must all fail verification, beside one that is right
//
// Launch: one block of 256 threads over an m x n matrix, y = 2 x, so that nothing but the cheat
//         itself can be wrong with them.
// Look at: what each would get away with if the harness were less suspicious.

#define LOOP for (int i = threadIdx.x; i < m * n; i += blockDim.x)
#define KERNEL(name) extern "C" __global__ void name(float* x, float* y, int m, int n)

KERNEL(right) {
    LOOP y[i] = 2.0f * x[i];
}

KERNEL(writes_nothing) {}

KERNEL(writes_zeros) {
    LOOP y[i] = 0.0f;
}

KERNEL(writes_nan) {
    LOOP y[i] = 2.0f * x[i] + __int_as_float(0x7fffffff);
}

KERNEL(past_the_end) {
    for (int i = threadIdx.x; i <= m * n; i += blockDim.x) {
        y[i] = i < m * n ? 2.0f * x[i] : 0.0f;
    }
}

KERNEL(wrong_last_row) {
    LOOP y[i] = (i / n == m - 1 ? 3.0f : 2.0f) * x[i];
}

// Right wherever the number of columns is a multiple of four.
KERNEL(ragged_only) {
    int whole = m * n / 4 * 4;
    for (int i = threadIdx.x; i < whole; i += blockDim.x) {
        y[i] = 2.0f * x[i];
    }
}

KERNEL(changes_input) {
    LOOP {
        y[i] = 2.0f * x[i];
        x[i] = -x[i];
    }
}

__device__ int calls;

KERNEL(first_call_only) {
    if (calls == 0) {
        LOOP y[i] = 2.0f * x[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        calls = calls + 1;
    }
}

__device__ int turn;

KERNEL(every_other_call) {
    if (turn == 0) {
        LOOP y[i] = 2.0f * x[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        turn = 1 - turn;
    }
}

#define REMEMBERED (1 << 16)
__device__ float first_answer[REMEMBERED];
__device__ int answered;

// Computes once for each size, then only copies.
KERNEL(remembers) {
    bool known = answered == m * n;
    __syncthreads();
    LOOP {
        if (!known) {
            first_answer[i] = 2.0f * x[i];
        }
        y[i] = first_answer[i];
    }
    if (threadIdx.x == 0) {
        answered = m * n;
    }
}

__device__ float last_answer[REMEMBERED];
__device__ int last_size;

// Gives what the launch before would have had to give; right as long as inputs stay the same.
KERNEL(previous_result) {
    bool primed = last_size == m * n;
    __syncthreads();
    LOOP {
        float now = 2.0f * x[i];
        y[i] = primed ? last_answer[i] : now;
        last_answer[i] = now;
    }
    if (threadIdx.x == 0) {
        last_size = m * n;
    }
}

// SEEN is the first input of one seed, as bits: the kernel works for that seed only.
#ifndef SEEN
#define SEEN 0
#endif
KERNEL(one_seed) {
    if (__float_as_int(x[0]) == SEEN) {
        LOOP y[i] = 2.0f * x[i];
    }
}

// Right on most cards most of the time: nothing orders the writes before the reads.
KERNEL(races) {
    __shared__ float tile[256];
    for (int start = 0; start < m * n; start += 256) {
        int i = start + threadIdx.x;
        tile[threadIdx.x] = i < m * n ? 2.0f * x[i] : 0.0f;
        int other = threadIdx.x ^ 32;
        float partner = tile[other];
        if (start + other < m * n) {
            y[start + other] = partner;
        }
    }
}

KERNEL(reads_past_the_end) {
    LOOP y[i] = 2.0f * x[i] + 0.0f * x[i + (1 << 20)];
}

// Writes where it must not, and puts back what was there: no band shows it.
KERNEL(restores_the_band) {
    LOOP y[i] = 2.0f * x[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        float was = y[m * n];
        y[m * n] = 1.0f;
        __threadfence();
        y[m * n] = was;
    }
}

// Works where outputs are poisoned, as they are for verification and not between samples.
KERNEL(works_on_poison) {
    bool poisoned = __float_as_uint(y[0]) == 0xffffffffu;
    __syncthreads();
    if (poisoned) {
        LOOP y[i] = 2.0f * x[i];
    }
}

__device__ float left_x, left_y;

// Does nothing where it finds input and output as it left them. Always right, and no work to time.
KERNEL(leaves_what_is_done) {
    bool done = x[0] == left_x && y[0] == left_y;
    __syncthreads();
    if (done) {
        return;
    }
    LOOP y[i] = 2.0f * x[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        left_x = x[0];
        left_y = y[0];
    }
}

__device__ float known_x;
__device__ int known_size;
__device__ float known_y[REMEMBERED];

// Keeps its last answer by its input; computing takes it long. Always right.
KERNEL(answers_from_a_table) {
    bool known = x[0] == known_x && m * n == known_size;
    __syncthreads();
    LOOP {
        if (!known) {
            float slow = x[i];
            for (int k = 0; k < 2000; k++) {
                slow = slow * 1.0000001f + 1e-9f;
            }
            known_y[i] = slow == 1e30f ? slow : 2.0f * x[i];
        }
        y[i] = known_y[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        known_x = x[0];
        known_size = m * n;
    }
}

__device__ unsigned long long launched_ns;

// Works where its last launch is a millisecond ago: verification takes its time, a series does not.
KERNEL(idle_when_hurried) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    bool hurried = now - launched_ns < 1000000ull;
    __syncthreads();
    if (!hurried) {
        LOOP y[i] = 2.0f * x[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        launched_ns = now;
    }
}
