#include "harness/cli/commands.hpp"
#include "reference/forward.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cli/case_options.hpp"
#include "harness/run/exchange.hpp"

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace fmha::cli {
namespace {

class ReferenceCommand final : public Command {
  public:
    std::string_view name() const override { return "reference"; }
    std::string_view summary() const override {
        return "Compute the reference of a case for tensors given as .npy";
    }
    std::string_view example() const override {
        return "fmha reference --case 'fwd/decode[dtype=bf16]@1' --out inputs      # writes the case's "
               "inputs too\n"
               "  fmha reference --case 'fwd/decode[dtype=bf16]@1' --tensors inputs --out expected";
    }
    void declare(OptionSet& options) override {
        chosen_.declare(options);
        options.option(
            "--tensors", tensors_,
            "Folder with q.npy, k.npy, v.npy …; without it the case's own data are used and written out");
        options.option("--out", out_, "Folder for o.npy, lse.npy and randval.npy", true);
        options.choice("--format", format_, {"text", "json"}, "What goes to standard output");
    }
    int run(const Streams& streams) override {
        const harness::FwdCase c = chosen_.load();
        harness::FwdTensors tensors(c, fp8_flavour(chosen_.arch()));
        if (!tensors_.empty()) harness::read_inputs(tensors_, tensors);
        std::error_code failure;
        std::filesystem::create_directories(out_, failure);
        if (failure) throw InputError(fmt::format("--out {}: {}", out_, failure.message()));
        if (tensors_.empty()) harness::write_inputs(out_, tensors);
        const FwdArgs args = tensors.args();
        const auto rows = c.sampled_rows ? reference::sampled_rows(args, c.seed) : reference::all_rows(args);
        const auto expected =
            reference::forward(args, rows, {.companions = false, .numerics = {}, .threads = 0});
        harness::write_reference(out_, tensors, expected);
        if (format_ == "json") {
            const nlohmann::ordered_json written{{"name", c.id}, {"rows", rows.size()}, {"out", out_}};
            fmt::print(streams.out, "{}\n", written.dump());
        } else {
            fmt::print(streams.out, "{}: {} rows written to {}\n", c.id, rows.size(), out_);
        }
        return all_well;
    }

  private:
    CaseOptions chosen_;
    std::string tensors_, out_, format_ = "text";
};

} // namespace

std::unique_ptr<Command> make_reference_command() {
    return std::make_unique<ReferenceCommand>();
}

} // namespace fmha::cli
