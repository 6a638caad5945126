#include "kernels/built/manifest.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace fmha::built {
namespace {

/// Grows with every change of the file, and of what a launch does for a kernel: its parameter, or that it may begin early.
constexpr std::int64_t schema_version = 6;

/// Numbers of an iteration, with their names.
using IterationKey = std::pair<std::string_view, std::int64_t LoopIteration::*>;
constexpr std::array iteration_keys{
    IterationKey{"matrix_slots", &LoopIteration::matrix_slots},
    IterationKey{"access_slots", &LoopIteration::access_slots},
    IterationKey{"lds_bytes", &LoopIteration::lds_bytes},
    IterationKey{"memory_bytes", &LoopIteration::memory_bytes},
    IterationKey{"moves", &LoopIteration::moves},
    IterationKey{"wide_integers", &LoopIteration::wide_integers},
    IterationKey{"selects", &LoopIteration::selects},
    IterationKey{"products", &LoopIteration::products},
    IterationKey{"waits", &LoopIteration::waits},
    IterationKey{"early_waits", &LoopIteration::early_waits},
    IterationKey{"missing_cycles", &LoopIteration::missing_cycles},
    IterationKey{"wave_cycles", &LoopIteration::wave_cycles},
    IterationKey{"lds_followed", &LoopIteration::lds_followed},
    IterationKey{"conflict_cycles", &LoopIteration::conflict_cycles},
};
/// Numbers of the resources, with their names.
using ResourceKey = std::pair<std::string_view, std::int64_t Resources::*>;
constexpr std::array resource_keys{
    ResourceKey{"vgprs", &Resources::vgprs},
    ResourceKey{"agprs", &Resources::agprs},
    ResourceKey{"sgprs", &Resources::sgprs},
    ResourceKey{"lds_bytes", &Resources::lds_bytes},
    ResourceKey{"scratch_bytes", &Resources::scratch_bytes},
    ResourceKey{"vgpr_spills", &Resources::vgpr_spills},
    ResourceKey{"sgpr_spills", &Resources::sgpr_spills},
    ResourceKey{"occupancy", &Resources::occupancy},
    ResourceKey{"code_bytes", &Resources::code_bytes},
    ResourceKey{"compile_ms", &Resources::compile_ms},
    ResourceKey{"direct_copies", &Resources::direct_copies},
    ResourceKey{"transposing_reads", &Resources::transposing_reads},
};
using DistanceKey = std::pair<std::string_view, Distances LoopIteration::*>;
constexpr std::array distance_keys{
    DistanceKey{"behind_memory", &LoopIteration::behind_memory},
    DistanceKey{"behind_lds", &LoopIteration::behind_lds},
};

Json iteration_json(const LoopIteration& iteration) {
    Json object = Json::object();
    for (const auto& [unit, name] : loop_units)
        object[std::string(name)] = {{"instructions", iteration[unit].instructions},
                                     {"cycles", iteration[unit].cycles}};
    for (const auto& [name, member] : iteration_keys) object[std::string(name)] = iteration.*member;
    for (const auto& [name, member] : distance_keys)
        object[std::string(name)] = {{"waits", (iteration.*member).waits},
                                     {"cycles", (iteration.*member).cycles}};
    return object;
}

Json loop_json(const LoopModel& loop) {
    return {{"scores", loop.scores},
            {"waves", loop.waves},
            {"plain", iteration_json(loop.plain)},
            {"masked", iteration_json(loop.masked)},
            {"second_opinion", loop.second_opinion}};
}

Json resources_json(const Resources& r) {
    Json object = Json::object();
    for (const auto& [name, member] : resource_keys) object[std::string(name)] = r.*member;
    object["matrix_instructions"] = r.matrix_instructions;
    if (r.loop) object["loop"] = loop_json(*r.loop);
    return object;
}

/// Typed access to the keys of one object. Every key must be asked for, and `done` refuses those that were not.
class Reader {
  public:
    Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
        if (!object.is_object())
            throw InputError(fmt::format("{}: expected an object, got {}", where_, object.dump()));
    }

    const std::string& where() const { return where_; }
    std::string place(std::string_view key) const { return fmt::format("{}.{}", where_, key); }

    const Json* find(std::string_view key) {
        known_.emplace(key);
        const auto found = object_.find(std::string(key));
        return found == object_.end() ? nullptr : &*found;
    }
    const Json& at(std::string_view key) {
        const Json* value = find(key);
        if (value == nullptr) throw InputError(fmt::format("{}: key \"{}\" is missing", where_, key));
        return *value;
    }
    std::string text(std::string_view key) {
        const Json& value = at(key);
        if (!value.is_string() || value.text().empty())
            throw InputError(fmt::format("{}: expected a text, got {}", place(key), value.dump()));
        return value.get<std::string>();
    }
    std::int64_t count(std::string_view key) { return as_count(at(key), place(key)); }
    const Json& array(std::string_view key) {
        const Json& value = at(key);
        if (!value.is_array())
            throw InputError(fmt::format("{}: expected an array, got {}", place(key), value.dump()));
        return value;
    }
    void done() const {
        for (const auto& [key, unused] : object_.items())
            if (!known_.contains(key))
                throw InputError(
                    fmt::format("{}: unknown key \"{}\"; allowed: {}", where_, key, fmt::join(known_, ", ")));
    }

    static std::int64_t as_count(const Json& value, const std::string& where) {
        std::int64_t number = -1;
        if (value.is_number_integer()) parse_field_text(value.dump(), number);
        if (number < 0)
            throw InputError(fmt::format("{}: expected a count of 0 or more, got {}", where, value.dump()));
        return number;
    }

  private:
    const Json& object_;
    std::string where_;
    std::set<std::string> known_;
};

LoopIteration iteration_from(const Json& object, const std::string& where) {
    Reader in(object, where);
    LoopIteration iteration;
    for (const auto& [unit, name] : loop_units) {
        Reader load(in.at(name), in.place(name));
        iteration[unit] = {load.count("instructions"), load.count("cycles")};
        load.done();
    }
    for (const auto& [name, member] : iteration_keys) iteration.*member = in.count(name);
    for (const auto& [name, member] : distance_keys) {
        Reader distance(in.at(name), in.place(name));
        iteration.*member = {distance.count("waits"), distance.count("cycles")};
        distance.done();
    }
    in.done();
    return iteration;
}

LoopModel loop_from(const Json& object, const std::string& where) {
    Reader in(object, where);
    LoopModel loop;
    loop.scores = in.count("scores");
    loop.waves = in.count("waves");
    loop.plain = iteration_from(in.at("plain"), in.place("plain"));
    loop.masked = iteration_from(in.at("masked"), in.place("masked"));
    loop.second_opinion = in.count("second_opinion");
    in.done();
    return loop;
}

Resources resources_from(const Json& object, const std::string& where) {
    Reader in(object, where);
    Resources r;
    for (const auto& [name, member] : resource_keys) r.*member = in.count(name);
    const Json& instructions = in.at("matrix_instructions");
    const std::string place = in.place("matrix_instructions");
    if (!instructions.is_object())
        throw InputError(fmt::format("{}: expected an object, got {}", place, instructions.dump()));
    for (const auto& [name, count] : instructions.items())
        r.matrix_instructions[name] = Reader::as_count(count, fmt::format("{}.{}", place, name));
    if (const Json* loop = in.find("loop")) r.loop = loop_from(*loop, in.place("loop"));
    in.done();
    return r;
}

KernelConfig config_from(Reader& in) {
    const auto config = fields_from_json<KernelConfig>(in.at("config"), in.place("config"));
    const std::string stated = in.text("identifier");
    if (stated != identifier(config))
        throw InputError(fmt::format("{}: \"{}\" is not the identifier of its config, which is \"{}\"",
                                     in.place("identifier"), stated, identifier(config)));
    return config;
}

BuiltKernel kernel_from(const Json& object, const std::string& where) {
    Reader in(object, where);
    BuiltKernel kernel;
    kernel.name = in.text("name");
    kernel.config = config_from(in);
    kernel.symbol = in.text("symbol");
    if (const Json* resources = in.find("resources"))
        kernel.resources = resources_from(*resources, in.place("resources"));
    in.done();
    return kernel;
}

std::string file_inside(Reader& in) {
    std::string file = in.text("file");
    const std::filesystem::path path(file);
    if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end())
        throw InputError(
            fmt::format("{}: \"{}\" is not inside the folder of the manifest", in.place("file"), file));
    return file;
}

CodeObject object_from(const Json& value, const std::string& where) {
    Reader in(value, where);
    CodeObject object;
    object.file = file_inside(in);
    const std::string arch = in.text("arch");
    if (!parse_field_text(arch, object.arch))
        throw InputError(fmt::format("{}: \"{}\" is too long for an architecture", in.place("arch"), arch));
    object.compiler = in.text("compiler");
    object.key = in.text("key");
    const Json& kernels = in.array("kernels");
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const std::string place = fmt::format("{}[{}]", in.place("kernels"), i);
        object.kernels.push_back(kernel_from(kernels[i], place));
        const KernelConfig& config = object.kernels.back().config;
        if (!(config.arch == object.arch))
            throw InputError(fmt::format("{}: its config is for {}, its code object for {}", place,
                                         config.arch.view(), arch));
    }
    in.done();
    return object;
}

MissingKernel missing_from(const Json& value, const std::string& where) {
    Reader in(value, where);
    MissingKernel missing;
    missing.name = in.text("name");
    missing.config = config_from(in);
    missing.reason = in.text("reason");
    in.done();
    return missing;
}

/// Loaders look kernels up by each of the three.
void check_unique(const Manifest& manifest, const std::string& where) {
    std::set<std::string> names, symbols, files;
    const auto insert = [&](std::set<std::string>& set, std::string_view what, const std::string& value) {
        if (!set.insert(value).second)
            throw InputError(fmt::format("{}: {} \"{}\" appears twice", where, what, value));
    };
    for (const CodeObject& object : manifest.objects) {
        insert(files, "file", object.file);
        for (const BuiltKernel& kernel : object.kernels) {
            insert(names, "kernel", identifier(kernel.config));
            insert(names, "name", kernel.name);
            insert(symbols, "symbol", kernel.symbol);
        }
    }
    for (const MissingKernel& missing : manifest.missing) insert(names, "name", missing.name);
}

} // namespace

std::string symbol_of(std::string_view kernel_name) {
    std::string symbol = "fmha_" + std::string(kernel_name);
    for (char& c : symbol)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return symbol;
}

std::string to_json(const Manifest& manifest) {
    Json objects = Json::array(), missing = Json::array();
    for (const CodeObject& object : manifest.objects) {
        Json kernels = Json::array();
        for (const BuiltKernel& kernel : object.kernels) {
            Json entry{{"name", kernel.name},
                       {"identifier", identifier(kernel.config)},
                       {"config", fields_to_json(kernel.config)},
                       {"symbol", kernel.symbol}};
            if (kernel.resources) entry["resources"] = resources_json(*kernel.resources);
            kernels.push_back(std::move(entry));
        }
        objects.push_back({{"file", object.file},
                           {"arch", object.arch.view()},
                           {"compiler", object.compiler},
                           {"key", object.key},
                           {"kernels", std::move(kernels)}});
    }
    for (const MissingKernel& kernel : manifest.missing)
        missing.push_back({{"name", kernel.name},
                           {"identifier", identifier(kernel.config)},
                           {"config", fields_to_json(kernel.config)},
                           {"reason", kernel.reason}});
    const Json document{
        {"schema_version", schema_version}, {"objects", std::move(objects)}, {"missing", std::move(missing)}};
    return document.dump(1) + "\n";
}

Manifest manifest_from_json(std::string_view text, const std::string& where) {
    const Json document = parse_strict_json(text, where);
    Reader in(document, where);
    if (const std::int64_t version = in.count("schema_version"); version != schema_version)
        throw OtherVersion(fmt::format("{}: {} is not known; allowed: {}; build the kernels again",
                                       in.place("schema_version"), version, schema_version));
    Manifest manifest;
    const Json& objects = in.array("objects");
    for (std::size_t i = 0; i < objects.size(); ++i)
        manifest.objects.push_back(object_from(objects[i], fmt::format("{}[{}]", in.place("objects"), i)));
    const Json& missing = in.array("missing");
    for (std::size_t i = 0; i < missing.size(); ++i)
        manifest.missing.push_back(missing_from(missing[i], fmt::format("{}[{}]", in.place("missing"), i)));
    in.done();
    check_unique(manifest, where);
    return manifest;
}

Manifest read_manifest(const std::filesystem::path& folder) {
    const auto path = folder / manifest_file;
    return manifest_from_json(system::read_file(path), path.string());
}

void write_manifest(const Manifest& manifest, const std::filesystem::path& folder) {
    system::write_file(folder / manifest_file, to_json(manifest));
}

} // namespace fmha::built
