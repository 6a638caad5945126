#include "harness/families/given_inputs.hpp"

#include "dispatcher/types/check_contents.hpp"
#include "harness/families/append_expectation.hpp"
#include "harness/npy/exchange.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace fmha::harness {
namespace {

using Content = std::vector<unsigned char>;

/// All memory of the tensors that are updated in place, by name.
std::map<std::string, Content> updated_content(const TensorSet& tensors) {
    std::map<std::string, Content> contents;
    for (const TensorSpec& spec : tensors.specs()) {
        if (spec.flow != Flow::in_out) continue;
        Content& content = contents[spec.name];
        for (const auto& stretch : tensors.tensor(spec.name).memory())
            content.insert(content.end(), stretch.begin(), stretch.end());
    }
    return contents;
}

} // namespace

void read_given_inputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                       CaseData& data) {
    read_inputs(folder, data.tensors());
    for (const KernelFamily stage : family.stages(c)) check_contents(data.invocation_of(stage));
}

void read_given_outputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                        CaseData& data) {
    TensorSet& tensors = data.tensors();
    const std::map<std::string, Content> before = updated_content(tensors);
    if (before.empty()) {
        read_outputs(folder, tensors);
        return;
    }
    const std::vector<KernelFamily> stages = family.stages(c);
    const Invocation first = data.invocation_of(stages.front());
    const auto& append = std::get<AppendKvArgs>(first);
    // The tables of the inputs say where the new keys lie.
    const reference::AppendedRows rows = reference::append(append);
    read_outputs(folder, tensors);
    std::vector<std::uint32_t> written;
    each_appended(append, rows, [&](const TensorView& view, std::int64_t at, std::int64_t, const auto&) {
        written.push_back(load_code(view.data, view.type, at));
    });
    for (const auto& [name, content] : before) tensors.tensor(name).restore(content);
    std::size_t next = 0;
    each_appended(append, rows, [&](const TensorView& view, std::int64_t at, std::int64_t, const auto&) {
        store_code(view.data, view.type, at, written[next++]);
    });
}

} // namespace fmha::harness
