#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cli/build_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/kernel_request.hpp"
#include "harness/results/counted.hpp"
#include "kernels/generator/write.hpp"

#include <fmt/ostream.h>

#include <optional>

namespace fmha::cli {
namespace {

class GenerateCommand final : public Command {
  public:
    std::string_view name() const override { return "generate"; }
    std::string_view summary() const override {
        return "Write the HIP sources of kernels and a build for Ninja";
    }
    std::string_view example() const override {
        return "fmha generate --arch gfx942 --tier smoke --out kernels-gfx942\n"
               "  fmha generate --arch gfx950 --config cases/sweeps/fwd_ci.json --max-kernels 8\n"
               "  fmha generate --arch gfx950 --where \"c.hdim_q == 128 and c.data_type == 'bf16'\"";
    }

    void declare(OptionSet& options) override {
        request_.declare(options);
        compile_.declare(options);
        options.format(format_);
    }

    int run(const Streams& streams) override {
        const auto archs = request_.archs();
        const generator::Selection selection = request_.select(archs);
        const auto build = compile_.build();
        const auto tools = find_tools(archs, selection, streams);
        const auto units = generator::units_of(selection.kernels, build.per_file);
        const generator::ClaimedFolder claim(build.folder, [&](const std::string& sentence) {
            fmt::print(streams.err, "fmha generate: {}\n", sentence);
        });
        generator::write_sources(units, build.folder, generator::source_extension(compile_.launcher()));
        if (tools) generator::write_build(units, *tools, build.folder);
        if (format_ == OutputFormat::json)
            fmt::print(streams.out, "{}\n", to_json(units, selection).dump(1));
        else
            print(units, selection, streams);
        return selection.kernels.empty() ? check_failed : all_well;
    }

  private:
    /// Nothing where this machine has no compiler, which is said: sources can be read without one.
    std::optional<generator::BuildTools>
    find_tools(const arch::ArchSet& archs, const generator::Selection& selection, const Streams& streams) {
        try {
            return compile_.tools(archs, selection, request_.arguments());
        } catch (const generator::NoCompiler& error) {
            fmt::print(streams.err, "fmha generate: no build.ninja: {}\n", error.what());
            return std::nullopt;
        }
    }

    Json to_json(const std::vector<generator::Unit>& units, const generator::Selection& selection) const {
        auto sources = Json::array(), declined = Json::array();
        for (const generator::Unit& unit : units) {
            auto names = Json::array();
            for (const auto& kernel : unit.kernels) names.push_back(kernel.name);
            sources.push_back(
                {{"file", generator::source_file(unit, generator::source_extension(compile_.launcher()))},
                 {"kernels", std::move(names)}});
        }
        for (const auto& kernel : selection.declined)
            declined.push_back({{"name", kernel.kernel.name}, {"reason", kernel.reason}});
        return {{"sources", std::move(sources)}, {"declined", std::move(declined)}};
    }

    void print(const std::vector<generator::Unit>& units, const generator::Selection& selection,
               const Streams& streams) const {
        for (const auto& kernel : selection.declined)
            fmt::print(streams.out, "declined {}: {}\n", kernel.kernel.name, kernel.reason);
        fmt::print(streams.out, "{} in {} under {}, {} declined\n",
                   counted(selection.kernels.size(), "kernel"), counted(units.size(), "source"),
                   compile_.out(), selection.declined.size());
        if (!request_.sentence().empty()) fmt::print(streams.out, "{}\n", request_.sentence());
    }

    KernelRequest request_;
    CompileOptions compile_;
    OutputFormat format_ = OutputFormat::text;
};

} // namespace

std::unique_ptr<Command> make_generate_command() {
    return std::make_unique<GenerateCommand>();
}

} // namespace fmha::cli
