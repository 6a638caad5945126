#include "kernels/catalog/sweep_config.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/file_boolean.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/strict_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>

namespace fmha::catalog {

namespace {

struct Value {
    std::string_view name;
    std::uint32_t bit;
};

constexpr std::uint32_t bit(auto value) {
    return 1U << static_cast<unsigned>(value);
}

constexpr std::array mode_values{Value{"batch", bit(Mode::batch)}, Value{"group", bit(Mode::group)}};
constexpr std::array mask_values{Value{"no", bit(MaskClass::none)}, Value{"top_left", bit(MaskClass::causal)},
                                 Value{"generic", bit(MaskClass::generic)},
                                 Value{"bottom_right", bottom_right_bit}};
constexpr std::array bias_values{Value{"no", bit(BiasType::no_bias)},
                                 Value{"bias", bit(BiasType::elementwise)},
                                 Value{"alibi", bit(BiasType::alibi)}};
constexpr std::array pipeline_values{
    Value{"qr", bit(Pipeline::qr)}, Value{"qr_async", bit(Pipeline::qr_async)},
    Value{"qs", bit(Pipeline::qs)}, Value{"qr_async_trload", bit(Pipeline::qr_async_trload)},
    Value{"qr_async_trload_v3", bit(Pipeline::qr_async_trload_v3)}};

/// Names that a data type list may hold: fp8fp16 is known to upstream's tables although it has no kernels.
constexpr std::array<std::string_view, 10> data_type_values{
    "fp16", "bf16", "fp32", "fp8", "bf8", "fp8bf16", "fp8fp16", "fp8fp32", "mxfp8", "mxfp4"};

enum class Kind : std::uint8_t { data_types, names, booleans, block_per_cu };

/// One key of `trait_config`: who reads it (bit per variant) and where it goes.
struct Trait {
    std::string_view key;
    Kind kind;
    std::uint32_t variants;
    AllowBits AllowLists::*list = nullptr;
    std::span<const Value> values{};
};

constexpr std::uint32_t fwd = bit(SweepVariant::fwd), splitkv = bit(SweepVariant::splitkv),
                        pagedkv = bit(SweepVariant::pagedkv), appendkv = bit(SweepVariant::appendkv),
                        prefill = bit(SweepVariant::batch_prefill), bwd = bit(SweepVariant::bwd);

constexpr std::array traits{
    Trait{"data_type", Kind::data_types, fwd | splitkv | pagedkv | appendkv | prefill | bwd},
    Trait{"mode", Kind::names, fwd | splitkv | pagedkv | bwd, &AllowLists::modes, mode_values},
    Trait{"mask", Kind::names, fwd | splitkv | pagedkv | prefill | bwd, &AllowLists::masks, mask_values},
    Trait{"bias", Kind::names, fwd | splitkv | pagedkv | prefill | bwd, &AllowLists::biases, bias_values},
    Trait{"pipeline", Kind::names, fwd, &AllowLists::pipelines, pipeline_values},
    Trait{"lse", Kind::booleans, fwd, &AllowLists::lse},
    Trait{"dropout", Kind::booleans, fwd, &AllowLists::dropout},
    Trait{"logits", Kind::booleans, fwd | splitkv, &AllowLists::logits},
    Trait{"sink", Kind::booleans, fwd | splitkv, &AllowLists::sink},
    Trait{"paged_kv", Kind::booleans, splitkv, &AllowLists::paged_kv},
    Trait{"block_per_cu", Kind::block_per_cu, fwd}};

bool is_read(const Trait& trait, SweepVariant variant, SweepUse use) {
    if ((trait.variants & bit(variant)) == 0) return false;
    if (trait.kind == Kind::block_per_cu) return use != SweepUse::hand_kept;
    // Exhaustive split-KV fixes paged_kv.
    return trait.key != "paged_kv" || use != SweepUse::exhaustive;
}

template <class Range, class Name>
std::string quoted(const Range& range, Name&& name) {
    std::vector<std::string> names;
    for (const auto& entry : range) names.push_back(fmt::format("\"{}\"", name(entry)));
    return fmt::format("{}", fmt::join(names, ", "));
}

class Reader {
  public:
    Reader(std::string source, SweepUse use) : source_(std::move(source)), use_(use) {}

    SweepConfig read(const Json& document, SweepVariant fallback) {
        if (!document.is_object()) refuse("", "expected an object, got " + shown(document));
        SweepConfig config;
        config.source = source_;
        for (const auto& [key, unused] : document.items()) {
            if (key == "tile_config")
                refuse(key, "nothing reads this key: tiles come from the architecture's tables; "
                            "remove it, or filter with an expression over c.tile_m0, c.hdim_q, …");
            if (key != "variant" && key != "trait_config")
                refuse(key, "unknown key; allowed: \"variant\", \"trait_config\"");
        }
        config.variant = read_variant(document, fallback);
        if (document.contains("trait_config")) read_traits(document["trait_config"], config);
        return config;
    }

  private:
    [[noreturn]] void refuse(const std::string& path, const std::string& sentence) const {
        throw InputError(source_ + ": " + path + (path.empty() ? "" : ": ") + sentence);
    }

    static std::string shown(const Json& value) {
        std::string text = value.dump();
        if (text.size() > 80) text.replace(77, std::string::npos, "...");
        return text;
    }

    SweepVariant read_variant(const Json& document, SweepVariant fallback) const {
        const std::string allowed =
            quoted(EnumTable<SweepVariant>::names, [](const auto& e) { return e.name; });
        if (!document.contains("variant")) {
            if (use_ == SweepUse::hand_kept) refuse("variant", "this rule set needs one of " + allowed);
            return fallback;
        }
        const Json& value = document["variant"];
        const auto variant =
            value.is_string() ? parse_enum<SweepVariant>(value.get<std::string>()) : std::nullopt;
        if (!variant) refuse("variant", "expected one of " + allowed + ", got " + shown(value));
        return *variant;
    }

    void read_traits(const Json& object, SweepConfig& config) const {
        if (!object.is_object()) refuse("trait_config", "expected an object, got " + shown(object));
        const auto reads = [&](const Trait& trait) { return is_read(trait, config.variant, use_); };
        std::vector<Trait> read;
        std::ranges::copy_if(traits, std::back_inserter(read), reads);
        const std::string allowed = quoted(read, [](const Trait& trait) { return trait.key; });
        for (const auto& [key, entry] : object.items()) {
            const std::string path = "trait_config." + key;
            const auto trait = std::ranges::find(traits, std::string_view(key), &Trait::key);
            if (trait == traits.end()) refuse(path, "unknown key; allowed: " + allowed);
            if (!reads(*trait))
                refuse(path, fmt::format("nothing reads this key for variant {}{}; allowed: {}",
                                         to_string(config.variant), use_text(), allowed));
            read_values(*trait, path, entry, config.allow);
        }
    }

    std::string_view use_text() const {
        switch (use_) {
        case SweepUse::hand_kept:
            return " of this rule set";
        case SweepUse::sweep:
            return "";
        case SweepUse::exhaustive:
            return " in exhaustive mode";
        }
        return "";
    }

    void read_values(const Trait& trait, const std::string& path, const Json& entry,
                     AllowLists& allow) const {
        if (!entry.is_object() || !entry.contains("values"))
            refuse(path, "expected {\"values\": [...]}, got " + shown(entry));
        for (const auto& [key, unused] : entry.items())
            if (key != "values") refuse(path + "." + key, "unknown key; allowed: \"values\"");
        const std::string values_path = path + ".values";
        const Json& values = entry["values"];
        if (trait.kind == Kind::block_per_cu) {
            allow.block_per_cu = read_blocks(values_path, values);
            return;
        }
        if (!values.is_array()) refuse(values_path, "expected a list, got " + shown(values));
        if (trait.kind == Kind::data_types) allow.data_types.emplace();
        if (trait.list != nullptr) allow.*trait.list = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::string at = fmt::format("{}[{}]", values_path, i);
            if (trait.kind == Kind::data_types)
                allow.data_types->push_back(read_data_type(at, values[i]));
            else if (trait.kind == Kind::booleans)
                *(allow.*trait.list) |= read_boolean(at, values[i]);
            else
                *(allow.*trait.list) |= read_name(at, values[i], trait.values);
        }
    }

    std::uint32_t read_boolean(const std::string& path, const Json& value) const {
        const std::optional<bool> stated = file_boolean(value);
        if (!stated) refuse(path, fmt::format("expected {}, got {}", file_boolean_takes, shown(value)));
        return *stated ? 2U : 1U;
    }

    std::uint32_t read_name(const std::string& path, const Json& value, std::span<const Value> values) const {
        if (value.is_string())
            for (const Value& known : values)
                if (known.name == value.get<std::string>()) return known.bit;
        refuse(path, fmt::format("expected one of {}, got {}",
                                 quoted(values, [](const Value& v) { return v.name; }), shown(value)));
    }

    std::string read_data_type(const std::string& path, const Json& value) const {
        if (!value.is_string() ||
            std::ranges::find(data_type_values, value.get<std::string>()) == data_type_values.end())
            refuse(path, fmt::format("expected one of {}, got {}",
                                     quoted(data_type_values, [](std::string_view name) { return name; }),
                                     shown(value)));
        return value.get<std::string>();
    }

    std::vector<std::int32_t> read_blocks(const std::string& path, const Json& values) const {
        const auto one = [&](const std::string& at, const Json& value) {
            constexpr std::int64_t most = 1024;
            const std::int64_t number = value.is_number_integer() ? value.get<std::int64_t>() : 0;
            if (number != -1 && (number < 1 || number > most))
                refuse(at, fmt::format("expected -1 or an integer from 1 to {}, got {}", most, shown(value)));
            return static_cast<std::int32_t>(number);
        };
        if (values.is_number()) return {one(path, values)};
        if (!values.is_array())
            refuse(path, "expected an integer or a list of integers, got " + shown(values));
        std::vector<std::int32_t> blocks;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::int32_t block = one(fmt::format("{}[{}]", path, i), values[i]);
            if (std::ranges::find(blocks, block) == blocks.end()) blocks.push_back(block);
        }
        return blocks;
    }

    std::string source_;
    SweepUse use_;
};

} // namespace

SweepConfig parse_sweep_config(std::string_view text, const std::string& source, SweepUse use,
                               SweepVariant fallback) {
    return Reader(source, use).read(parse_strict_json(text, source), fallback);
}

SweepConfig read_sweep_config(const std::filesystem::path& file, SweepUse use, SweepVariant fallback) {
    if (std::error_code unknown; !std::filesystem::exists(file, unknown))
        throw InputError(file.string() + ": there is no such sweep configuration (cases/sweeps has some; an "
                                         "architecture is named by --arch)");
    return parse_sweep_config(system::read_file(file), file.string(), use, fallback);
}

} // namespace fmha::catalog
