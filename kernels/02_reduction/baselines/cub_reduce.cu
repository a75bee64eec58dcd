// cub_reduce: CUB's DeviceReduce as a baseline, called directly from host code
//
// Every function follows CUB's own two calls: with temp == nullptr it only says in *temp_bytes how
// much scratch memory it wants; then it enqueues the reduction on the stream. Pointers are to
// device memory, n may be 0. Each returns the cudaError_t of the call.

#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>
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

extern "C" int cub_dot(void* temp, size_t* temp_bytes, const float* a, const float* b, float* out,
                       long long n, cudaStream_t stream) {
    // A sum over pairs that are multiplied as they are read, as thrust::inner_product does it.
    return cub::DeviceReduce::TransformReduce(
        temp, *temp_bytes, thrust::make_zip_iterator(a, b), out, n, cuda::std::plus<float>(),
        thrust::make_zip_function(cuda::std::multiplies<float>()), 0.0f, stream);
}
