#include "dispatcher/c/context.hpp"
#include "dispatcher/explain/explain.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/catalog/query/row_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

using fmha::c::check_ready;
using fmha::c::guarded;
using fmha::c::require;

/// Copies as much of `whole` as `text` has room for, with a NUL behind it.
void hand_out(const std::string& whole, char* text, uint64_t capacity, uint64_t* length) {
    require(length != nullptr, "length");
    require(text != nullptr || capacity == 0, "text");
    *length = whole.size();
    if (capacity == 0) return;
    const auto count = static_cast<std::size_t>(std::min<uint64_t>(whole.size(), capacity - 1));
    std::memcpy(text, whole.data(), count);
    text[count] = '\0';
}

} // namespace

extern "C" {

fmha_status fmha_keep_kernels(fmha_context* context, const char* where) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, nullptr);
        require(where != nullptr, "where");
        const auto name_of = [](const fmha::KernelConfig& config, std::string& name) {
            name += fmha::catalog::name_of(fmha::catalog::RuleSet::house, config);
        };
        std::vector<fmha::KernelConfig> configs;
        for (const fmha::KernelEntry& entry : context->registry->get_all()) configs.push_back(entry.config);
        std::unordered_set<fmha::KernelConfig, fmha::FieldHash> kept;
        fmha::catalog::RowFilter(where, name_of).select(configs, [&](std::size_t index) {
            kept.insert(configs[index]);
        });
        if (kept.empty())
            throw fmha::NoKernelFound(
                fmt::format("none of the {} kernels of this context satisfies {}", configs.size(), where));
        context->registry->filter(
            [&](const fmha::KernelEntry& entry) { return kept.contains(entry.config); });
    });
}

fmha_status fmha_export_kernels(fmha_context* context, char* text, uint64_t capacity, uint64_t* length) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, nullptr);
        hand_out(context->registry->export_json(), text, capacity, length);
    });
}

fmha_status fmha_explain(fmha_context* context, const void* args, char* text, uint64_t capacity,
                         uint64_t* length) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, nullptr);
        const fmha::c::Call call = fmha::c::call_of(args, context->arch, fmha::c::Memory::device);
        hand_out(to_text(explain(*context->dispatcher, call.problem)), text, capacity, length);
    });
}

} // extern "C"
