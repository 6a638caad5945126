#pragma once

#include "dispatcher/types/args.hpp"
#include "kernels/programs/decisions.hpp"

#include <cstdint>

namespace fmha::test {

/// A tensor whose strides no other one has.
inline TensorView tensor(std::int64_t which) {
    TensorView view;
    view.batch_stride = 100'000 + which;
    view.head_stride = 7'000 + which;
    view.row_stride = 100 + which;
    return view;
}

/// What matrices of a cache ask of a context.
struct CacheContext : kernels::Decisions {
    KernelConfig config;
    const KernelConfig& cfg() const { return config; }
    static std::int64_t kept(std::int64_t value) { return value; }
};

} // namespace fmha::test
