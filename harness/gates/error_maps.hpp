#pragma once

#include "harness/gates/outputs.hpp"
#include "harness/results/result.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fmha::harness {

/// Collects where the wrong elements of each output lie, head by head.
class ErrorMaps {
  public:
    /// Column −1: the whole row. Several gates may reject one element, which is wrong once.
    void add(const Outputs::Tensor& tensor, const reference::RowId& row, std::int64_t column);

    /// The head with the most wrong elements of each output that has any, in the order in which outputs were first wrong.
    std::vector<ErrorMap> worst() const;

  private:
    struct Head {
        std::int64_t rows = 0, columns = 1;
        std::set<std::pair<std::int64_t, std::int64_t>> wrong; ///< row and column
    };
    struct Output {
        std::string tensor;
        Axis rows = Axis::none, columns = Axis::none;
        std::map<std::pair<std::int64_t, std::int64_t>, Head> heads; ///< by entry and head
    };
    Output& output_of(const Outputs::Tensor& tensor);
    static ErrorMap drawn(const Output& output, std::int64_t b, std::int64_t h, const Head& head);

    std::vector<Output> outputs_;
    std::int64_t elements_ = 0;
};

} // namespace fmha::harness
