#include "dispatcher/c/context.hpp"
#include "dispatcher/declarations/nearest.hpp"
#include "dispatcher/explain/explain.hpp"
#include "dispatcher/registry/kernel_names.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/catalog/query/row_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

using fmha::InputError;
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

/// Lines without the empty ones.
std::vector<std::string> lines_of(const char* text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        if (!line.empty()) lines.push_back(line);
    return lines;
}

/// Lets the caller's heuristic use its own context: what it does there changes nothing for the call that asks it.
class Question {
  public:
    explicit Question(fmha_context& context) : context_(context), args_(context.asked) {
        context_.asking = true;
    }
    ~Question() {
        context_.asking = false;
        context_.asked = args_;
    }
    Question(const Question&) = delete;
    Question& operator=(const Question&) = delete;

    const char* answer() const { return context_.heuristic(args_, context_.heuristic_user); }

  private:
    fmha_context& context_;
    const void* args_;
};

/// The caller's heuristic as the dispatcher asks one. It knows the kernels that the context has now.
fmha::Heuristic heuristic_of(fmha_context& context) {
    if (context.heuristic == nullptr) return {};
    const auto names = std::make_shared<const fmha::KernelNames>(*context.registry);
    return [&context, names](const fmha::Problem&) {
        std::vector<std::string> preferred;
        const char* text = Question(context).answer();
        for (const std::string& name : lines_of(text != nullptr ? text : "")) {
            const auto found = names->identifiers(name);
            if (found.empty()) throw InputError(fmt::format("no kernel of this context is called {}", name));
            preferred.insert(preferred.end(), found.begin(), found.end());
        }
        return preferred;
    };
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
        context->dispatcher->set_heuristic(heuristic_of(*context));
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
        context->asked = args;
        fmha::Explanation explanation = explain(*context->dispatcher, call.problem);
        explanation.plan = with_lengths(explanation.plan, call.lengths);
        hand_out(to_text(explanation), text, capacity, length);
    });
}

fmha_status fmha_set_heuristic(fmha_context* context, fmha_heuristic heuristic, void* user) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, nullptr);
        context->heuristic = heuristic;
        context->heuristic_user = user;
        context->dispatcher->set_heuristic(heuristic_of(*context));
    });
}

fmha_status fmha_correct_kernel(fmha_context* context, const char* config, char* text, uint64_t capacity,
                                uint64_t* length) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, nullptr);
        require(config != nullptr, "config");
        const fmha::Json stated = fmha::parse_strict_json(config, "config");
        auto wanted = fmha::fields_from_json<fmha::KernelConfig>(stated, "config");
        if (wanted.arch.empty()) wanted.arch = context->arch;
        const auto archs = fmha::arch::ArchSet::built_in();
        hand_out(fmha::to_json(fmha::nearest_valid(wanted, archs, fmha::stated_fields(stated))).dump(1), text,
                 capacity, length);
    });
}

} // extern "C"
