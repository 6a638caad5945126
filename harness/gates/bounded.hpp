#pragma once

#include "dispatcher/types/element.hpp"
#include "reference/rows.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fmha::harness {

/// Where the inputs of judged outputs come from: the exact answers of a fill hold for that fill alone.
enum class InputOrigin : std::uint8_t {
    fill, ///< of the case, and so are the kernels: their arithmetic is known (docs/gates.md)
    own_bytes, ///< a caller brought exactly those of the case; how the kernel computes is known as far as it is declared
    caller ///< who may have brought anything
};

/// The expectation of one row of an output, a number a column; of a statistic, one number.
struct BoundedRow {
    reference::RowId id;
    std::vector<double> value; ///< exact, before any rounding to the output's type and before clamping
    std::vector<double> limit; ///< G1, G3: the largest |output − value| that is accepted
    std::vector<double>
        error; ///< of the value before it is rounded; read for 8-bit outputs (code rule of B.2)
    std::vector<double> variance; ///< G2: predicted for output − value; read when `in_rms`
    bool in_rms = true;           ///< the row enters the RMS statistics
    bool in_mean = false;         ///< and those of the mean error

    void resize(std::size_t columns) {
        for (auto* numbers : {&value, &limit, &error, &variance}) numbers->assign(columns, 0.0);
    }
};

/// All that G1, G2 and G3 need of one output: the rows that are judged and their limits. A family gives one for each
/// output of a stage that has no exact answer.
class Bounded {
  public:
    Bounded(std::string tensor, ElementType type) : tensor_(std::move(tensor)), type_(type) {}
    Bounded(const Bounded&) = delete;
    Bounded& operator=(const Bounded&) = delete;
    virtual ~Bounded() = default;

    /// Name of the output in `Outputs`, and its element type.
    const std::string& tensor() const { return tensor_; }
    ElementType type() const { return type_; }

    virtual std::int64_t rows() const = 0;
    /// Fills `into`, all vectors in the row's number of columns.
    virtual void read(std::int64_t row, BoundedRow& into) const = 0;
    /// Whether the assumptions of G2 and of G2.mean hold for these data.
    virtual bool has_rms() const { return false; }
    virtual bool has_mean() const { return false; }
    /// Whether those of G2.element hold: the error of one element is that of its own roundings, and the variance knows all of them.
    virtual bool has_elements() const { return false; }
    /// Whether those of G2.row hold besides: the columns of a row add up roundings independently of each other.
    virtual bool has_rows() const { return false; }
    /// Whether all elements of a row may share one rounding, as those of dK and dV do where one query is all that counts.
    virtual bool lines_may_round_once() const { return false; }
    /// By which share of a value rounding to nearest, without any mistake, may make it smaller on the average (G2.mean, B.3).
    virtual double lean() const { return 0.0; }

  private:
    std::string tensor_;
    ElementType type_;
};

} // namespace fmha::harness
