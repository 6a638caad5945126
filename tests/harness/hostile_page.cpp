// Prints the page of a run in which every text tries to run a script: its title would become "owned".

#include "dispatcher/types/error.hpp"
#include "harness/npy/npy.hpp"
#include "reports/course.hpp"
#include "reports/gate.hpp"
#include "reports/report.hpp"

#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace fmha::harness;

const std::string hostile[] = {
    "<script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">",
    "' onmouseover='document.title=\"owned\"' x='",
    "</pre></td></table><svg onload=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "<!-- <style>@import 'http://127.0.0.1/x'</style> -->",
    "javascript:document.title='owned'",
    "<iframe srcdoc=\"<script>parent.document.title='owned'</script>\"></iframe>",
    "<meta http-equiv=\"refresh\" content=\"0;url=javascript:document.title='owned'\">",
    "\x01\x1b[31m\xff\xfe \xe2\x80\xae",
};

ErrorMap map_of(const std::string& text) {
    ErrorMap map;
    map.tensor = map.row_axis = map.column_axis = text;
    map.rows = 100;
    map.columns = 64;
    map.block_rows = 4;
    map.block_columns = 2;
    map.tile_rows = 64;
    map.tile_columns = 32;
    map.wrong.assign(static_cast<std::size_t>(map.blocks_down() * map.blocks_across()), 0);
    map.wrong.front() = 8;
    map.wrong.back() = 1;
    return map;
}

/// The section of a gate whose every text is hostile.
std::string gate_section() {
    fmha::regression::Verdict verdict;
    verdict.before = hostile[0];
    verdict.after = hostile[1];
    for (const std::string& text : hostile) {
        fmha::regression::FamilyVerdict family;
        family.family = text;
        family.cases = 1;
        for (const auto& entry : fmha::EnumTable<fmha::regression::Kind>::names)
            for (const std::string& accepted : {std::string(), text})
                family.findings.push_back({entry.value, text, text, text, text, text, text, 0.0, accepted});
        verdict.families.push_back(std::move(family));
        verdict.notes.push_back(text);
    }
    return fmha::reports::section(verdict);
}

/// The reader's sentence about a .npy file with this dictionary. A kernel from elsewhere writes the headers of its outputs.
std::string complaint_about(const std::string& dictionary) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(dictionary.size() & 0xFFU);
    file += static_cast<char>(dictionary.size() >> 8U);
    std::istringstream stream(file + dictionary);
    try {
        static_cast<void>(read_npy(stream, "o.npy"));
    } catch (const fmha::InputError& error) {
        return error.what();
    }
    throw std::logic_error("a hostile header was accepted: " + dictionary);
}

/// The reader's sentence about headers whose names and values are hostile. A quotation mark ends each of these.
std::vector<std::string> complaints_about_headers() {
    std::vector<std::string> complaints;
    for (const std::string& text : hostile) {
        const std::string quoted = "'" + text.substr(0, text.find('\'')) + "'";
        complaints.push_back(complaint_about("{" + quoted + ": 1, }"));
        complaints.push_back(complaint_about("{'descr': " + quoted + ", }"));
        complaints.push_back(
            complaint_about("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } " + text));
    }
    for (const std::string script :
         {"<script>document.title=1</script>", "<img src=x onerror=document.title=1>"})
        for (const std::string before : {"'", "'descr': '", "'descr': '>"})
            complaints.push_back(complaint_about("{" + before + script + "': 1, }"));
    return complaints;
}

/// A course whose every text is hostile.
std::string course_section() {
    std::vector<fmha::store::Course> courses;
    for (const std::string& text : hostile)
        courses.push_back({text, text, {{text, text, 1.0, text}, {text, text, 2.0, text}}});
    return fmha::reports::section(courses);
}

} // namespace

int main() {
    fmha::reports::Report report;
    for (const std::string& text : hostile)
        for (const auto& entry : fmha::EnumTable<Outcome>::names) {
            CaseResult result;
            result.name = result.about = result.kernel = result.message = text;
            result.pattern = result.numerics = result.reproduce = result.smaller = text;
            result.labels = {text};
            result.outcome = entry.value;
            result.gates = {{.gate = text, .tensor = text, .passed = false, .ratio = 3.0, .detail = text}};
            result.worst = {{.tensor = text}};
            result.maps = {map_of(text)};
            result.tiles = {{fmha::KernelFamily::fwd, 64, 128}};
            result.seconds = 1.0;
            report.ledger.add(result);
            report.results.push_back(std::move(result));
        }
    for (const std::string& complaint : complaints_about_headers()) {
        CaseResult result;
        result.name = "fwd/plain@1";
        result.family = fmha::ApiFamily::fwd;
        result.outcome = Outcome::failed;
        result.message = complaint;
        report.ledger.add(result);
        report.results.push_back(std::move(result));
    }
    auto& info = report.info;
    info.version = info.target = info.arch = info.kernels = info.command = info.started = info.machine =
        hostile[0];
    info.compiler = hostile[1];
    info.left_out = {hostile[2]};
    info.devices = {hostile[3]};
    report.sections = {"<section><h2>an audit</h2><script>document.title='owned'</script></section>",
                       gate_section(), course_section()};
    std::fputs(fmha::reports::html(report).c_str(), stdout);
    return 0;
}
