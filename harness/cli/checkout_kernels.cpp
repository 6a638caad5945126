#include "harness/cli/checkout_kernels.hpp"

#include "dispatcher/plan/plan.hpp"
#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cli/tensor_difference.hpp"
#include "harness/npy/exchange.hpp"
#include "harness/run/device_splits.hpp"
#include "harness/run/execution.hpp"
#include "parity/side_by_side/call_text.hpp"
#include "reference/kernel_numerics.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <functional>

namespace fmha::cli {
namespace {

namespace fs = std::filesystem;
using harness::Case;
using harness::CaseData;
using harness::MemoryBlock;
using harness::Outputs;
using harness::TensorSpec;
using parity::CallBlock;
using parity::CallEnd;

const char* program_of(const Case& c) {
    return traits_of(c.family).gradients ? "fmha_ck_bwd" : "fmha_ck_fwd";
}

/// Writes the memory of a case and the call on it into `folder`.
void write_call(const fs::path& folder, const Case& c, CaseData& data, const std::string& arch) {
    const std::vector<MemoryBlock> memory = data.tensors().memory();
    std::vector<CallBlock> blocks;
    for (const MemoryBlock& block : memory) {
        const auto bytes = static_cast<std::uint64_t>(block.end() - block.begin());
        blocks.push_back({std::string(block.name), bytes});
        std::ofstream file(folder / (blocks.back().name + ".bin"), std::ios::binary);
        file.write(reinterpret_cast<const char*>(block.begin()), static_cast<std::streamsize>(bytes));
        if (!file.flush())
            throw InputError(folder.string() + ": the tensors of a call cannot be written there");
    }
    const auto place = [&](const void* pointer) {
        const auto* at = static_cast<const unsigned char*>(pointer);
        for (const MemoryBlock& block : memory)
            if (at >= block.begin() && at < block.end())
                return fmt::format("{}+{}", block.name, at - block.begin());
        return std::string("none");
    };
    const Problem problem = harness::to_problem(c, arch);
    const std::string text = std::visit(
        [&](const auto& args) -> std::string {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(args)>, std::monostate>)
                throw Error(c.id + " has no arguments");
            else
                return parity::call_text(problem, args, blocks, place);
        },
        data.invocation());
    system::write_file(folder / "call", text);
}

void read_memory(const fs::path& folder, CaseData& data) {
    for (const MemoryBlock& block : data.tensors().memory()) {
        const std::span<unsigned char>& bytes = block.stretches.front();
        std::ifstream file(folder / (std::string(block.name) + ".bin"), std::ios::binary);
        if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
            throw Error(fmt::format("the program left {}.bin shorter than it was", block.name));
    }
}

/// The outcome that the end of the program says; `right` stands for: it ran, now judge.
void read_end(CheckoutKernels::Beside& beside, const system::ProcessResult& result,
              std::chrono::seconds limit) {
    parity::Answer& theirs = beside.theirs;
    const auto last_line = [](std::string_view text) {
        while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
        const auto start = text.rfind('\n');
        return std::string(start == std::string_view::npos ? text : text.substr(start + 1));
    };
    theirs.line = last_line(result.out);
    const std::string complaint = last_line(result.err);
    const auto end = [&](parity::Verdict verdict, std::string sentence) {
        theirs.verdict = verdict;
        theirs.sentence = std::move(sentence);
    };
    if (result.timed_out)
        return end(parity::Verdict::timed_out, fmt::format("it did not end within {} s", limit.count()));
    switch (static_cast<CallEnd>(result.exit_code)) {
    case CallEnd::ran:
        return end(parity::Verdict::right, "");
    case CallEnd::no_kernel:
        return end(parity::Verdict::declined, "it has no kernel for this");
    case CallEnd::cannot_say:
        beside.asked = false;
        return end(parity::Verdict::declined, complaint);
    default:
        return end(parity::Verdict::crashed,
                   fmt::format("{}{}{}",
                               result.exit_code > 128
                                   ? fmt::format("signal {} ended it", result.exit_code - 128)
                                   : fmt::format("it ended with exit code {}", result.exit_code),
                               complaint.empty() ? "" : ": ", complaint));
    }
}

const Outputs::Tensor* find(const std::vector<Outputs>& stages, std::string_view name) {
    for (const Outputs& stage : stages)
        if (const Outputs::Tensor* tensor = stage.find(name)) return tensor;
    return nullptr;
}

} // namespace

CheckoutKernels::CheckoutKernels(std::string folder, std::chrono::seconds limit, int device, std::string keep)
    : folder_(std::move(folder)), limit_(limit), device_(device), keep_(std::move(keep)) {}

void CheckoutKernels::require_programs(const std::string& folder, const std::vector<Case>& cases) {
    for (const Case& c : cases)
        if (cannot(c).empty() && !fs::is_regular_file(fs::path(folder) / program_of(c)))
            throw InputError(fmt::format("--ck-kernels {}: there is no {}; make it from a built checkout: "
                                         "parity/side_by_side/checkout/build CHECKOUT BUILD {}",
                                         folder, program_of(c), folder));
}

std::string CheckoutKernels::cannot(const Case& c) {
    if (c.expect == harness::Expectation::invalid_problem) return "the problem is invalid";
    if (!c.wide_tensor.empty()) return "a tensor of the case has no memory between its entries";
    const auto own = stages_of(c.family);
    if (!std::ranges::equal(harness::family_of(c.family).stages(c), own))
        return "the case runs other stages than one call does";
    return {};
}

std::optional<fs::path> CheckoutKernels::kept_folder(const Case& c, const char* side) const {
    if (keep_.empty()) return std::nullopt;
    std::string name = c.id;
    for (char& letter : name)
        if (letter == '/') letter = ' ';
    fs::path folder = fs::path(keep_) / name / side;
    fs::create_directories(folder);
    return folder;
}

void CheckoutKernels::call(Beside& beside, const Case& c, CaseData& data, const std::string& arch) const {
    const system::TemporaryDirectory folder;
    write_call(folder.path(), c, data, arch);
    harness::TensorSet& tensors = data.tensors();
    const auto outputs_checksum = [&] { return tensors.checksum(std::mem_fn(&TensorSpec::is_output)); };
    const std::uint64_t inputs_before = tensors.input_checksum(), outputs_before = outputs_checksum();
    const std::vector<std::string> command{(fs::path(folder_) / program_of(c)).string(),
                                           folder.path().string(), std::to_string(device_)};
    read_end(beside, system::run_process(command, {.time = limit_}), limit_);
    if (beside.theirs.verdict != parity::Verdict::right) return;
    read_memory(folder.path(), data);
    if (auto stray = tensors.stray_write()) {
        beside.theirs.verdict = parity::Verdict::wrong;
        beside.theirs.sentence = "written outside the logical outputs: " + *stray;
    } else if (tensors.input_checksum() != inputs_before) {
        beside.theirs.verdict = parity::Verdict::wrong;
        beside.theirs.sentence = "an input was written";
    } else if (outputs_checksum() == outputs_before) {
        beside.theirs.verdict = parity::Verdict::silent;
        beside.theirs.sentence = "it ended well and has written nothing";
    }
}

CheckoutKernels::Beside CheckoutKernels::run(const Case& given, const harness::KernelSource* ours,
                                             const harness::CaseRunOptions& options) const {
    const Case c = options.archs ? harness::with_device_splits(given, options.arch, *options.archs) : given;
    const harness::Family& family = harness::family_of(c.family);
    const Fp8Flavour flavour = fp8_flavour(options.arch);
    const auto data = family.allocate(c, flavour);
    const auto expectation = data->expectation(options.reference_threads);
    if (const auto folder = kept_folder(c, "inputs")) harness::write_inputs(*folder, data->tensors());
    Beside beside;
    call(beside, c, *data, options.arch);
    const parity::Verdict ended = beside.theirs.verdict;
    if (ended != parity::Verdict::right && ended != parity::Verdict::wrong) return beside;
    const Numerics numerics = reference::kernel_numerics(element_types(c.data_type, flavour));
    const harness::CaseResult judged = harness::judge_given_outputs(c, *data, *expectation, numerics);
    if (judged.outcome != harness::Outcome::passed) {
        beside.theirs.verdict = parity::Verdict::wrong;
        if (beside.theirs.sentence.empty()) beside.theirs.sentence = judged.message;
    }
    if (const auto folder = kept_folder(c, "theirs")) harness::write_outputs(*folder, data->tensors());
    if (ours == nullptr) return beside;

    const std::vector<Outputs> theirs = harness::exchanged_outputs(c, *data);
    const std::vector<KernelFamily> stages = family.stages(c);
    const harness::Candidate candidate =
        harness::planned_candidate(*ours, family, c, harness::to_problem(c, options.arch));
    harness::Execution execution(*data, {}, candidate);
    const std::vector<Outputs> own = execution.first();
    if (const auto folder = kept_folder(c, "ours")) harness::write_outputs(*folder, data->tensors());
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        for (const Outputs::Tensor& tensor : theirs[stage].tensors()) {
            const Outputs::Tensor* const counterpart = find(own, tensor.name());
            if (counterpart == nullptr) continue;
            TensorDifference difference(*counterpart, tensor);
            expectation->each_bounded(stages[stage], theirs[stage], [&](const harness::Bounded& bounded) {
                if (bounded.tensor() == tensor.name()) difference.relate(bounded);
            });
            beside.differences.push_back(difference.json());
        }
    return beside;
}

Json to_json(const CheckoutKernels::Beside& beside) {
    return Json{{"theirs", std::string(to_string(beside.theirs.verdict))},
                {"their_sentence", beside.theirs.sentence},
                {"their_line", beside.theirs.line},
                {"asked", beside.asked},
                {"tensors", beside.differences}};
}

CheckoutKernels::Beside beside_of(const Json& json) {
    CheckoutKernels::Beside beside;
    beside.theirs.verdict = *parse_enum<parity::Verdict>(json.at("theirs").get<std::string>());
    beside.theirs.sentence = json.at("their_sentence").get<std::string>();
    beside.theirs.line = json.at("their_line").get<std::string>();
    beside.asked = json.at("asked").get<bool>();
    beside.differences = json.at("tensors");
    return beside;
}

} // namespace fmha::cli
