// The driver functions behind HIP's module API, found in libcuda when they are first called: a library that links libcuda
// does not load on a machine without a driver. They are hidden, so that they stand in for libcuda in this plugin only.

#include <cuda.h>

#include <cstddef>
#include <dlfcn.h>

namespace {

void* driver_symbol(const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr : dlsym(library, name);
}

} // namespace

// cuda.h defines some of the names as macros for their current version; the text is that of the expanded name.
#define FMHA_TEXT_OF(name) #name
#define FMHA_NAME_OF(name) FMHA_TEXT_OF(name)
#define FMHA_FORWARD(function, parameters, arguments)                                                        \
    extern "C" CUresult CUDAAPI function parameters {                                                        \
        static auto* const found =                                                                           \
            reinterpret_cast<decltype(function)*>(driver_symbol(FMHA_NAME_OF(function)));                    \
        return found == nullptr ? CUDA_ERROR_NO_DEVICE : found arguments;                                    \
    }

FMHA_FORWARD(cuModuleLoadData, (CUmodule * module, const void* image), (module, image))
FMHA_FORWARD(cuModuleUnload, (CUmodule module), (module))
FMHA_FORWARD(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name),
             (function, module, name))
FMHA_FORWARD(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
             (function, attribute, value))
FMHA_FORWARD(cuMemGetAddressRange, (CUdeviceptr * begin, std::size_t* bytes, CUdeviceptr address),
             (begin, bytes, address))
FMHA_FORWARD(cuTensorMapEncodeTiled,
             (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void* base,
              const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
              const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
              CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
             (map, type, rank, base, extents, strides, box, steps, interleave, swizzle, promotion, fill))
FMHA_FORWARD(cuLaunchKernel,
             (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
              unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,
              void** extra),
             (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters,
              extra))
FMHA_FORWARD(cuLaunchKernelEx,
             (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra),
             (config, function, parameters, extra))
