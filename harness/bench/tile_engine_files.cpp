#include "harness/bench/tile_engine_files.hpp"

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/shape_matrix.hpp"
#include "kernels/catalog/query/columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>

namespace fmha::harness {
namespace {

/// The kernel that a row is about: that of the main stage, or the first one where it does not run.
const KernelConfig& kernel_of(const BenchRow& row) {
    const auto main = std::ranges::find_if(row.kernels, [](const KernelConfig& config) {
        return api_traits_of(config.signature.family).main == config.signature.family;
    });
    return main == row.kernels.end() ? row.kernels.front() : *main;
}

/// The catalogue's column of this name, which is upstream's.
const catalog::Column& column_of(std::string_view name) {
    const auto columns = catalog::columns();
    const auto found = std::ranges::find(columns, name, &catalog::Column::name);
    if (found == columns.end()) throw Error(fmt::format("the catalogue has no column {}", name));
    return *found;
}

/// The text there for the kernel of a row.
Json cell(const catalog::Column& column, const BenchRow& row) {
    std::string scratch;
    return std::visit([](const auto& value) { return Json(value); }, column.read(kernel_of(row), scratch));
}

/// As Python's csv module writes values.
std::string csv_text(const Json& value) {
    if (value.is_null()) return {};
    if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
    if (!value.is_string()) return value.dump();
    std::string text = value.get<std::string>();
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
    return '"' + text + '"';
}

Json number(bool known, const std::string& text) {
    return known ? Json(text) : Json();
}

struct Field {
    std::string_view name;
    std::function<Json(const TileEngineRow&)> read;
};

bool measured(const TileEngineRow& one) {
    return one.row->outcome == BenchOutcome::measured;
}

double milliseconds(const TileEngineRow& one) {
    return one.row->time.median * 1e3;
}

double tflops(const TileEngineRow& one) {
    return one.row->flops_per_second() * 1e-12;
}

/// A column of the catalogue, under a name of the file's.
Field renamed_field(std::string_view name, std::string_view column) {
    return {name, [&at = column_of(column)](const TileEngineRow& one) { return cell(at, *one.row); }};
}
Field kernel_field(std::string_view name) {
    return renamed_field(name, name);
}

/// The numbers of upstream's paddings: 0, 1 or 8.
Field padding_field(std::string_view name) {
    return {name, [&column = column_of(name)](const TileEngineRow& one) {
                const Json value = cell(column, *one.row);
                return value.is_boolean() ? Json(value.get<bool>() ? 1 : 0) : value;
            }};
}

std::int64_t longest(const std::vector<std::int64_t>& lengths) {
    return lengths.empty() ? 0 : *std::ranges::max_element(lengths);
}

std::string_view status(const TileEngineRow& one) {
    switch (one.row->outcome) {
    case BenchOutcome::measured:
        return "PASS";
    case BenchOutcome::wrong:
        return "FAIL";
    case BenchOutcome::crashed:
        return "CRASH";
    case BenchOutcome::timed_out:
        return "TIMEOUT";
    default:
        return "NOT_RUN";
    }
}

/// The bytes of Q, K, V and O, each once, with every mask.
double gigabytes_per_second(const TileEngineRow& one) {
    const Case& c = *one.of;
    const auto q = static_cast<double>(c.nhead_q * longest(c.seqlen_q)),
               k = static_cast<double>(c.nhead_k * longest(c.seqlen_k));
    const double elements = static_cast<double>(c.batch) * (q + k) * static_cast<double>(c.hdim_q + c.hdim_v);
    const double bytes =
        elements * static_cast<double>(element_bits(element_types(c.data_type, Fp8Flavour::ocp).q)) / 8.0;
    return bytes / (milliseconds(one) * 1e6);
}

/// The test of a shape matrix, else the whole name.
std::string problem_name(const std::string& id) {
    const auto path = matrix_path(id).generic_string();
    if (path.empty()) return id;
    const std::string test = id.substr(path.size() + 1);
    return test.substr(0, test.find_first_of("[#@"));
}

std::vector<Field> problem_fields() {
    return {{"batch", [](const TileEngineRow& one) { return one.of->batch; }},
            {"nhead_q", [](const TileEngineRow& one) { return one.of->nhead_q; }},
            {"nhead_k", [](const TileEngineRow& one) { return one.of->nhead_k; }},
            {"seqlen_q", [](const TileEngineRow& one) { return longest(one.of->seqlen_q); }},
            {"seqlen_k", [](const TileEngineRow& one) { return longest(one.of->seqlen_k); }}};
}

Field dtype_field() {
    return {"dtype", [](const TileEngineRow& one) { return to_string(one.of->data_type); }};
}
Field name_field() {
    return {"kernel", [](const TileEngineRow& one) { return one.row->kernel; }};
}

constexpr std::array<std::string_view, 6> tiles{"tile_m0", "tile_n0", "tile_k0",
                                                "tile_n1", "tile_k1", "tile_k0max"};

/// Of the 28 columns, without the problem's and the results.
std::vector<Field> kernel_fields() {
    std::vector<Field> fields{name_field(), dtype_field()};
    for (const std::string_view name : {"pipeline", "mode", "mask", "bias", "hdim_q", "hdim_v"})
        fields.push_back(kernel_field(name));
    for (const std::string_view name : tiles) fields.push_back(kernel_field(name));
    for (const std::string_view name : {"warp_m0", "warp_n0", "warp_k0", "block_per_cu"})
        fields.push_back(kernel_field(name));
    fields.push_back({"num_splits", [](const TileEngineRow& one) {
                          return traits_of(one.of->family).splits_keys ? Json(one.of->split.num_splits)
                                                                       : Json();
                      }});
    return fields;
}

/// The same as a result in JSON has them: head dimensions in front of a kernel's features.
std::vector<Field> result_fields() {
    std::vector<Field> fields = kernel_fields();
    const auto at = [&](std::string_view name) { return std::ranges::find(fields, name, &Field::name); };
    std::rotate(at("pipeline"), at("hdim_q"), at("hdim_v") + 1);
    return fields;
}

std::vector<Field> engine_fields() {
    std::vector<Field> fields = kernel_fields();
    for (Field& field : problem_fields()) fields.push_back(std::move(field));
    fields.push_back({"latency_ms", [](const TileEngineRow& one) {
                          return number(measured(one), fmt::format("{:.4f}", milliseconds(one)));
                      }});
    fields.push_back({"tflops", [](const TileEngineRow& one) {
                          return number(measured(one), fmt::format("{:.2f}", tflops(one)));
                      }});
    fields.push_back({"max_err", [](const TileEngineRow& one) {
                          return number(one.row->max_error.has_value(),
                                        fmt::format("{:.3e}", one.row->max_error.value_or(0.0)));
                      }});
    fields.push_back({"status", [](const TileEngineRow& one) { return status(one); }});
    return fields;
}

std::vector<Field> sweep_fields() {
    std::vector<Field> fields{
        {"problem_name", [](const TileEngineRow& one) { return problem_name(one.of->id); }},
        {"batch", [](const TileEngineRow& one) { return one.of->batch; }},
        {"seqlen_q", [](const TileEngineRow& one) { return longest(one.of->seqlen_q); }},
        {"seqlen_k", [](const TileEngineRow& one) { return longest(one.of->seqlen_k); }},
        {"nhead_q", [](const TileEngineRow& one) { return one.of->nhead_q; }},
        {"nhead_k", [](const TileEngineRow& one) { return one.of->nhead_k; }},
        {"hdim_q", [](const TileEngineRow& one) { return one.of->hdim_q; }},
        {"hdim_v", [](const TileEngineRow& one) { return one.of->hdim_v; }},
        dtype_field(),
        name_field()};
    for (const std::string_view name : {"family", "mode", "pipeline"}) fields.push_back(kernel_field(name));
    for (const std::string_view name : tiles) fields.push_back(kernel_field(name));
    for (const std::string_view name : {"pad_s", "pad_sk", "pad_d", "pad_dv"})
        fields.push_back(padding_field(name));
    for (const std::string_view name : {"mask", "bias", "lse", "dropout", "logits", "sink"})
        fields.push_back(kernel_field(name));
    fields.push_back(renamed_field("skip", "skip_min_seqlen_q"));
    for (const std::string_view name : {"qscale", "paged_kv", "rope", "deterministic", "dbias"})
        fields.push_back(kernel_field(name));
    fields.push_back(
        {"latency_ms", [](const TileEngineRow& one) { return fmt::format("{:.4f}", milliseconds(one)); }});
    fields.push_back({"tflops", [](const TileEngineRow& one) { return fmt::format("{:.2f}", tflops(one)); }});
    fields.push_back({"bandwidth_gb_s", [](const TileEngineRow& one) {
                          return fmt::format("{:.2f}", gigabytes_per_second(one));
                      }});
    return fields;
}

std::string csv(const std::vector<Field>& fields, std::span<const TileEngineRow> rows) {
    std::vector<std::string> cells;
    for (const Field& field : fields) cells.emplace_back(field.name);
    std::string text = fmt::format("{}\n", fmt::join(cells, ","));
    for (const TileEngineRow& one : rows) {
        cells.clear();
        for (const Field& field : fields) cells.push_back(csv_text(field.read(one)));
        text += fmt::format("{}\n", fmt::join(cells, ","));
    }
    return text;
}

/// Those that a kernel was reached for.
std::vector<TileEngineRow> with_kernel(std::span<const TileEngineRow> rows) {
    std::vector<TileEngineRow> kept;
    for (const TileEngineRow& one : rows)
        if (!one.row->kernels.empty()) kept.push_back(one);
    return kept;
}

} // namespace

std::string tile_engine_csv(std::span<const TileEngineRow> rows) {
    std::vector<TileEngineRow> sorted = with_kernel(rows);
    std::ranges::stable_sort(sorted, std::greater<>(), tflops);
    return csv(engine_fields(), sorted);
}

std::string sweep_csv(std::span<const TileEngineRow> rows) {
    std::vector<TileEngineRow> kept = with_kernel(rows);
    std::erase_if(kept, [](const TileEngineRow& one) { return !measured(one); });
    return csv(sweep_fields(), kept);
}

Json tile_engine_json(const TileEngineRun& run, std::span<const TileEngineRow> rows) {
    const std::vector<TileEngineRow> kept = with_kernel(rows);
    const std::vector<Field> of_kernel = result_fields(), of_problem = problem_fields();
    std::set<std::string> names, built;
    Json results = Json::array();
    for (const TileEngineRow& one : kept) {
        names.insert(one.row->kernel);
        if (one.row->outcome != BenchOutcome::not_run) built.insert(one.row->kernel);
        Json problem = Json::object(), result = Json::object();
        for (const Field& field : of_problem) problem[std::string(field.name)] = field.read(one);
        problem["hdim_q"] = one.of->hdim_q;
        problem["hdim_v"] = one.of->hdim_v;
        for (const Field& field : of_kernel) result[std::string(field.name)] = field.read(one);
        result["problem"] = std::move(problem);
        result["latency_ms"] = measured(one) ? Json(milliseconds(one)) : Json();
        result["tflops"] = measured(one) ? Json(tflops(one)) : Json();
        const bool finite = one.row->max_error && std::isfinite(*one.row->max_error);
        result["max_err"] = finite ? Json(*one.row->max_error) : Json();
        result["status"] = status(one);
        results.push_back(std::move(result));
    }
    return {{"metadata", Json{{"arch", run.arch},
                              {"jit_time_s", 0.0},
                              {"bench_time_s", run.seconds},
                              {"num_kernels", names.size()},
                              {"num_built", built.size()},
                              {"num_problems", run.problems}}},
            {"results", std::move(results)}};
}

} // namespace fmha::harness
