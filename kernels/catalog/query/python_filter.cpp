#include "kernels/catalog/query/python_filter.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "kernels/catalog/query/columns.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::catalog {
namespace {

using Clock = std::chrono::steady_clock;

/// Records that go through one process; a list of millions is never in memory as text.
constexpr std::size_t batch_size = 50'000;

/// Reads a filter's file and records, a line each, and writes a digit for each record. The filter's own output goes to standard
/// error. Exit code 3: the file is at fault, and the last line of standard error says how.
constexpr const char* script = R"python(
import json, os, resource, runpy, sys
source, records, answers, memory, file_size, seconds = sys.argv[1:]
os.closerange(3, os.sysconf("SC_OPEN_MAX"))
for limit, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, file_size), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
    hard = resource.getrlimit(limit)[1]
    most = int(most) if hard == resource.RLIM_INFINITY else min(int(most), hard)
    resource.setrlimit(limit, (most, most))
class Kernel:
    def __repr__(self):
        return self.name
def fault(sentence):
    print(" ".join(sentence.split()), file=sys.stderr)
    sys.exit(3)
def named(error):
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
sys.stdout = sys.stderr
try:
    accepts = runpy.run_path(source).get("filter_config")
except BaseException as error:
    fault(named(error))
if not callable(accepts):
    fault("it defines no function filter_config(c)")
with open(records, encoding="utf-8") as lines:
    head = json.loads(next(lines))
    names, tuples = head["names"], head["tuples"]
    found = []
    for line in lines:
        kernel = Kernel()
        kernel.__dict__.update(zip(names, json.loads(line)))
        for name, separator in tuples.items():
            text = getattr(kernel, name)
            setattr(kernel, name, tuple(int(n) for n in (text.split(separator) if separator else text)))
        try:
            found.append("1" if accepts(kernel) else "0")
        except BaseException as error:
            fault(f"filter_config({kernel.name}): {named(error)}")
with open(answers, "w", encoding="ascii") as out:
    out.write("".join(found))
)python";

Json head_of(std::span<const Column> all) {
    Json names = Json::array(), tuples = Json::object();
    for (const Column& column : all) {
        names.push_back(column.name);
        if (column.tuple_separator) tuples[column.name] = std::string(*column.tuple_separator);
    }
    names.push_back("name");
    return {{"names", std::move(names)}, {"tuples", std::move(tuples)}};
}

std::string last_line(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text.empty() ? "it said nothing" : text.substr(text.rfind('\n') + 1);
}

} // namespace

PythonFilter::PythonFilter(std::filesystem::path file, NameOf name_of, PythonLimits limits)
    : file_(std::move(file)), name_of_(std::move(name_of)), limits_(std::move(limits)),
      time_left_(limits_.time) {
    system::read_file(file_);
}

void PythonFilter::select(std::span<const KernelConfig> records,
                          const std::function<void(std::size_t)>& hit) {
    for (std::size_t begin = 0; begin < records.size(); begin += batch_size) {
        const auto batch = records.subspan(begin, std::min(batch_size, records.size() - begin));
        const std::string told = answers(batch);
        for (std::size_t i = 0; i < told.size(); ++i)
            if (told[i] == '1') hit(begin + i);
    }
}

std::string PythonFilter::answers(std::span<const KernelConfig> records) {
    const auto start = Clock::now();
    const auto all = columns();
    const system::TemporaryDirectory folder;
    std::string text = head_of(all).dump() + '\n', scratch;
    for (const KernelConfig& config : records) {
        Json row = Json::array();
        for (const Column& column : all) {
            const Cell cell = column.read(config, scratch);
            std::visit([&](const auto& value) { row.push_back(value); }, cell);
        }
        scratch.clear();
        name_of_(config, scratch);
        row.push_back(scratch);
        text += row.dump() + '\n';
    }
    const auto rows = folder.path() / "records", told = folder.path() / "answers";
    system::write_file(rows, text);
    system::ProcessOptions options;
    options.time = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(time_left_),
                            std::chrono::milliseconds(1));
    options.inherited = {"PATH",       "HOME",       "LANG",        "LC_ALL",         "LC_CTYPE",
                         "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH"};
    options.most_output = limits_.output;
    // Of the processor, for processes that leave the group: the time of this one is measured by the clock.
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.time).count() + 1;
    const auto result = system::run_process({limits_.program, "-c", script, file_.string(), rows.string(),
                                             told.string(), std::to_string(limits_.memory),
                                             std::to_string(limits_.file_size), std::to_string(seconds)},
                                            options);
    time_left_ -= Clock::now() - start;
    const auto fail = [&](const std::string& why) {
        throw InputError(fmt::format("{}: {}", file_.string(), why));
    };
    if (result.wrote_too_much) fail(fmt::format("stopped, it printed more than {} bytes", limits_.output));
    if (result.timed_out)
        fail(fmt::format("stopped, filter_config needs more than the {} s that are allowed",
                         std::chrono::duration<double>(limits_.time).count()));
    if (result.exit_code != 0)
        fail(result.exit_code == 3 ? last_line(result.err)
                                   : fmt::format("{} ended with {}: {}", limits_.program, result.exit_code,
                                                 last_line(result.err)));
    if (!exists(told)) fail(fmt::format("{} ended without an answer", limits_.program));
    std::string digits = system::read_file(told);
    if (digits.size() != records.size())
        fail(fmt::format("{} answers for {} kernels", digits.size(), records.size()));
    return digits;
}

} // namespace fmha::catalog
