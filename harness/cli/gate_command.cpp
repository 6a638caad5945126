#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cli/attempts.hpp"
#include "harness/cli/catalog_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/output_files.hpp"
#include "harness/cli/store_option.hpp"
#include "harness/cli/today.hpp"
#include "harness/regression/compare.hpp"
#include "reports/gate.hpp"

#include <charconv>
#include <filesystem>
#include <fmt/ostream.h>
#include <optional>

namespace fmha::cli {
namespace {

using regression::Side;
using regression::Verdict;

/// "slower=5" or "margin=20", percent.
void apply_budget(const std::string& text, regression::Budget& budget) {
    const auto equals = text.find('=');
    const std::string kind = text.substr(0, equals);
    double percent = -1.0;
    const char* end = text.data() + text.size();
    bool whole = false; // "5x" is no number
    if (equals != std::string::npos)
        whole = std::from_chars(text.data() + equals + 1, end, percent).ptr == end;
    constexpr double hundred = 100.0, most = 1000.0;
    if ((kind != "slower" && kind != "margin") || !whole || !(percent >= 0.0) || percent > most)
        throw InputError(
            fmt::format("--budget {}: allowed: slower=PERCENT and margin=PERCENT, 0 to 1000", text));
    (kind == "slower" ? budget.slower : budget.margin) = percent / hundred;
}

class GateCommand final : public Command {
  public:
    std::string_view name() const override { return "gate"; }
    std::string_view summary() const override {
        return "Compare the newest runs of a store with earlier ones";
    }
    std::string_view example() const override {
        return "fmha gate --store new.db --against main.db --junit gate\n"
               "  fmha gate --store runs.db --against previous --family fwd --budget slower=8\n"
               "  fmha gate --store runs.db --against 89b8a8be --accept --only count --reason \"the 64x128 "
               "tile is gone\"";
    }
    void declare(OptionSet& options) override {
        options.required_option("--store", store_, "The file with the new runs");
        options.required_option(
            "--against", against_,
            "The runs before: another store, the beginning of a commit in this store, or \"previous\"");
        options.option("--family", family_, "Only findings of this API family");
        options.each(
            "--budget", budgets_,
            "Changes accepted beyond noise, in percent: slower=5 (times), margin=10 (nearer to a limit)");
        options.flag("--accept", accept_,
                     "Remember today's findings in the store as right, apart from cases that are not green");
        options.option("--reason", reason_, "Why they are right; kept beside them");
        options.option(
            "--only", only_,
            "With --accept: only findings of this kind (count, spill, …), or whose name has this text");
        options.output("--junit", junit_,
                       "Write JUnit XML into this folder, one file a family, and gate.xml for the whole");
        options.output("--html", html_, "Write a section for the page of a run (`fmha verify --section`)");
        options.output("--json", json_, "Write the verdict as JSON");
        options.format(format_);
    }
    int run(const Streams& streams) override {
        check_options();
        std::optional<ApiFamily> family;
        if (!family_.empty()) family = parse_option<ApiFamily>("--family", family_);
        regression::Budget budget;
        for (const std::string& text : budgets_) apply_budget(text, budget);
        // Acceptance makes no store of a file that is none.
        if (accept_) static_cast<void>(store::Store(store_, store::Access::read));
        const store::Store store(store_, accept_ ? store::Access::write : store::Access::read);
        const Side before = side_before(store);
        const Side after = regression::newest(store);
        const auto judged = [&] {
            return regression::compare(before, after, budget, store.accepted(), family);
        };
        Verdict verdict = judged();
        if (accept_) {
            const auto right = regression::acceptable(verdict, only_, reason_, now_utc());
            if (!only_.empty() && right.empty())
                throw InputError(fmt::format(
                    "--only {}: no finding that can be accepted has this kind or this text in its "
                    "name",
                    only_));
            store.accept(right);
            verdict = judged();
        }
        publish(verdict, streams);
        return verdict.green() ? all_well : check_failed;
    }

  private:
    void check_options() const {
        if (accept_ == reason_.empty())
            throw InputError(accept_ ? "--accept needs --reason, which is kept"
                                     : "--reason needs --accept, which keeps it");
        if (!only_.empty() && !accept_) throw InputError("--only needs --accept, which it narrows");
        if (accept_ && reason_.find_first_not_of(" \t\n") == std::string::npos)
            throw InputError("--reason is blank; later readers need it");
        for (const std::string& file : {html_, json_})
            if (!file.empty()) system::check_writable(file);
        if (junit_.empty()) return;
        std::vector<std::string> names = regression::family_names();
        names.emplace_back("gate");
        for (const std::string& name : names)
            require_different(
                {{"--junit", junit_file(name)}},
                {{"--store", store_}, {"--against", against_}, {"--html", html_}, {"--json", json_}});
        system::check_writable(junit_file("gate"));
    }

    /// Of a family, or "gate" for the whole.
    std::filesystem::path junit_file(const std::string& name) const {
        return std::filesystem::path(junit_) / (name + ".xml");
    }

    Side side_before(const store::Store& store) const {
        if (against_ == "previous") return regression::previous(store);
        if (std::filesystem::exists(against_))
            return regression::newest(store::Store(against_, store::Access::read));
        return regression::of_commit(store, against_);
    }

    void publish(const Verdict& verdict, const Streams& streams) const {
        if (format_ == OutputFormat::json)
            fmt::print(streams.out, "{}\n", to_json(verdict).dump(1));
        else
            fmt::print(streams.out, "{}", to_text(verdict));
        streams.out.flush();
        Attempts attempt;
        attempt([&] {
            if (junit_.empty()) return;
            system::write_file(junit_file("gate"), reports::junit(verdict));
            for (const auto& family : verdict.families)
                system::write_file(junit_file(family.family), reports::junit(verdict, family));
        });
        attempt.write(html_, [&] { return reports::section(verdict); });
        attempt.write(json_, [&] { return to_json(verdict).dump(1) + "\n"; });
        attempt.finish();
    }

    std::string store_, against_, family_, reason_, only_, junit_, html_, json_;
    OutputFormat format_ = OutputFormat::text;
    std::vector<std::string> budgets_;
    bool accept_ = false;
};

} // namespace

std::unique_ptr<Command> make_gate_command() {
    return std::make_unique<GateCommand>();
}

} // namespace fmha::cli
