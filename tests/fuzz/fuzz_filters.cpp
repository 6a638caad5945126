// libFuzzer target over filter expressions (--where): read, written as SQL, and executed on a kernel of each family. SQLite must take all
// SQL that our reader writes.
#include "dispatcher/types/error.hpp"
#include "kernels/catalog/query/expression.hpp"
#include "kernels/catalog/query/row_filter.hpp"
#include "tests/dispatcher/kernels.hpp"
#include "tests/fuzz/require.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

std::vector<fmha::KernelConfig> make_kernels() {
    std::vector<fmha::KernelConfig> kernels;
    for (const auto& [family, name] : fmha::EnumTable<fmha::KernelFamily>::names)
        kernels.push_back(fmha::testing::kernel_of(family));
    return kernels;
}

void append_name(const fmha::KernelConfig& config, std::string& name) {
    name += to_string(config.signature.family);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto kernels = make_kernels();
    const std::string expression(reinterpret_cast<const char*>(data), size);
    try {
        fmha::catalog::RowFilter filter(expression, append_name);
        filter.select(kernels, [](std::size_t index) {
            fmha::fuzz::require(index < kernels.size(), "a kernel that is not there");
        });
    } catch (const fmha::Error& error) {
        // Refused with a sentence: the reader's own names the place, SQLite's may only be about a value that an expression meets while it runs.
        const std::string said = error.what(), begin = fmha::catalog::naming_expression(expression) + ": ";
        const std::string why = said.starts_with(begin) ? said.substr(begin.size()) : said;
        for (const char* words : {"near ", "no such ", "unrecognized token", "incomplete input"})
            fmha::fuzz::require(!why.starts_with(words), said);
    }
    return 0;
}
