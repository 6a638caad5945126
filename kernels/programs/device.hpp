#pragma once

/// The one place that knows which compiler reads the kernels: what a function needs in front of it so that
/// device code may call it.
#if defined(__HIP__) || defined(__CUDACC__)
#define FMHA_DEVICE __attribute__((host)) __attribute__((device)) inline
#else
#define FMHA_DEVICE inline
#endif
