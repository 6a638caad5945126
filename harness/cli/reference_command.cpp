#include "dispatcher/types/json.hpp"
#include "harness/cli/commands.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cli/case_options.hpp"
#include "harness/families/family.hpp"
#include "harness/families/given_inputs.hpp"
#include "harness/npy/exchange.hpp"
#include "harness/results/counted.hpp"

#include <fmt/ostream.h>

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
        options.required_output("--out", out_, "Folder for o.npy, lse.npy and randval.npy");
        options.format(format_);
    }
    int run(const Streams& streams) override {
        const harness::Case c = chosen_.load();
        const int threads = chosen_.reference_threads(c, harness::FileUse::write_reference);
        const harness::Family& family = harness::family_of(c.family);
        const auto data = family.allocate(c, fp8_flavour(chosen_.arch()));
        if (!tensors_.empty()) harness::read_given_inputs(tensors_, family, c, *data);
        std::error_code failure;
        std::filesystem::create_directories(out_, failure);
        if (failure) throw InputError(fmt::format("--out {}: {}", out_, failure.message()));
        if (tensors_.empty()) {
            data->complete_inputs();
            harness::write_inputs(out_, data->tensors());
        }
        const std::size_t rows = data->write_reference(out_, threads);
        if (format_ == OutputFormat::json) {
            const Json written{{"name", c.id}, {"rows", rows}, {"out", out_}};
            fmt::print(streams.out, "{}\n", written.dump());
        } else {
            fmt::print(streams.out, "{}: {} written to {}\n", c.id, counted(rows, "row"), out_);
        }
        return all_well;
    }

  private:
    CaseOptions chosen_;
    std::string tensors_, out_;
    OutputFormat format_ = OutputFormat::text;
};

} // namespace

std::unique_ptr<Command> make_reference_command() {
    return std::make_unique<ReferenceCommand>();
}

} // namespace fmha::cli
