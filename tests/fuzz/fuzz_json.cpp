// libFuzzer target over the JSON that is read from outside: problems, upstream problems, sweep configurations, case files, results,
// journals, manifests of built kernels. An accepted problem is planned on a small registry, a case file is expanded, shards are merged.
// Only errors of the project may leave a reader; anything else, and any finding of the sanitizers, is a defect.
#include "dispatcher/dispatcher.hpp"
#include "dispatcher/explain/explain.hpp"
#include "dispatcher/problem_json.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/upstream/problem.hpp"
#include "harness/cases/case_file.hpp"
#include "harness/results/journal.hpp"
#include "harness/results/result_json.hpp"
#include "kernels/built/manifest.hpp"
#include "kernels/catalog/sweep_config.hpp"
#include "tests/dispatcher/kernels.hpp"
#include "tests/fuzz/require.hpp"

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

/// A case's name must give the case again.
void expand(const std::string& text) {
    const auto file = fmha::harness::CaseFile::parse(text, "input", "stem");
    for (const auto& one : file.expand(fmha::harness::Tier::nightly,
                                       [](const auto&) { return fmha::Tile{.m0 = 64, .n0 = 128}; })) {
        const auto begin = one.id.find('[');
        const auto overrides =
            begin == std::string::npos ? "" : one.id.substr(begin + 1, one.id.rfind(']') - begin - 1);
        auto again = file.from_overrides(overrides, one.id);
        again.seed = one.seed;
        fmha::fuzz::require(file.name(again) == one.id, one.id + " is read as " + file.name(again));
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Planner planner;
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    try {
        // The digits 0 to 6 choose in the seeds.
        switch (data[0] % 8) {
        case 0:
        case 7:
            for (const fmha::StatedProblem& stated : fmha::problems_from_text(text, "input"))
                planner.plan(stated.problem);
            break;
        case 1: {
            if (const auto line = fmha::Json::try_parse(text))
                static_cast<void>(fmha::upstream::problem_from_json(*line, "input"));
            break;
        }
        case 3:
            expand(text);
            break;
        case 4:
            for (const auto& result : fmha::harness::unpack(text))
                static_cast<void>(fmha::harness::to_json(result));
            break;
        case 5:
            if (auto part = fmha::harness::read_journal(text, "input"))
                static_cast<void>(fmha::harness::merge({*part, *part}));
            break;
        case 6: {
            const auto manifest = fmha::built::manifest_from_json(text, "input");
            fmha::fuzz::require(fmha::built::manifest_from_json(fmha::built::to_json(manifest), "again") ==
                                    manifest,
                                "the manifest is another one after it was written");
            break;
        }
        default:
            for (const auto use : {fmha::catalog::SweepUse::hand_kept, fmha::catalog::SweepUse::sweep})
                static_cast<void>(fmha::catalog::parse_sweep_config(text, "input", use));
        }
    } catch (const fmha::Error&) {
        // Refused with a sentence, as bad input should be.
    }
    return 0;
}
