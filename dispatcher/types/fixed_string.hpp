#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <iosfwd>
#include <string_view>

namespace fmha {

/// Throws std::length_error. A template, because its text takes <string>, which device code does not include: `fields.hpp` brings the
/// definition to programs that use these headers without the library, and the library has it for the rest.
template <class Name>
[[noreturn]] void throw_name_too_long(Name name);

/// A short name held by value, so that records which carry names (architectures, tags) stay trivially
/// copyable and comparable without allocation. Names longer than `Capacity` throw std::length_error.
template <std::size_t Capacity>
class FixedString {
  public:
    constexpr FixedString() = default;
    constexpr FixedString(std::string_view text) { // NOLINT(google-explicit-constructor): reads as a string
        if (text.size() > Capacity) throw_name_too_long(text);
        for (std::size_t i = 0; i < text.size(); ++i) chars_[i] = text[i];
    }
    // NOLINTNEXTLINE(google-explicit-constructor)
    constexpr FixedString(const char* text) : FixedString(std::string_view(text)) {}

    constexpr std::string_view view() const {
        std::size_t n = 0;
        while (n < Capacity && chars_[n] != '\0') ++n;
        return {chars_.data(), n};
    }
    constexpr operator std::string_view() const { return view(); } // NOLINT(google-explicit-constructor)
    /// For callers that include <string>, which device code does not.
    template <class String = std::string>
    String str() const {
        return String(view());
    }
    constexpr bool empty() const { return chars_[0] == '\0'; }

    friend constexpr bool operator==(const FixedString&, const FixedString&) = default;
    friend constexpr auto operator<=>(const FixedString&, const FixedString&) = default;

  private:
    std::array<char, Capacity> chars_{};
};

/// Name of an architecture as the tools spell it (`gfx950`, `sm_90`). Not an enumeration, because an
/// architecture is added by a JSON file alone.
using ArchName = FixedString<16>;

/// Name of a tile variant or of a selection constraint; empty when there is none.
using Tag = FixedString<24>;

} // namespace fmha
