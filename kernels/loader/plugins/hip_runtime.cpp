// The device runtime over HIP: one source, compiled once for AMD's HIP and once for HIP on top of CUDA.

#include "kernels/loader/device_runtime.hpp"
#include "kernels/loader/plugins/hip_platform.hpp"

#include <array>
#include <cstring>

namespace fmha::loader {
namespace {

#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr bool on_nvidia = true;
#else
constexpr bool on_nvidia = false;
#endif

Fault fault_of(hipError_t error) {
    switch (error) {
    case hipSuccess:
        return Fault::none;
    case hipErrorNoDevice:
    case hipErrorInvalidDevice:
        return Fault::no_device;
    case hipErrorInsufficientDriver:
        return Fault::old_driver;
    case hipErrorOutOfMemory:
        return Fault::no_memory;
    case hipErrorInvalidImage:
    case hipErrorInvalidKernelFile:
        return Fault::bad_image;
    case hipErrorNoBinaryForGpu:
        return Fault::wrong_arch;
    case hipErrorNotFound:
        return Fault::no_symbol;
    case hipErrorIllegalAddress:
    case hipErrorLaunchTimeOut:
    case hipErrorAssert:
    case hipErrorLaunchFailure:
    case hipErrorECCNotCorrectable:
    case hipErrorContextIsDestroyed:
    // Of HIP on CUDA: illegal instructions, misaligned addresses and others that end a context.
    case hipErrorUnknown:
        return Fault::context_lost;
    default:
        return Fault::other;
    }
}

#if defined(__HIP_PLATFORM_NVIDIA__)
/// Of a call of CUDA's runtime that has just returned, CUDA's own number. HIP has none for many errors and calls them unknown.
Status status_of(hipError_t error) {
    const cudaError_t own = error == hipErrorUnknown ? cudaPeekAtLastError() : hipErrorToCudaError(error);
    return {static_cast<int>(own), fault_of(error)};
}

/// Of a call of the driver, whose results have the numbers of the runtime's errors.
Status status_of(CUresult result) {
    return {static_cast<int>(result), fault_of(hipCUResultTohipError(result))};
}

// HIP's forms of these translate results, and lose some.
constexpr auto load_image = cuModuleLoadData;
constexpr auto unload_image = cuModuleUnload;
constexpr auto find_function = cuModuleGetFunction;
constexpr auto launch_kernel = cuLaunchKernel;

std::string text_of(int code) {
    const auto error = static_cast<cudaError_t>(code);
    return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}
#else
Status status_of(hipError_t error) {
    return {static_cast<int>(error), fault_of(error)};
}

std::string text_of(int code) {
    const auto error = static_cast<hipError_t>(code);
    return std::string(hipGetErrorName(error)) + ": " + hipGetErrorString(error);
}

constexpr auto load_image = hipModuleLoadData;
constexpr auto unload_image = hipModuleUnload;
constexpr auto find_function = hipModuleGetFunction;
constexpr auto launch_kernel = hipModuleLaunchKernel;
#endif

/// The driver's default first, then the most that a launch may ask for beyond it.
Status most_lds(int device, std::int64_t& out) {
    int bytes = 0;
#if defined(__HIP_PLATFORM_NVIDIA__)
    const hipError_t error = hipCUDAErrorTohipError(
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
#else
    const hipError_t error = hipDeviceGetAttribute(&bytes, hipDeviceAttributeMaxSharedMemoryPerBlock, device);
#endif
    out = bytes;
    return status_of(error);
}

/// "gfx942:sramecc+:xnack-" is an architecture and its features; CUDA has a number of two digits.
void split_arch(const hipDeviceProp_t& properties, DeviceProperties& out) {
    if (on_nvidia) {
        out.arch = "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
        return;
    }
    const std::string_view whole = properties.gcnArchName;
    const auto colon = whole.find(':');
    out.arch = whole.substr(0, colon);
    out.features = colon == std::string_view::npos ? std::string_view{} : whole.substr(colon + 1);
}

hipStream_t stream_of(void* handle) {
    return static_cast<hipStream_t>(handle);
}
hipEvent_t event_of(void* handle) {
    return static_cast<hipEvent_t>(handle);
}

#if defined(__HIP_PLATFORM_NVIDIA__)
/// HIP has no name for this launch.
CUresult launch_early(void* function, const LaunchShape& shape, void** parameters, void* stream) {
    CUlaunchAttribute early{};
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = shape.blocks;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = shape.threads;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = shape.dynamic_lds;
    config.hStream = static_cast<CUstream>(stream);
    config.attrs = &early;
    config.numAttrs = 1;
    return cuLaunchKernelEx(&config, static_cast<CUfunction>(function), parameters, nullptr);
}
#endif

class HipRuntime final : public DeviceRuntime {
  public:
    std::string_view platform() const override { return on_nvidia ? "nvidia" : "amd"; }
    std::string describe(int code) const override { return text_of(code); }
    Status versions(RuntimeVersions& out) override {
        const Status driver = status_of(hipDriverGetVersion(&out.driver));
        const Status runtime = status_of(hipRuntimeGetVersion(&out.runtime));
        return driver.ok() ? runtime : driver;
    }

    Status device_count(int& out) override { return status_of(hipGetDeviceCount(&out)); }
    Status properties(int device, DeviceProperties& out) override {
        hipDeviceProp_t found{};
        if (const Status status = status_of(hipGetDeviceProperties(&found, device)); !status.ok())
            return status;
        out.name = found.name;
        split_arch(found, out);
        out.memory_bytes = static_cast<std::int64_t>(found.totalGlobalMem);
        out.compute_units = found.multiProcessorCount;
        out.wave_size = found.warpSize;
        out.l2_bytes = found.l2CacheSize;
        return most_lds(device, out.lds_bytes);
    }
    Status set_device(int device) override { return status_of(hipSetDevice(device)); }
    Status memory_info(std::size_t& free, std::size_t& total) override {
        return status_of(hipMemGetInfo(&free, &total));
    }

    Status allocate(std::size_t bytes, void*& out) override { return status_of(hipMalloc(&out, bytes)); }
    Status release(void* memory) override { return status_of(hipFree(memory)); }
    Status range_of(const void* address, const void*& begin, std::size_t& bytes) override {
#if defined(__HIP_PLATFORM_NVIDIA__)
        // HIP's headers have no form of it for this platform.
        CUdeviceptr first = 0;
        const Status status =
            status_of(cuMemGetAddressRange(&first, &bytes, reinterpret_cast<CUdeviceptr>(address)));
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
        begin = reinterpret_cast<const void*>(first);
        return status;
#else
        hipDeviceptr_t first = nullptr;
        const Status status =
            status_of(hipMemGetAddressRange(&first, &bytes, const_cast<hipDeviceptr_t>(address)));
        begin = first;
        // That an address is none of the device's is an answer; the caller's next look for an error shall not find it.
        if (!status.ok()) static_cast<void>(hipGetLastError());
        return status;
#endif
    }
    Status copy(void* to, const void* from, std::size_t bytes, CopyKind kind, void* stream) override {
        const auto direction = kind == CopyKind::to_device ? hipMemcpyHostToDevice
                               : kind == CopyKind::to_host ? hipMemcpyDeviceToHost
                                                           : hipMemcpyDeviceToDevice;
        return status_of(hipMemcpyAsync(to, from, bytes, direction, stream_of(stream)));
    }
    Status fill(void* memory, unsigned char value, std::size_t bytes, void* stream) override {
        return status_of(hipMemsetAsync(memory, value, bytes, stream_of(stream)));
    }

    Status create_stream(void*& out) override {
        hipStream_t stream = nullptr;
        const Status status = status_of(hipStreamCreate(&stream));
        out = stream;
        return status;
    }
    Status destroy_stream(void* stream) override {
        return status_of(hipStreamDestroy(stream_of(stream)));
    }
    Status synchronise_stream(void* stream) override {
        return status_of(hipStreamSynchronize(stream_of(stream)));
    }

    Status create_event(void*& out) override {
        hipEvent_t event = nullptr;
        const Status status = status_of(hipEventCreate(&event));
        out = event;
        return status;
    }
    Status destroy_event(void* event) override {
        return status_of(hipEventDestroy(event_of(event)));
    }
    Status record_event(void* event, void* stream) override {
        return status_of(hipEventRecord(event_of(event), stream_of(stream)));
    }
    Status synchronise_event(void* event) override {
        return status_of(hipEventSynchronize(event_of(event)));
    }
    Status elapsed_ms(void* start, void* stop, float& out) override {
        return status_of(hipEventElapsedTime(&out, event_of(start), event_of(stop)));
    }

    Status load_module(const void* image, void*& out) override {
        hipModule_t module = nullptr;
        const Status status = status_of(load_image(&module, image));
        out = module;
        return status;
    }
    Status unload_module(void* module) override {
        return status_of(unload_image(static_cast<hipModule_t>(module)));
    }
    Status function(void* module, const char* symbol, void*& out) override {
        hipFunction_t function = nullptr;
        const Status status = status_of(find_function(&function, static_cast<hipModule_t>(module), symbol));
        out = function;
        return status;
    }
    Status allow_dynamic_lds([[maybe_unused]] void* function, [[maybe_unused]] std::uint32_t bytes) override {
#if defined(__HIP_PLATFORM_NVIDIA__)
        // HIP's call takes a host function, which a module's function does not have.
        return status_of(cuFuncSetAttribute(static_cast<CUfunction>(function),
                                            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                            static_cast<int>(bytes)));
#else
        return {}; // The whole LDS is there without asking.
#endif
    }
    Status encode([[maybe_unused]] const hip_target::TensorMapSpec& map,
                  [[maybe_unused]] hip_target::TensorMapBits& out) override {
#if defined(__HIP_PLATFORM_NVIDIA__)
        CUtensorMap bits{};
        static_assert(sizeof bits == sizeof out &&
                      alignof(CUtensorMap) <= alignof(hip_target::TensorMapBits));
        std::array<cuuint64_t, hip_target::map_rank> extents{}, strides{};
        std::array<cuuint32_t, hip_target::map_rank> box{}, steps{};
        for (std::size_t i = 0; i < hip_target::map_rank; ++i) {
            extents[i] = static_cast<cuuint64_t>(map.extents[i]);
            strides[i] = static_cast<cuuint64_t>(map.strides[i]);
            box[i] = static_cast<cuuint32_t>(map.box[i]);
            steps[i] = static_cast<cuuint32_t>(map.steps[i]);
        }
        const CUresult result = cuTensorMapEncodeTiled(
            &bits,
            element_bits(map.type) == 8     ? CU_TENSOR_MAP_DATA_TYPE_UINT8
            : map.type == ElementType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                            : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            hip_target::map_rank, const_cast<void*>(map.base), extents.data(),
            strides.data() + 1, // that of dimension 0 is understood
            box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        std::memcpy(&out, &bits, sizeof out);
        return status_of(result);
#else
        return {static_cast<int>(hipErrorNotSupported), Fault::other};
#endif
    }
    Status launch(void* function, const LaunchShape& shape, const void* argument, void* stream) override {
        // The interface of parameters is not const; they are only read.
        void* parameters[] = {const_cast<void*>(argument)};
#if defined(__HIP_PLATFORM_NVIDIA__)
        if (shape.overlaps) return status_of(launch_early(function, shape, parameters, stream));
#endif
        return status_of(launch_kernel(static_cast<hipFunction_t>(function), shape.blocks, 1, 1,
                                       shape.threads, 1, 1, shape.dynamic_lds, stream_of(stream), parameters,
                                       nullptr));
    }
};

} // namespace
} // namespace fmha::loader

extern "C" __attribute__((visibility("default"))) fmha::loader::DeviceRuntime* fmha_device_runtime(int abi) {
    static fmha::loader::HipRuntime runtime;
    return abi == fmha::loader::runtime_abi ? &runtime : nullptr;
}
