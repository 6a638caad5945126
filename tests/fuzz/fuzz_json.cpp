// libFuzzer target over every JSON that the dispatcher reads: problems, upstream problems, sweep configurations.
// An accepted problem is planned on a small registry. Only errors of the project may leave a reader or the
// planner; anything else, and any finding of the sanitizers, is a defect.
#include "dispatcher/dispatcher.hpp"
#include "dispatcher/explain/explain.hpp"
#include "dispatcher/problem_json.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/upstream/problem.hpp"
#include "kernels/catalog/sweep_config.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace {

/// A few kernels of every family, so that problems of every API can be planned, refused and explained.
class Planner {
  public:
    Planner() : dispatcher_(registry_, {{"gfx950", 256, 64}}) {
        for (const auto& [family, name] : fmha::EnumTable<fmha::KernelFamily>::names)
            for (const std::int64_t hdim : {64, 128, 256})
                for (const auto data_type : {fmha::DataType::fp16, fmha::DataType::bf16}) {
                    fmha::KernelConfig kernel = fmha::testing::kernel_of(family, hdim);
                    kernel.signature.data_type = data_type;
                    if (hdim == 64) kernel.algorithm.constraint = "blocks64_le_cus";
                    registry_.add(kernel);
                }
    }

    void plan(const fmha::Problem& problem) const {
        static_cast<void>(problem.num_ops());
        static_cast<void>(problem.canonical_key());
        static_cast<void>(problem.to_string());
        if (dispatcher_.plan(problem).valid()) return;
        static_cast<void>(fmha::to_text(fmha::explain(dispatcher_, problem)));
    }

  private:
    fmha::Registry registry_;
    fmha::Dispatcher dispatcher_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Planner planner;
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    try {
        // The digits 0 to 3 choose in the seed corpus.
        switch (data[0] % 4) {
        case 0:
        case 3:
            for (const fmha::StatedProblem& stated : fmha::problems_from_text(text, "input"))
                planner.plan(stated.problem);
            break;
        case 1: {
            if (const auto line = fmha::Json::try_parse(text))
                static_cast<void>(fmha::upstream::problem_from_json(*line, "input"));
            break;
        }
        default:
            for (const auto use : {fmha::catalog::SweepUse::hand_kept, fmha::catalog::SweepUse::sweep})
                static_cast<void>(fmha::catalog::parse_sweep_config(text, "input", use));
        }
    } catch (const fmha::Error&) {
        // Refused with a sentence: what bad input is for.
    }
    return 0;
}
