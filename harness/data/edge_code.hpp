#pragma once

#include "dispatcher/types/element.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace fmha::harness {

/// The numbers behind the fills edge_last and edge_first. Keys carry the digits of their rank, queries the
/// weight of each digit, so that every step of rank adds at least `gap` to the logit and softmax is one-hot:
/// a row of O must equal the V row of its last (or first) visible key, bit for bit. Weights are powers of two
/// times a small factor and digits are small integers, so every value is on the grid of its type and every
/// product and partial sum is exact.
class EdgeCode {
  public:
    struct Digit {
        std::int64_t first_channel = 0, channels = 0;
        double weight = 0.0; ///< of Q in each of the channels
    };

    /// As many digits as `hdim_q` channels of `type` can carry for softmax scale `sigma`; `mx` gives every
    /// digit a block of 32 channels, whose scale supplies the magnitude. nullopt when not even one digit
    /// fits.
    static std::optional<EdgeCode> make(ElementType type, bool mx, std::int64_t hdim_q, double sigma);

    /// Number of ranks that differ: 0 … capacity − 1.
    std::int64_t capacity() const { return capacity_; }
    const std::vector<Digit>& digits() const { return digits_; }
    std::int64_t digit(std::int64_t rank, std::size_t position) const;

    /// Rank of key j of `seqlen_k`. Beyond the capacity the keys farthest from the winning edge share one
    /// rank.
    std::int64_t rank(std::int64_t j, std::int64_t seqlen_k, bool last_wins) const;
    /// True when no other visible key shares the rank of the winning key j.
    bool decides(std::int64_t j, std::int64_t seqlen_k, bool last_wins) const;

  private:
    std::vector<Digit> digits_;
    std::int64_t base_ = 16, capacity_ = 0;
};

} // namespace fmha::harness
