#include "harness/cases/case_fields.hpp"

#include "dispatcher/types/did_you_mean.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/mask_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

namespace fmha::harness {
namespace {
using Lengths = std::vector<std::int64_t>;

bool read_value(const Json& value, std::int64_t& into) {
    // A number above 2^63 is unsigned in JSON and must not wrap into a negative extent.
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() >> 63U != 0))
        return false;
    into = value.get<std::int64_t>();
    return true;
}

bool read_value(const Json& value, std::uint64_t& into) {
    if (!value.is_number_unsigned() && !(value.is_number_integer() && value.get<std::int64_t>() >= 0))
        return false;
    into = value.get<std::uint64_t>();
    return true;
}

bool read_value(const Json& value, int& into) {
    std::int64_t wide = 0;
    if (!read_value(value, wide) || wide < 0 || wide > 1'000'000) return false;
    into = static_cast<int>(wide);
    return true;
}

bool read_value(const Json& value, double& into) {
    if (!value.is_number()) return false;
    into = value.get<double>();
    return true;
}

bool read_value(const Json& value, bool& into) {
    if (!value.is_boolean()) return false;
    into = value.get<bool>();
    return true;
}

bool read_value(const Json& value, std::string& into) {
    if (!value.is_string()) return false;
    into = value.get<std::string>();
    return true;
}

bool read_value(const Json& value, Lengths& into) {
    std::int64_t single = 0;
    if (read_value(value, single)) return into = {single}, true;
    if (!value.is_array()) return false;
    Lengths lengths(value.size());
    for (std::size_t i = 0; i < value.size(); ++i)
        if (!read_value(value[i], lengths[i])) return false;
    into = std::move(lengths);
    return true;
}

template <NamedEnum E>
bool read_value(const Json& value, E& into) {
    if (!value.is_string()) return false;
    const auto parsed = parse_enum<E>(value.text());
    if (parsed) into = *parsed;
    return parsed.has_value();
}

template <class T>
std::string print_value(const T& value) {
    if constexpr (NamedEnum<T>)
        return std::string(to_string(value));
    else if constexpr (std::is_same_v<T, Lengths>)
        return value.size() == 1 ? fmt::format("{}", value[0]) : fmt::format("[{}]", fmt::join(value, ","));
    else
        return fmt::format("{}", value);
}

/// Families by the subject of a field (dispatcher-api section 3).
constexpr auto having = ApiFamilies::having;
constexpr ApiFamilies every_family = having([](const ApiTraits&) { return true; });
constexpr ApiFamilies attention = having([](const ApiTraits& t) { return t.attends; });
constexpr ApiFamilies forward = having([](const ApiTraits& t) { return t.forward(); });
/// Batch prefill has the fields, so that its refusal can be a case (D-8).
constexpr ApiFamilies dropping = having([](const ApiTraits& t) { return t.dropout || t.lists_pages; });
constexpr ApiFamilies plain_forward = having([](const ApiTraits& t) { return t.contiguous(); });
constexpr ApiFamilies splitting = having([](const ApiTraits& t) { return t.splits_keys; });
constexpr ApiFamilies with_values = having([](const ApiTraits& t) { return !t.gradients; });
constexpr ApiFamilies appending = having([](const ApiTraits& t) { return t.stores_keys; });
constexpr ApiFamilies prefilling = having([](const ApiTraits& t) { return t.lists_pages; });
constexpr ApiFamilies caching = having([](const ApiTraits& t) { return t.reads_cache; });
constexpr ApiFamilies cached_attention =
    having([](const ApiTraits& t) { return t.attends && t.reads_cache; });
constexpr ApiFamilies rotating = having([](const ApiTraits& t) { return t.reads_cache && !t.lists_pages; });
constexpr ApiFamilies backward = having([](const ApiTraits& t) { return t.gradients; });

/// The usual field: one member, read and printed by its type.
template <auto member>
CaseField plain(std::string_view name, std::string_view takes = {}, ApiFamilies families = every_family) {
    using Member = std::remove_cvref_t<decltype(std::declval<Case&>().*member)>;
    std::string expected(takes);
    if constexpr (NamedEnum<Member>) expected = allowed_names<Member>();
    return {name,
            std::move(expected),
            {name, name},
            [](const Json& value, Case& into) { return read_value(value, into.*member); },
            [](const Case& from) { return print_value(from.*member); },
            families};
}

/// A field of a family's part.
template <auto part, auto member>
CaseField of_part(std::string_view name, std::string_view takes, ApiFamilies families) {
    using Member = std::remove_cvref_t<decltype(std::declval<Case&>().*part.*member)>;
    std::string expected(takes);
    if constexpr (NamedEnum<Member>) expected = allowed_names<Member>();
    return {name,
            std::move(expected),
            {name, name},
            [](const Json& value, Case& into) { return read_value(value, into.*part.*member); },
            [](const Case& from) { return print_value(from.*part.*member); },
            families};
}

/// "a:b", or one value for both members; prints the short form when they agree.
template <auto first, auto second>
CaseField compound(std::string_view name, std::string_view takes, std::string_view first_name,
                   std::string_view second_name) {
    return {
        name,
        std::string(takes),
        {first_name, second_name},
        [](const Json& value, Case& into) {
            if (!value.is_string()) return read_value(value, into.*first) && read_value(value, into.*second);
            const auto& text = value.text();
            const auto colon = text.find(':');
            if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(into.*first)>>) {
                return read_value(Json(text.substr(0, colon)), into.*first) &&
                       read_value(Json(colon == std::string::npos ? text : text.substr(colon + 1)),
                                  into.*second);
            } else {
                if (colon == std::string::npos) return false;
                return read_value(Json::try_parse(text.substr(0, colon)).value_or(nullptr), into.*first) &&
                       read_value(Json::try_parse(text.substr(colon + 1)).value_or(nullptr), into.*second);
            }
        },
        [](const Case& from) {
            const auto a = print_value(from.*first), b = print_value(from.*second);
            if (a.front() == '[' || b.front() == '[') return std::string();
            return a == b ? a : a + ':' + b;
        },
        every_family};
}

bool read_mask(const Json& value, Case& into) {
    MaskText mask;
    if (!value.is_string() || !parse_mask(value.text(), mask)) return false;
    into.mask = mask.type;
    into.window_left = mask.left;
    into.window_right = mask.right;
    into.sink_size = mask.sink;
    return true;
}

std::string print_mask(const Case& from) {
    return mask_text({from.mask, from.window_left, from.window_right, from.sink_size});
}

bool read_bias(const Json& value, Case& into) {
    if (!value.is_string()) return false;
    const auto& text = value.text();
    const auto set = [&into](BiasType type, int rank, bool negative = false) {
        return into.bias = type, into.bias_rank = rank, into.negative_slopes = negative, true;
    };
    if (text == "none") return set(BiasType::no_bias, Case{}.bias_rank);
    if (text == "e:0" || text == "e:1" || text == "e:2") return set(BiasType::elementwise, text[2] - '0');
    if (text == "a:0" || text == "a:1") return set(BiasType::alibi, text[2] - '0');
    if (text == "-a:0" || text == "-a:1") return set(BiasType::alibi, text[3] - '0', true);
    return false;
}

std::string print_bias(const Case& from) {
    if (from.bias == BiasType::no_bias) return "none";
    return fmt::format("{}{}:{}", from.negative_slopes ? "-" : "",
                       from.bias == BiasType::elementwise ? 'e' : 'a', from.bias_rank);
}

bool read_expect(const Json& value, Case& into) {
    if (!value.is_string()) return false;
    const auto& text = value.text();
    const auto colon = text.find(':');
    const auto kind = text.substr(0, colon);
    const auto detail = colon == std::string::npos ? std::string() : text.substr(colon + 1);
    const auto set = [&into](Expectation expect, std::string rule, std::string kernel) {
        into.expect = expect;
        into.expect_rule = std::move(rule);
        into.expect_kernel = std::move(kernel);
        return true;
    };
    if (text == "pass") return set(Expectation::pass, "", "");
    if (detail.empty()) return false;
    if (kind == "pass") return set(Expectation::pass, "", detail);
    if (kind == "invalid_problem") return set(Expectation::invalid_problem, detail, "");
    if (kind == "no_kernel") return set(Expectation::no_kernel, detail, "");
    return false;
}

std::string print_expect(const Case& from) {
    const auto& detail = from.expect == Expectation::pass ? from.expect_kernel : from.expect_rule;
    return std::string(to_string(from.expect)) + (detail.empty() ? "" : ":" + detail);
}

constexpr std::string_view integer = "an integer of at most 63 bits";
constexpr std::string_view natural = "an integer from 0 to 2^64 - 1";
constexpr std::string_view lengths = "one length or a list with one length an entry";
constexpr std::string_view boolean = "true or false";
constexpr std::string_view number = "a number";

using C = Case;

const std::vector<CaseField>& table() {
    static const std::vector<CaseField> fields{
        compound<&C::nhead_q, &C::nhead_k>("heads", "a head count or \"query:key\", as in \"8:2\"", "nhead_q",
                                           "nhead_k"),
        compound<&C::hdim_q, &C::hdim_v>("hdim", "a head dimension or \"qk:v\", as in \"192:128\"", "hdim_q",
                                         "hdim_v"),
        compound<&C::seqlen_q, &C::seqlen_k>("seqlen", "a length or \"query:key\", as in \"113:203\"",
                                             "seqlen_q", "seqlen_k"),
        compound<&C::iperm, &C::operm>("layout", "\"bhsd\", \"bshd\" or \"input:output\"", "iperm", "operm"),

        plain<&C::data_type>("dtype"),
        plain<&C::mode>("mode"),
        plain<&C::batch>("batch", integer),
        plain<&C::nhead_q>("nhead_q", integer),
        plain<&C::nhead_k>("nhead_k", integer),
        plain<&C::hdim_q>("hdim_q", integer),
        plain<&C::hdim_v>("hdim_v", integer),
        plain<&C::seqlen_q>("seqlen_q", lengths),
        plain<&C::seqlen_k>("seqlen_k", lengths),
        plain<&C::physical_q>("physical_q", lengths),
        plain<&C::physical_k>("physical_k", lengths),
        plain<&C::length_form_q>("length_form_q"),
        plain<&C::length_form_k>("length_form_k"),
        plain<&C::min_seqlen_q>("min_seqlen_q", integer, plain_forward),
        plain<&C::iperm>("iperm"),
        plain<&C::operm>("operm"),
        plain<&C::v_layout>("v_layout", {}, with_values),
        plain<&C::stride_padding>("stride_padding", integer),
        plain<&C::wide_tensor>("wide_tensor", "the name of a tensor or \"\""),
        plain<&C::wide_batch_stride>("wide_batch_stride", integer),
        {"mask", std::string(mask_grammar), {"mask", "mask"}, read_mask, print_mask, every_family},
        {"bias",
         "\"none\", \"e:0\", \"e:1\", \"e:2\", \"a:0\", \"a:1\", \"-a:0\" or \"-a:1\"",
         {"bias", "bias"},
         read_bias,
         print_bias,
         attention},
        plain<&C::lse>("lse", boolean, forward),
        plain<&C::logits_soft_cap>("logits_soft_cap", number, forward),
        plain<&C::p_drop>("p_drop", number, dropping),
        plain<&C::dropout_seed>("dropout_seed", natural, dropping),
        plain<&C::dropout_offset>("dropout_offset", natural, dropping),
        plain<&C::store_randval>("store_randval", boolean, dropping),
        plain<&C::scale_s>("scale_s", number, attention),
        plain<&C::scale_o>("scale_o", number, forward),
        plain<&C::static_quant>("static_quant", boolean, forward),
        plain<&C::sink_logits>("sink_logits", {}, attention),
        plain<&C::qscale>("qscale", {}, forward),
        plain<&C::block_scale_q>("block_scale_q", integer, plain_forward),
        plain<&C::block_scale_k>("block_scale_k", integer, plain_forward),
        of_part<&C::split, &SplitPart::num_splits>("num_splits", integer, splitting),
        of_part<&C::split, &SplitPart::stage>("stage", {}, splitting),
        of_part<&C::split, &SplitPart::partial_lse>("partial_lse", {}, splitting),
        of_part<&C::cache, &CachePart::page_size>("page_size", integer, caching),
        of_part<&C::cache, &CachePart::cache_batch_idx>("cache_batch_idx", boolean, caching),
        of_part<&C::cache, &CachePart::capacity>("capacity", integer, caching),
        of_part<&C::cache, &CachePart::gappy>("gappy", boolean, cached_attention),
        of_part<&C::cache, &CachePart::shared_pages>("shared_pages", integer, cached_attention),
        of_part<&C::cache, &CachePart::page_order>("page_order", integer, caching),
        of_part<&C::cache, &CachePart::kv_layout>("kv_layout", {}, prefilling),
        of_part<&C::cache, &CachePart::kv_lookup>("kv_lookup", {}, prefilling),
        of_part<&C::append, &AppendPart::seqlen_knew>("seqlen_knew", integer, appending),
        of_part<&C::append, &AppendPart::rope>("rope", {}, rotating),
        of_part<&C::append, &AppendPart::rotary_dim>("rotary_dim", integer, rotating),
        of_part<&C::append, &AppendPart::any_bits>("any_bits", boolean, appending),
        of_part<&C::chain, &ChainPart::appended>("appended", integer, cached_attention),
        of_part<&C::chain, &ChainPart::chunk_rows>("chunk_rows", integer, cached_attention),
        of_part<&C::chain, &ChainPart::last_rows>("last_rows", integer, cached_attention),
        of_part<&C::backward, &BackwardPart::dbias>("dbias", boolean, backward),
        of_part<&C::backward, &BackwardPart::deterministic>("deterministic", boolean, backward),
        of_part<&C::backward, &BackwardPart::reduce_dk_dv>("reduce_dk_dv", boolean, backward),
        of_part<&C::backward, &BackwardPart::forward>("forward", {}, backward),
        of_part<&C::backward, &BackwardPart::compute_units>("compute_units", integer, backward),
        plain<&C::fill>("fill"),
        plain<&C::repeats>("repeats", "an integer from 1 to 1000000"),
        plain<&C::sampled_rows>("sampled_rows", boolean),
        {"expect",
         "\"pass\", \"pass:KERNEL-GLOB\", \"invalid_problem:RULE\" or \"no_kernel:REASON\"",
         {"expect", "expect"},
         read_expect,
         print_expect,
         every_family},
    };
    return fields;
}

} // namespace

std::span<const CaseField> case_fields() {
    return table();
}

const CaseField* find_field(std::string_view name) {
    const auto found = std::ranges::find(table(), name, &CaseField::name);
    return found == table().end() ? nullptr : &*found;
}

std::string ApiFamilies::names() const {
    std::vector<std::string_view> names;
    for (const auto& [family, name] : EnumTable<ApiFamily>::names)
        if (contains(family)) names.push_back(name);
    return fmt::format("{}", fmt::join(names, ", "));
}

const CaseField& field_of(ApiFamily family, std::string_view name, const std::string& where) {
    const CaseField* field = find_field(name);
    if (field == nullptr)
        throw InputError(
            fmt::format("{}: \"{}\" is not a field of a case{}", where, name, did_you_mean_field(name)));
    if (!field->families.contains(family))
        throw InputError(fmt::format("{}: {} is not a field of family {}; families that have it: {}", where,
                                     name, to_string(family), field->families.names()));
    return *field;
}

bool read_text(const CaseField& field, std::string_view text, Case& into) {
    if (field.read(Json(std::string(text)), into)) return true;
    const auto value = Json::try_parse(text);
    return value && field.read(*value, into);
}

std::string did_you_mean_field(std::string_view text) {
    std::vector<std::string_view> names;
    for (const auto& field : table()) names.push_back(field.name);
    return did_you_mean(text, names);
}

} // namespace fmha::harness
