// libFuzzer target over the texts that a command line names things with: cases, kernels as globs, ranges, shards, masks and numbers
// relative to a tile. A reader must read its own print of a value as the same value.
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_file.hpp"
#include "harness/cases/case_name.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/load.hpp"
#include "harness/cases/mask_text.hpp"
#include "harness/cases/relative_text.hpp"
#include "harness/cases/shape_ranges.hpp"
#include "kernels/catalog/glob.hpp"
#include "tests/fuzz/require.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using fmha::fuzz::require;
namespace harness = fmha::harness;

/// One case file a family.
std::vector<harness::CaseFile> make_files() {
    std::vector<harness::CaseFile> files;
    for (const auto& [family, name] : fmha::EnumTable<fmha::ApiFamily>::names)
        files.push_back(harness::CaseFile::parse(
            fmt::format(R"({{"about": "Any.", "family": "{}", "tier": "smoke", "fill": "normal"}})", name),
            "any", "any"));
    return files;
}

void read_case(const harness::CaseFile& file, const std::string& text) {
    const auto read = [&](const std::string& name) {
        const auto parts = harness::split_name(name, [](const std::string&) { return false; });
        auto concrete = file.from_overrides(parts ? parts->overrides : "", name);
        if (parts && parts->seed) concrete.seed = *parts->seed;
        harness::check_form(concrete, name);
        return file.name(concrete);
    };
    const std::string printed = read(text);
    require(read(printed) == printed, fmt::format("{} is printed as {}", printed, read(printed)));
}

/// The pattern stands before the first newline, the text behind it.
void match(const std::string& text) {
    const auto end = text.find('\n');
    if (end == std::string::npos) return;
    const std::string pattern = text.substr(0, end), name = text.substr(end + 1);
    const bool matches = fmha::catalog::glob_match(pattern, name);
    // Brackets have another grammar in the C library, and a NUL ends its texts.
    if (pattern.find_first_of(std::string("[\\\0", 3)) != std::string::npos ||
        name.find('\0') != std::string::npos)
        return;
    require(matches == (fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0),
            fmt::format("glob {} on {}", pattern, name));
}

void read_mask(const std::string& text) {
    harness::MaskText mask, again;
    if (!harness::parse_mask(text, mask)) return;
    const std::string printed = harness::mask_text(mask);
    require(harness::parse_mask(printed, again) && again == mask, fmt::format("mask {}", printed));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto files = make_files();
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    const std::size_t choice = data[0] % 16;
    try {
        if (choice < files.size())
            read_case(files[choice], text);
        else if (choice < 8)
            match(text);
        else if (choice < 10)
            read_mask(text);
        else if (choice < 12)
            static_cast<void>(harness::at_tile(text, {.m0 = 64, .n0 = 128}));
        else if (choice == 12)
            static_cast<void>(harness::spread(text));
        else if (choice == 13)
            static_cast<void>(harness::expand_ranges(text));
        else
            static_cast<void>(harness::parse_shard(text));
    } catch (const fmha::Error&) {
        // Refused with a sentence.
    }
    return 0;
}
