#pragma once

// HIP 5's headers for NVIDIA platforms were written against CUDA 11 and call functions that CUDA 13 changed or removed. This
// gives them the old forms as overloads, so that the real headers compile unchanged; nothing here is called by this project.
// On older CUDA releases it only includes the headers in the right order.

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>

#include <cstring>

#if CUDART_VERSION >= 13000

/// The properties with the members that CUDA 13 turned into attributes.
struct FmhaDevicePropertiesOfCuda12 : cudaDeviceProp {
    int clockRate, memoryClockRate, computeMode, cooperativeMultiDeviceLaunch, kernelExecTimeoutEnabled;
};

inline cudaError_t cudaGetDeviceProperties(FmhaDevicePropertiesOfCuda12* properties, int device) {
    cudaError_t error = cudaGetDeviceProperties(static_cast<cudaDeviceProp*>(properties), device);
    const auto fill = [&](int& member, cudaDeviceAttr attribute) {
        if (error == cudaSuccess) error = cudaDeviceGetAttribute(&member, attribute, device);
    };
    fill(properties->clockRate, cudaDevAttrClockRate);
    fill(properties->memoryClockRate, cudaDevAttrMemoryClockRate);
    fill(properties->computeMode, cudaDevAttrComputeMode);
    fill(properties->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout);
    properties->cooperativeMultiDeviceLaunch = 0;
    return error;
}

// The number that this attribute had; it was taken out of the enumeration.
inline constexpr auto cudaDevAttrCooperativeMultiDeviceLaunch = static_cast<cudaDeviceAttr>(96);

inline cudaMemLocation fmha_memory_location(int device) {
    cudaMemLocation location{};
    const bool host = device == cudaCpuDeviceId;
    location.type = host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    location.id = host ? 0 : device;
    return location;
}

inline cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise advice, int device) {
    return cudaMemAdvise(memory, bytes, advice, fmha_memory_location(device));
}
inline cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, int device,
                                        cudaStream_t stream) {
    return cudaMemPrefetchAsync(memory, bytes, fmha_memory_location(device), 0U, stream);
}
inline CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
    return cuCtxCreate(context, static_cast<CUctxCreateParams*>(nullptr), flags, device);
}

// Dependencies of graphs carry edge data now.
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, std::size_t count) {
    return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, std::size_t count) {
    return cudaGraphRemoveDependencies(graph, from, to, nullptr, count);
}
inline cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                     std::size_t* count) {
    return cudaGraphGetEdges(graph, from, to, nullptr, count);
}
inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* others,
                                                std::size_t* count) {
    return cudaGraphNodeGetDependencies(node, others, nullptr, count);
}
inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* others,
                                                  std::size_t* count) {
    return cudaGraphNodeGetDependentNodes(node, others, nullptr, count);
}
inline cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                               unsigned long long* id, cudaGraph_t* graph,
                                               const cudaGraphNode_t** others, std::size_t* count) {
    return cudaStreamGetCaptureInfo(stream, status, id, graph, others, nullptr, count);
}
inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* others,
                                                       std::size_t count, unsigned flags) {
    return cudaStreamUpdateCaptureDependencies(stream, others, nullptr, count, flags);
}

// Removed outright: texture references and cooperative launches over several devices.
template <class T, int Dimensions, cudaTextureReadMode Mode>
struct texture;
template <class... Any>
cudaError_t cudaBindTexture(Any&&...) {
    return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaBindTexture2D(Any&&...) {
    return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaBindTextureToArray(Any&&...) {
    return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaUnbindTexture(Any&&...) {
    return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaGetTextureAlignmentOffset(Any&&...) {
    return cudaErrorNotSupported;
}
template <class... Any>
cudaError_t cudaLaunchCooperativeKernelMultiDevice(Any&&...) {
    return cudaErrorNotSupported;
}

#define cudaDeviceProp FmhaDevicePropertiesOfCuda12
#endif

#include <hip/hip_runtime.h>

#undef cudaDeviceProp
