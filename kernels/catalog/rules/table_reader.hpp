#pragma once

#include "kernels/arch/arch.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::catalog::audit {

/// Its data types are those of an architecture without a table of its own.
inline constexpr std::string_view fallback_types_arch = "gfx950";

/// A value inside a table file together with its place, so that a reader never forgets to say where a wrong
/// entry stands. Every access throws InputError with place, value and the allowed values.
class TableNode {
  public:
    explicit TableNode(const arch::Part& part);

    const std::string& source() const { return source_; }

    /// Member of an object; the object may not hold keys outside `known` (keys that start with an underscore
    /// are comments).
    TableNode at(std::string_view key) const;
    bool has(std::string_view key) const;
    void allow_keys(std::initializer_list<std::string_view> known) const;
    /// Keys of an object without comments.
    std::vector<std::string> keys() const;

    /// Elements of an array.
    std::vector<TableNode> items() const;

    /// Integer between `low` and `high`.
    std::int64_t integer(std::int64_t low, std::int64_t high) const;
    /// An extent of a tile: 1 … 32767.
    std::int16_t extent() const { return static_cast<std::int16_t>(integer(1, 32767)); }
    bool boolean() const;
    std::string text() const;
    std::vector<std::string> texts() const;
    /// Names of data types in the order of the alphabet, none of them twice.
    std::vector<std::string> data_types() const;
    /// Extents without repetition.
    std::vector<std::int64_t> distinct_integers() const;

    /// Array of exactly N extents.
    template <std::size_t N>
    std::array<std::int16_t, N> extents() const {
        const auto elements = items();
        if (elements.size() != N) refuse("an array of " + std::to_string(N) + " positive integers");
        std::array<std::int16_t, N> values{};
        for (std::size_t i = 0; i < N; ++i) values[i] = elements[i].extent();
        return values;
    }

    /// Throws InputError: this place, its content, the expected content.
    [[noreturn]] void refuse(const std::string& expected) const;

  private:
    TableNode(const Json* value, std::string source) : value_(value), source_(std::move(source)) {}

    const Json* value_;
    std::string source_;
};

} // namespace fmha::catalog::audit
