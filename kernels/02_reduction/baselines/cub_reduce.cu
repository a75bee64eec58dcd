// cub_reduce: CUB's DeviceReduce as a baseline, called directly from host code
//
// Every function follows CUB's own two calls: with temp == nullptr it only says in *temp_bytes how
// much scratch memory it wants; then it enqueues the reduction on the stream. Pointers are to
// device memory, n may be 0. Each returns the cudaError_t of the call.

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda/std/functional>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/zip_function.h>

extern "C" int cub_reduce_sum(void* temp, size_t* temp_bytes, const float* x, float* out,
                              long long n, cudaStream_t stream) {
    return cub::DeviceReduce::Sum(temp, *temp_bytes, x, out, n, stream);
}

extern "C" int cub_reduce_sum_int(void* temp, size_t* temp_bytes, const int* x, int* out,
                                  long long n, cudaStream_t stream) {
    return cub::DeviceReduce::Sum(temp, *temp_bytes, x, out, n, stream);
}

extern "C" int cub_reduce_max(void* temp, size_t* temp_bytes, const float* x, float* out,
                              long long n, cudaStream_t stream) {
    return cub::DeviceReduce::Max(temp, *temp_bytes, x, out, n, stream);
}
