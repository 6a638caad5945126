#pragma once

#include "dispatcher/types/args.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

/// Problems in batch mode whose entries all have one length and whose tensors lie densely, for tests and benchmarks that are not
/// about layouts, lengths or features.
namespace fmha::test {

struct DenseExtents {
    std::int64_t batch = 1, nhead_q = 1, nhead_k = 1, seqlen_q = 1, seqlen_k = 1, hdim_q = 1, hdim_v = 1;
};

inline Shape dense_shape(const DenseExtents& e) {
    return {.mode = Mode::batch,
            .batch = e.batch,
            .nhead_q = e.nhead_q,
            .nhead_k = e.nhead_k,
            .seqlen_q = e.seqlen_q,
            .seqlen_k = e.seqlen_k,
            .max_seqlen_q = e.seqlen_q,
            .min_seqlen_q = 0,
            .hdim_q = e.hdim_q,
            .hdim_v = e.hdim_v};
}

/// Arguments with their memory: Q, K and V of normal values, σ = 1/√hdim_q, no output. A `Value` is the bits of one element.
template <class Args, class Value>
class DenseProblem {
  public:
    Args args;

    /// `code_of` gives the bits of a float in `type`.
    DenseProblem(const DenseExtents& extents, ElementType type, Value (*code_of)(float), unsigned seed = 1)
        : type_(type), code_of_(code_of), engine_(seed) {
        args.shape = dense_shape(extents);
        args.score.scale_s = 1.0F / std::sqrt(static_cast<float>(extents.hdim_q));
        args.q = query_tensor(extents.hdim_q);
        args.k = key_tensor(extents.hdim_q);
        args.v = key_tensor(extents.hdim_v);
    }
    DenseProblem(const DenseProblem&) = delete;
    DenseProblem& operator=(const DenseProblem&) = delete;
    ~DenseProblem() = default;

    /// One more tensor of normal values: [batch, nhead_q, seqlen_q, channels].
    TensorView query_tensor(std::int64_t channels) {
        return tensor(args.shape.nhead_q, args.shape.seqlen_q, channels);
    }
    /// One more tensor of normal values: [batch, nhead_k, seqlen_k, channels].
    TensorView key_tensor(std::int64_t channels) {
        return tensor(args.shape.nhead_k, args.shape.seqlen_k, channels);
    }

  private:
    TensorView tensor(std::int64_t heads, std::int64_t rows, std::int64_t channels) {
        auto& values =
            memory_.emplace_back(static_cast<std::size_t>(args.shape.batch * heads * rows * channels));
        for (Value& value : values) value = code_of_(normal_(engine_));
        return {values.data(), type_, heads * rows * channels, rows * channels, channels, 1};
    }

    ElementType type_;
    Value (*code_of_)(float);
    std::mt19937 engine_;
    std::normal_distribution<float> normal_;
    std::deque<std::vector<Value>> memory_;
};

/// In fp32 a value is its own code.
inline float same_value(float value) {
    return value;
}

} // namespace fmha::test
