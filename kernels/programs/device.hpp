#pragma once

/// The only place that knows which compiler reads the kernels. A function that device code calls has words in front of it. A loop is told
/// to disappear (registers can only be indexed by constants), to stay as it is, or to have four steps under way (loads that wait
/// for memory). Lambdas that hold products have to be inlined too, and say so behind their parameters.
#if defined(__HIP__) || defined(__CUDACC__)
#define FMHA_DEVICE __attribute__((host)) __attribute__((device)) __attribute__((always_inline)) inline
#define FMHA_INLINE_LAMBDA __attribute__((always_inline))
#define FMHA_UNROLL _Pragma("unroll")
#define FMHA_NO_UNROLL _Pragma("unroll 1")
#define FMHA_PIPELINED _Pragma("unroll 4")
#else
#define FMHA_DEVICE inline
#define FMHA_INLINE_LAMBDA
#define FMHA_UNROLL
#define FMHA_NO_UNROLL
#define FMHA_PIPELINED
#endif
