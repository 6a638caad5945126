#include "reports/report.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

namespace fmha::reports {

std::string failure_text(const harness::CaseResult& result) {
    std::string outcome(to_string(result.outcome));
    for (char& c : outcome)
        c = c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    std::string text = fmt::format("{} {}\n", outcome, result.name);
    if (!result.about.empty()) text += fmt::format("  about    {}\n", result.about);
    if (!result.kernel.empty()) text += fmt::format("  kernel   {}\n", result.kernel);
    if (!result.message.empty()) text += fmt::format("  why      {}\n", result.message);
    if (!result.pattern.empty()) text += fmt::format("  pattern  {}\n", result.pattern);
    if (!result.gates.empty()) {
        text += "  gates   ";
        for (const auto& gate : result.gates)
            text += fmt::format(" {}{}{}={:.3g}{}", gate.gate, gate.tensor.empty() ? "" : ":", gate.tensor,
                                gate.ratio, gate.failed() ? "!" : "");
        text += "   (measured / allowed; ! failed)\n";
    }
    const bool show_worst = !result.worst.empty() && result.outcome != harness::Outcome::passed;
    if (show_worst)
        text += "  worst    tensor  b  h    row column            got       expected          limit\n";
    for (const auto& d : result.worst) {
        if (!show_worst) break;
        text += fmt::format("           {:<6} {:>2} {:>2} {:>6} {:>6} {:>14.7g} {:>14.7g} {:>14.3g}\n",
                            d.tensor, d.b, d.h, d.row, d.column, d.got, d.expected, d.limit);
    }
    if (!result.numerics.empty()) text += fmt::format("  declared {}\n", result.numerics);
    text += fmt::format("  repeat   {}\n", result.reproduce);
    return text;
}

namespace {

namespace fs = std::filesystem;

/// Where bytes go, and the name that they get once they are complete.
struct Destination {
    fs::path write_to, rename_to;
};

Destination destination_of(const fs::path& file) {
    std::error_code failure;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), failure);
    const auto there = fs::status(file, failure);
    if (fs::is_directory(there)) throw InputError(file.string() + " is a folder, not a file to write");
    // Devices and pipes (/dev/stdout, /dev/null) are written to, not replaced by a file of their name.
    if (fs::exists(there) && !fs::is_regular_file(there)) return {file, {}};
    const fs::path target =
        fs::is_symlink(fs::symlink_status(file, failure)) ? fs::canonical(file, failure) : file;
    // Two processes may write the same report.
    return {fmt::format("{}.{}.part", target.string(), getpid()), target};
}

} // namespace

void check_writable(const std::filesystem::path& file) {
    const Destination to = destination_of(file);
    const bool writable = std::ofstream(to.write_to, std::ios::binary | std::ios::app).good();
    std::error_code unused;
    if (!to.rename_to.empty()) fs::remove(to.write_to, unused);
    if (!writable) throw InputError(file.string() + " cannot be written");
}

void write_file(const std::filesystem::path& file, const std::string& text) {
    const Destination to = destination_of(file);
    std::ofstream stream(to.write_to, std::ios::binary);
    stream << text;
    stream.close();
    std::error_code failure, unused;
    if (stream && !to.rename_to.empty()) fs::rename(to.write_to, to.rename_to, failure);
    if (stream && !failure) return;
    if (!to.rename_to.empty()) fs::remove(to.write_to, unused);
    throw InputError(
        fmt::format("{} cannot be written{}", file.string(), failure ? ": " + failure.message() : ""));
}

} // namespace fmha::reports
