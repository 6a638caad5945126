#pragma once
// Stands in for HIP: the processor's memory.
#include <cstddef>
#include <cstdlib>
#include <cstring>

enum hipError_t { hipSuccess, hipErrorOutOfMemory };
enum hipMemcpyKind { hipMemcpyHostToDevice, hipMemcpyDeviceToHost };

template <class T>
hipError_t hipMalloc(T** memory, std::size_t bytes) {
    *memory = static_cast<T*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    return *memory == nullptr ? hipErrorOutOfMemory : hipSuccess;
}
template <class T>
hipError_t hipHostMalloc(T** memory, std::size_t bytes, unsigned) {
    return hipMalloc(memory, bytes);
}
inline hipError_t hipFree(void* memory) {
    std::free(memory);
    return hipSuccess;
}
inline hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind) {
    std::memcpy(to, from, bytes);
    return hipSuccess;
}
inline hipError_t hipSetDevice(int device) {
    return device == 0 ? hipSuccess : hipErrorOutOfMemory;
}
inline hipError_t hipDeviceSynchronize() {
    return hipSuccess;
}
inline const char* hipGetErrorString(hipError_t error) {
    return error == hipSuccess ? "hipSuccess" : "hipErrorOutOfMemory";
}
