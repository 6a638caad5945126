#include "dispatcher/types/json.hpp"
#include "harness/cli/commands.hpp"
#include "reference/kernel_numerics.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cli/case_options.hpp"
#include "harness/families/given_inputs.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/case_runner.hpp"
#include "reports/report.hpp"

#include <fmt/ostream.h>

namespace fmha::cli {
namespace {

class CheckCommand final : public Command {
  public:
    std::string_view name() const override { return "check"; }
    std::string_view summary() const override { return "Judge outputs computed elsewhere, given as .npy"; }
    std::string_view example() const override {
        return "fmha reference --case 'fwd/decode[dtype=bf16]@1' --out inputs\n"
               "  python3 my_kernel.py inputs mine    # reads q.npy, k.npy, v.npy; writes o.npy and lse.npy\n"
               "  fmha check --case 'fwd/decode[dtype=bf16]@1' --tensors inputs --outputs mine";
    }
    void declare(OptionSet& options) override {
        chosen_.declare(options);
        options.required_option("--tensors", tensors_, "Folder with the inputs: q.npy, k.npy, v.npy …");
        options.option("--outputs", outputs_,
                       "Folder with o.npy (and lse.npy, randval.npy as the case asks; k_out.npy … of "
                       "append-KV; dq.npy, dk.npy … of backward), not float64 as fmha reference writes them; "
                       "default: that of the inputs");
        options.option("--p-prescale", p_prescale_,
                       "Factor that the kernel puts on P before casting it; P = 1 must stay a normal number");
        options.flag("--normalised-p", normalised_p_, "The kernel casts P after dividing by the row total");
        options.flag("--tf32", tf32_, "The kernel multiplies fp32 through TF32");
        options.format(format_);
    }
    int run(const Streams& streams) override {
        if (!(p_prescale_ > 0.0) || p_prescale_ > 0x1p64)
            throw InputError(fmt::format("--p-prescale is {}; allowed: above 0, at most 2^64", p_prescale_));
        const harness::Case c = chosen_.load();
        const int threads = chosen_.reference_threads(c, harness::FileUse::judge_outputs);
        const Fp8Flavour flavour = fp8_flavour(chosen_.arch());
        Numerics numerics = reference::kernel_numerics(element_types(c.data_type, flavour), p_prescale_);
        // Below that even P = 1 is no normal number of its type, and the limits let everything pass.
        if (numerics.u_p > 0.0 && numerics.f_p > numerics.u_p)
            throw InputError(fmt::format("--p-prescale is {}; allowed for {}: at least {}", p_prescale_,
                                         to_string(c.data_type), p_prescale_ * numerics.f_p / numerics.u_p));
        const harness::Family& family = harness::family_of(c.family);
        const auto data = family.allocate(c, flavour);
        const harness::GivenInputs inputs = harness::read_given_inputs(tensors_, family, c, *data);
        // Before outputs take the place of inputs that are updated.
        const auto expectation = data->expectation(threads);
        auto found = harness::read_given_outputs(outputs_.empty() ? tensors_ : outputs_, family, c, *data,
                                                 inputs.caches);
        numerics.normalised_p = normalised_p_;
        if (tf32_) {
            if (c.data_type != DataType::fp32)
                throw InputError(fmt::format("--tf32 says how fp32 is multiplied; the case is {}",
                                             to_string(c.data_type)));
            // P is an operand of the second product, so it is rounded like the others.
            numerics.u_m = numerics.u_p = 0x1p-11;
        }
        auto result =
            harness::judge_given_outputs(c, *data, *expectation, numerics, inputs.origin, std::move(found));
        result.reproduce = streams.invocation;
        const bool passed = result.outcome == harness::Outcome::passed;
        if (format_ == OutputFormat::json)
            fmt::print(streams.out, "{}\n", harness::to_json(result).dump(1));
        else
            fmt::print(streams.out, "{}", reports::failure_text(result));
        return passed ? all_well : check_failed;
    }

  private:
    CaseOptions chosen_;
    std::string tensors_, outputs_;
    OutputFormat format_ = OutputFormat::text;
    double p_prescale_ = 1.0;
    bool normalised_p_ = false, tf32_ = false;
};

} // namespace

std::unique_ptr<Command> make_check_command() {
    return std::make_unique<CheckCommand>();
}

} // namespace fmha::cli
