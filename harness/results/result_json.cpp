#include "harness/results/result_json.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace fmha::harness {
namespace {

/// The array `key` of `object`. A loop over anything else would take its members, or none, for elements.
const Json& list_at(const Json& object, const std::string& key) {
    const Json& list = object.at(key);
    if (!list.is_array()) throw InputError(fmt::format("\"{}\" is {}, expected an array", key, list.dump()));
    return list;
}

template <NamedEnum E>
E enum_at(const Json& object, const std::string& key) {
    const auto text = object.at(key).get<std::string>();
    if (const auto value = parse_enum<E>(text)) return *value;
    throw InputError(fmt::format("\"{}\" is \"{}\"; allowed: {}", key, text, allowed_names<E>()));
}

Json gate_json(const GateVerdict& gate) {
    Json object{{"gate", gate.gate},
                {"tensor", gate.tensor},
                {"passed", gate.passed},
                {"ratio", number_to_json(gate.ratio)}};
    if (!gate.required) object["required"] = false;
    if (!gate.detail.empty()) object["detail"] = gate.detail;
    return object;
}

Json map_json(const ErrorMap& map) {
    return {{"tensor", map.tensor},
            {"b", map.b},
            {"h", map.h},
            {"row_axis", map.row_axis},
            {"column_axis", map.column_axis},
            {"rows", map.rows},
            {"columns", map.columns},
            {"block_rows", map.block_rows},
            {"block_columns", map.block_columns},
            {"tile_rows", map.tile_rows},
            {"tile_columns", map.tile_columns},
            {"complete", map.complete},
            {"wrong", map.wrong}};
}

ErrorMap map_from(const Json& object) {
    ErrorMap map;
    map.tensor = object.at("tensor").get<std::string>();
    map.b = object.at("b").get<std::int64_t>();
    map.h = object.at("h").get<std::int64_t>();
    map.row_axis = object.at("row_axis").get<std::string>();
    map.column_axis = object.at("column_axis").get<std::string>();
    map.rows = object.at("rows").get<std::int64_t>();
    map.columns = object.at("columns").get<std::int64_t>();
    map.block_rows = object.at("block_rows").get<std::int64_t>();
    map.block_columns = object.at("block_columns").get<std::int64_t>();
    map.tile_rows = object.at("tile_rows").get<std::int64_t>();
    map.tile_columns = object.at("tile_columns").get<std::int64_t>();
    map.complete = object.at("complete").get<bool>();
    map.wrong = object.at("wrong").get<std::vector<std::int64_t>>();
    // The drawing counts on this.
    if (map.block_rows < 1 || map.block_columns < 1 || map.rows < 0 || map.columns < 0 ||
        static_cast<std::int64_t>(map.wrong.size()) != map.blocks_down() * map.blocks_across())
        throw InputError("an error map has not as many blocks as it says");
    return map;
}

} // namespace

Json number_to_json(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0.0 ? "inf" : "-inf";
    return value;
}

double number_from_json(const Json& value) {
    if (value.is_number()) return value.get<double>();
    const auto text = value.get<std::string>();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    throw InputError(fmt::format("\"{}\" is no number; allowed beside numbers: nan, inf, -inf", text));
}

Json to_json(const Deviation& d) {
    return {{"tensor", d.tensor},
            {"b", d.b},
            {"h", d.h},
            {"row", d.row},
            {"column", d.column},
            {"got", number_to_json(d.got)},
            {"expected", number_to_json(d.expected)},
            {"limit", number_to_json(d.limit)}};
}

Json to_json(const CaseResult& r) {
    Json gates = Json::array(), worst = Json::array(), maps = Json::array(), tiles = Json::array();
    for (const auto& map : r.maps) maps.push_back(map_json(map));
    for (const auto& tile : r.tiles)
        tiles.push_back({{"family", to_string(tile.family)}, {"m0", tile.m0}, {"n0", tile.n0}});
    for (const auto& gate : r.gates) gates.push_back(gate_json(gate));
    for (const auto& deviation : r.worst) worst.push_back(to_json(deviation));
    Json object{{"name", r.name},
                {"outcome", to_string(r.outcome)},
                {"not_run_reason", to_string(r.not_run_reason)},
                {"message", r.message},
                {"kernel", r.kernel},
                {"chosen", r.chosen},
                {"family", to_string(r.family)},
                {"tier", to_string(r.tier)},
                {"labels", r.labels},
                {"about", r.about},
                {"seed", r.seed},
                {"gates", std::move(gates)},
                {"worst", std::move(worst)},
                {"tiles", std::move(tiles)},
                {"pattern", r.pattern},
                {"numerics", r.numerics},
                {"reproduce", r.reproduce},
                {"rows", r.rows},
                {"elements", r.elements},
                {"sampled", r.sampled},
                {"kernel_seconds", number_to_json(r.kernel_seconds)},
                {"reference_seconds", number_to_json(r.reference_seconds)},
                {"seconds", number_to_json(r.seconds)}};
    if (!r.maps.empty()) object["maps"] = std::move(maps);
    if (!r.smaller.empty()) object["smaller"] = r.smaller;
    if (r.refused_by != RefusedBy::nobody) {
        object["refused_by"] = to_string(r.refused_by);
        object["refusal"] = r.refusal;
    }
    if (!r.tracker.empty()) object["tracker"] = r.tracker;
    if (r.device) object["device"] = *r.device;
    return object;
}

Json to_json(const RunInfo& info) {
    return {{"version", info.version},
            {"command", info.command},
            {"target", info.target},
            {"arch", info.arch},
            {"kernels", info.kernels},
            {"started", info.started},
            {"machine", info.machine},
            {"compiler", info.compiler},
            {"seed", info.seed_given ? Json(info.seed) : Json()},
            {"jobs", info.jobs},
            {"resumed", info.resumed},
            {"left_out", info.left_out},
            {"devices", info.devices},
            {"seconds", number_to_json(info.seconds)}};
}

std::vector<Deviation> deviations_from_json(const Json& array) {
    if (!array.is_array())
        throw InputError(fmt::format("the largest deviations are {}, expected an array", array.dump()));
    std::vector<Deviation> deviations;
    for (const Json& d : array)
        deviations.push_back({d.at("tensor").get<std::string>(), d.at("b").get<std::int64_t>(),
                              d.at("h").get<std::int64_t>(), d.at("row").get<std::int64_t>(),
                              d.at("column").get<std::int64_t>(), number_from_json(d.at("got")),
                              number_from_json(d.at("expected")), number_from_json(d.at("limit"))});
    return deviations;
}

CaseResult result_from_json(const Json& object) {
    try {
        CaseResult r;
        r.name = object.at("name").get<std::string>();
        r.outcome = enum_at<Outcome>(object, "outcome");
        r.not_run_reason = enum_at<NotRunReason>(object, "not_run_reason");
        r.message = object.at("message").get<std::string>();
        r.kernel = object.at("kernel").get<std::string>();
        r.chosen = object.value("chosen", std::string());
        r.family = enum_at<ApiFamily>(object, "family");
        r.tier = enum_at<Tier>(object, "tier");
        r.labels = object.at("labels").get<std::vector<std::string>>();
        r.about = object.at("about").get<std::string>();
        r.seed = object.at("seed").get<std::uint64_t>();
        for (const Json& gate : list_at(object, "gates"))
            r.gates.push_back({gate.at("gate").get<std::string>(), gate.at("tensor").get<std::string>(),
                               gate.at("passed").get<bool>(), gate.value("required", true),
                               number_from_json(gate.at("ratio")), gate.value("detail", std::string())});
        r.worst = deviations_from_json(object.at("worst"));
        if (object.contains("maps"))
            for (const Json& map : list_at(object, "maps")) r.maps.push_back(map_from(map));
        for (const Json& tile : list_at(object, "tiles"))
            r.tiles.push_back({enum_at<KernelFamily>(tile, "family"), tile.at("m0").get<std::int64_t>(),
                               tile.at("n0").get<std::int64_t>()});
        r.pattern = object.at("pattern").get<std::string>();
        r.numerics = object.at("numerics").get<std::string>();
        r.reproduce = object.at("reproduce").get<std::string>();
        r.smaller = object.value("smaller", std::string());
        if (object.contains("refused_by")) {
            r.refused_by = enum_at<RefusedBy>(object, "refused_by");
            r.refusal = object.at("refusal").get<std::string>();
        }
        r.tracker = object.value("tracker", std::string());
        if (object.contains("device")) r.device = object.at("device").get<int>();
        r.rows = object.at("rows").get<std::int64_t>();
        r.elements = object.at("elements").get<std::int64_t>();
        r.sampled = object.at("sampled").get<bool>();
        r.kernel_seconds = number_from_json(object.at("kernel_seconds"));
        r.reference_seconds = number_from_json(object.at("reference_seconds"));
        r.seconds = number_from_json(object.at("seconds"));
        return r;
    } catch (const JsonError& error) {
        throw InputError(std::string("a result cannot be read: ") + error.what());
    }
}

std::string pack(const std::vector<CaseResult>& results) {
    Json array = Json::array();
    for (const auto& result : results) array.push_back(to_json(result));
    return array.dump();
}

std::vector<CaseResult> results_from_json(const Json& array) {
    if (!array.is_array())
        throw InputError(fmt::format("the results are {}, expected an array", array.dump()));
    std::vector<CaseResult> results;
    for (const Json& object : array) results.push_back(result_from_json(object));
    return results;
}

std::vector<CaseResult> unpack(std::string_view text) {
    try {
        return results_from_json(Json::parse(text));
    } catch (const JsonError& error) {
        throw InputError(std::string("results cannot be read: ") + error.what());
    }
}

} // namespace fmha::harness
