#pragma once

// The HIP headers of the platform that this is compiled for.
#if defined(__HIP_PLATFORM_NVIDIA__)
#include "kernels/loader/plugins/cuda13_for_hip.hpp"
#else
#include <hip/hip_runtime_api.h>
#endif
