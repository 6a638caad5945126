#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/visible_text.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/within.hpp"
#include "harness/store/history.hpp"
#include "reports/course.hpp"

#include <fmt/ostream.h>

#include <set>
#include <utility>

namespace fmha::cli {
namespace {

class HistoryCommand final : public Command {
  public:
    std::string_view name() const override { return "history"; }
    std::string_view summary() const override {
        return "Show the course of a case or kernel over the runs of a store";
    }
    std::string_view example() const override {
        return "fmha history 'fwd/ragged_tail[hdim=128,dtype=bf16,seqlen_k=129,mask=0]@7' --store runs.db";
    }
    void declare(OptionSet& options) override {
        options.positionals("NAME", names_, "Cases and kernels, whole names or parts of them");
        options.required_option("--store", store_, "The file that `--store` of other commands wrote");
        options.option("--last", last_, "How many runs to show of each");
        options.output("--html", html_, "Write a section for the page of a run (fmha verify --section)");
        options.format(format_);
    }
    int run(const Streams& streams) override {
        if (names_.empty()) throw InputError("name a case or a kernel");
        require_within("--last", last_, 1);
        if (!html_.empty()) system::check_writable(html_);
        const store::Store store(store_, store::Access::read);
        auto json = Json::array();
        std::vector<store::Course> all;
        std::string shown;
        // Two names may be parts of one.
        std::set<std::pair<std::string, std::string>> told;
        for (const std::string& name : names_)
            for (const auto& course : store::courses(store, name, static_cast<std::size_t>(last_))) {
                if (!told.emplace(course.subject, course.what).second) continue;
                if (!html_.empty()) all.push_back(course);
                if (format_ == OutputFormat::json) {
                    json.push_back(to_json(course));
                    continue;
                }
                if (course.subject != shown) fmt::print(streams.out, "{}\n", visible_line(course.subject));
                shown = course.subject;
                fmt::print(streams.out, "{}", to_text(course));
            }
        if (format_ == OutputFormat::json) fmt::print(streams.out, "{}\n", json.dump(1));
        if (!html_.empty()) system::write_file(html_, reports::section(all));
        return all_well;
    }

  private:
    std::vector<std::string> names_;
    std::string store_, html_;
    OutputFormat format_ = OutputFormat::text;
    std::int64_t last_ = 20;
};

} // namespace

std::unique_ptr<Command> make_history_command() {
    return std::make_unique<HistoryCommand>();
}

} // namespace fmha::cli
