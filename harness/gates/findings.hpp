#pragma once

#include "harness/gates/error_maps.hpp"
#include "harness/gates/outputs.hpp"
#include "harness/gates/pattern.hpp"
#include "harness/results/result.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// The facts that patterns need about the rows that one axis counts. A family gives one for each axis of its outputs' rows.
struct RowSpace {
    /// One row: whether a reference judges it, how many rows its entry has, and how many keys it sees (a key: how many queries
    /// see it), −1 where that is not known.
    struct Facts {
        bool checked = true;
        std::int64_t length = 0, partners = -1;
    };

    Axis axis = Axis::query;
    std::int64_t batch = 0, heads = 0, group_size = 1;
    std::int64_t checked_rows = 0, all_rows = 0;
    std::int64_t median_partners = 0; ///< of the checked rows; 0 where it is not known
    std::function<Facts(const reference::RowId&)> facts;
};

/// The upper median; 0 of no values.
std::int64_t median(std::span<const std::int64_t> values);

/// Leaves the ten deviations that are farthest from what they should be, in units of their limits, the worst first. For lists of several
/// judgements.
void keep_worst(std::vector<Deviation>& deviations);

/// Collects the elements that failed, and the ten that came closest to failing or failed worst, over all outputs.
class Findings {
  public:
    explicit Findings(std::vector<RowSpace> spaces);

    /// One checked element with its distance in units of the limit; column −1 for a statistic.
    void element(const Outputs::Tensor& tensor, const reference::RowId& row, std::int64_t column, double got,
                 double expected, double limit, double ratio);
    /// A row (column −1) or element that an exact gate rejected.
    void wrong(const Outputs::Tensor& tensor, const reference::RowId& row, std::int64_t column);
    /// A row that an exact gate rejected because of these columns.
    void wrong_row(const Outputs::Tensor& tensor, const reference::RowId& row,
                   const std::vector<std::int64_t>& columns);

    std::vector<Deviation> worst() const;
    std::vector<ErrorMap> maps() const { return maps_.worst(); }
    /// The common property of the wrong elements, a sentence an axis; empty when none is wrong. Rows that only exact gates judge
    /// are looked at when no other row is wrong.
    std::string pattern() const;

  private:
    struct Ranked {
        double ratio;
        Deviation deviation;
    };
    struct Found {
        std::string tensor;
        WrongElement element;
    };
    struct Group {
        RowSpace space;
        std::vector<Found> checked, elsewhere; ///< once for each gate
        Axis columns = Axis::none;             ///< of the wrong elements, as long as it is one
        std::int64_t extent = 0;               ///< of that axis
        bool mixed_columns = false;

        std::string pattern() const;
    };
    static std::vector<WrongElement> each_once(std::vector<Found> found);
    Group& group_of(Axis axis);
    void count(const Outputs::Tensor& tensor, const reference::RowId& row, std::int64_t column, double ratio);

    std::vector<Group> groups_;
    std::vector<Ranked> ranked_;
    ErrorMaps maps_;
};

} // namespace fmha::harness
