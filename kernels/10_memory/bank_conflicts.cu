// bank_conflicts: every load of a warp has a conflict of exactly `ways`, and nothing else changes
//
// Launch: 256 threads a block, ceil(n / 256) blocks; every block copies the same words.
// Sizes: any n up to 2^31 - 256, any number of rounds, ways from 1 to 32.
// Look at: word w lies in bank w % 32. Lane l begins at row l % ways of column l / ways: `ways` lanes
// want different words of one bank, the next `ways` lanes the next bank. All go down row by row, so
// they stay in their banks. That makes `ways` passes a load, for the same number of bytes.

constexpr int BANKS = 32;
constexpr int DOWN = 32;                 // loads a round
constexpr int ROWS = 31 + 31 + DOWN;     // the last lane begins at row 31, the last round 31 below

// [bank_conflicts]
extern "C" __global__ void bank_conflicts(const float* x, float* sums, int n, int ways,
                                          int rounds) {
    __shared__ float tile[ROWS * BANKS];
    for (int w = threadIdx.x; w < ROWS * BANKS; w += blockDim.x) {
        tile[w] = x[w];
    }
    __syncthreads();
    int lane = threadIdx.x % 32;
    const float* first = tile + lane % ways * BANKS + lane / ways;
    float sum = 0.0f;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        const float* from = first + round % 32 * BANKS;
#pragma unroll
        for (int row = 0; row < DOWN; ++row) {
            sum += from[row * BANKS];
        }
    }
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        sums[i] = sum;
    }
}
// [/bank_conflicts]
