// cub_scan: CUB's DeviceScan as a baseline, called directly from host code
//
// Every function follows CUB's own two calls: with temp == nullptr it only says in *temp_bytes how
// much scratch memory it wants; then it enqueues the scan on the stream. Pointers are to device
// memory, n may be 0. Each returns the cudaError_t of the call. The count is given to CUB as an int,
// which every n of this chapter fits into: with 64 bits CUB computes wider offsets.

#include <cub/device/device_scan.cuh>

extern "C" int cub_scan(void* temp, size_t* temp_bytes, const float* x, float* y, long long n,
                        cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(temp, *temp_bytes, x, y, static_cast<int>(n), stream);
}

extern "C" int cub_scan_int(void* temp, size_t* temp_bytes, const int* x, int* y, long long n,
                            cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(temp, *temp_bytes, x, y, static_cast<int>(n), stream);
}
