#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/gates/bounded.hpp"
#include "harness/gates/outputs.hpp"

#include <cstdint>
#include <string>

namespace fmha::cli {

/// Two copies of one output, element by element.
class TensorDifference {
  public:
    TensorDifference(const harness::Outputs::Tensor& x, const harness::Outputs::Tensor& y);

    /// Puts the distances into proportion to the limit of each element, where `bounded` has the row.
    void relate(const harness::Bounded& bounded);

    /// "N elements, all the same bits", or how many differ, by how much, and where.
    std::string text() const;
    Json json() const;

  private:
    void add(std::int64_t row, std::int64_t column);

    const harness::Outputs::Tensor& x_;
    const harness::Outputs::Tensor& y_;
    std::int64_t elements_ = 0, differing_ = 0, worst_ulp_ = 0;
    double worst_ = 0.0, of_limit_ = -1.0; ///< negative: not known
    std::string first_, worst_place_;
};

} // namespace fmha::cli
