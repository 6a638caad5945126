// Prints the page of a run in which every text tries to run a script: its title would become "owned".

#include "reports/report.hpp"

#include <cstdio>
#include <string>

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

} // namespace

int main() {
    fmha::reports::Report report;
    for (const std::string& text : hostile)
        for (const auto& entry : fmha::EnumTable<Outcome>::names) {
            CaseResult result;
            result.name = result.about = result.family = result.tier = result.kernel = result.message = text;
            result.pattern = result.numerics = result.reproduce = result.smaller = text;
            result.labels = {text};
            result.outcome = entry.value;
            result.gates = {{.gate = text, .tensor = text, .passed = false, .ratio = 3.0, .detail = text}};
            result.worst = {{.tensor = text}};
            result.maps = {map_of(text)};
            result.tiles = {{text, 64, 128}};
            result.seconds = 1.0;
            report.ledger.add(result);
            report.results.push_back(std::move(result));
        }
    auto& info = report.info;
    info.version = info.target = info.arch = info.kernels = info.command = info.started = info.machine =
        hostile[0];
    info.compiler = hostile[1];
    info.left_out = {hostile[2]};
    report.sections = {"<section><h2>an audit</h2><script>document.title='owned'</script></section>"};
    std::fputs(fmha::reports::html(report).c_str(), stdout);
    return 0;
}
