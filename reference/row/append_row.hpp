#pragma once

#include "reference/append.hpp"

#include <cstdint>
#include <utility>

namespace fmha::reference {

/// Batch index and row of the cache's view.
struct CachePlace {
    std::int64_t slot = 0, row = 0;
};

/// C(b), the tokens already in the cache (V-1).
std::int64_t cached_keys(const AppendKvArgs& args, std::int64_t b);

/// Where the key at position `position` of entry b lies (V-2, P-2, P-6).
CachePlace place_of_key(const AppendKvArgs& args, std::int64_t b, std::int64_t position);

/// The position whose angles rotate row i: of a new key, or of a query (V-5).
std::int64_t rotary_position(const AppendKvArgs& args, std::int64_t cached, std::int64_t i, bool query);

/// The two channels of pair m (V-4).
std::pair<std::int64_t, std::int64_t> rotary_pair(const RopeArgs& rope, std::int64_t m);

/// An unrounded sum of two products: `value` is nearest to it and `rest` is the remainder, to the last bit.
struct ExactSum {
    double value = 0.0, rest = 0.0;
};

/// y0 and y1 of V-4.
std::pair<ExactSum, ExactSum> rotated(double x0, double x1, double cosine, double sine);

/// cos[position][m] or sin[position][m].
double rotary_table(const TensorView& table, std::int64_t position, std::int64_t m);

/// Whose row of a new tensor becomes key i of (b, h).
struct NewRow {
    std::int64_t b = 0, h = 0, i = 0;
};
NewRow new_row(const AppendKvArgs& args, std::int64_t b, std::int64_t h, std::int64_t i);

/// Channels of a row that are rotated: rotary_dim of K and Q, none of V.
std::int64_t rotated_channels(const AppendKvArgs& args, AppendTarget target);

/// The rules that the row form is assembled from. Tests replace one by a faulty one and see the matrix form disagree;
/// everything else uses the defaults.
struct AppendParts {
    std::int64_t (*cached)(const AppendKvArgs&, std::int64_t b) = cached_keys;
    CachePlace (*place)(const AppendKvArgs&, std::int64_t b, std::int64_t position) = place_of_key;
    std::int64_t (*position)(const AppendKvArgs&, std::int64_t cached, std::int64_t i,
                             bool query) = rotary_position;
    std::pair<std::int64_t, std::int64_t> (*pair)(const RopeArgs&, std::int64_t m) = rotary_pair;
    std::pair<ExactSum, ExactSum> (*rotate)(double x0, double x1, double cosine, double sine) = rotated;
    double (*cosine)(const TensorView&, std::int64_t position, std::int64_t m) = rotary_table;
    double (*sine)(const TensorView&, std::int64_t position, std::int64_t m) = rotary_table;
    NewRow (*source)(const AppendKvArgs&, std::int64_t b, std::int64_t h, std::int64_t i) = new_row;
    std::int64_t (*channels)(const AppendKvArgs&, AppendTarget) = rotated_channels;
};

/// Section 18 one row, one pair and one channel after another. Same contract as `append`.
AppendedRows append_row_by_row(const AppendKvArgs& args, const AppendParts& parts = {});

} // namespace fmha::reference
