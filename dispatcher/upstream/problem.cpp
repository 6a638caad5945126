#include "dispatcher/upstream/problem.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/fields.hpp"
#include "dispatcher/types/file_boolean.hpp"
#include "dispatcher/types/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fmha::upstream {

namespace {

template <class E>
using Words = std::span<const std::pair<std::string_view, E>>;

constexpr std::array<std::pair<std::string_view, ApiFamily>, 6> families{
    {{"fwd", ApiFamily::fwd},
     {"splitkv", ApiFamily::fwd_splitkv},
     {"pagedkv", ApiFamily::fwd_pagedkv},
     {"appendkv", ApiFamily::fwd_appendkv},
     {"batch_prefill", ApiFamily::batch_prefill},
     {"bwd", ApiFamily::bwd}}};
constexpr std::array<std::pair<std::string_view, MaskType>, 4> masks{
    {{"no_mask", MaskType::no_mask},
     {"mask_top_left", MaskType::top_left},
     {"mask_bottom_right", MaskType::bottom_right},
     {"window_generic", MaskType::window_generic}}};
constexpr std::array<std::pair<std::string_view, BiasType>, 3> biases{
    {{"no_bias", BiasType::no_bias},
     {"elementwise_bias", BiasType::elementwise},
     {"alibi", BiasType::alibi}}};
constexpr std::array<std::pair<std::string_view, QScale>, 5> qscales{
    {{"no_scale", QScale::no_scale},
     {"pertensor", QScale::pertensor},
     {"blockscale", QScale::blockscale},
     {"kv_blockscale", QScale::kv_blockscale},
     {"mx", QScale::mx}}};
constexpr std::array<std::pair<std::string_view, Rope>, 3> ropes{
    {{"none", Rope::none}, {"interleaved", Rope::interleaved}, {"half_rotated", Rope::half_rotated}}};
constexpr std::array<std::pair<std::string_view, KvLayout>, 2> layouts{
    {{"VECTORIZED_LAYOUT", KvLayout::vectorized}, {"LINEAR_LAYOUT", KvLayout::linear}}};
constexpr std::array<std::pair<std::string_view, KvLookup>, 2> lookups{
    {{"VLLM_BLOCK_TABLE_2D", KvLookup::vllm_2d}, {"SGLANG_PAGE_TABLE_1D", KvLookup::sglang_1d}}};
constexpr std::array<std::pair<std::string_view, LoadMode>, 2> load_modes{
    {{"BUFFER_LOAD", LoadMode::bload}, {"GLOBAL_LOAD_LDS", LoadMode::gload}}};

template <class E>
E word(const std::string& path, const Json& value, Words<E> words) {
    if (value.is_string())
        for (const auto& [name, code] : words)
            if (value.text() == name) return code;
    std::string allowed;
    for (const auto& [name, code] : words) allowed += (allowed.empty() ? "" : ", ") + std::string(name);
    throw InputError(fmt::format("{}: {} is not known; allowed: {}", path, value.dump(), allowed));
}

/// Keys that a problem of the file form may have although no condition reads them.
constexpr std::array<std::string_view, 3> bystanders{"batch_stride_k", "num_total_pages", "page_block_size"};

/// One problem object. Every read names the families that decide by the key; those must have it.
class Reader {
  public:
    Reader(const Json& object, std::string where, ApiFamily family)
        : object_(object), where_(std::move(where)), family_(family) {}

    void text(std::string_view key, std::string& target) {
        if (const Json* value = find(key, {})) {
            if (!value->is_string()) fail(key, *value, "a string");
            target = value->get<std::string>();
        }
    }
    void integer(std::string_view key, std::int64_t& target, std::initializer_list<ApiFamily> needed = {}) {
        if (const Json* value = find(key, needed)) {
            if (!value->is_number_integer() ||
                (value->is_number_unsigned() && value->get<std::uint64_t>() > 0x7FFFFFFFFFFFFFFFULL))
                fail(key, *value, "a 64-bit integer");
            target = value->get<std::int64_t>();
        }
    }
    void boolean(std::string_view key, bool& target, std::initializer_list<ApiFamily> needed) {
        if (const Json* value = find(key, needed)) {
            const std::optional<bool> stated = file_boolean(*value);
            if (!stated) fail(key, *value, file_boolean_takes);
            target = *stated;
        }
    }
    /// A pointer is null, or any other value stands for one to memory.
    void pointer(std::string_view key, bool& target, std::initializer_list<ApiFamily> needed) {
        if (const Json* value = find(key, needed)) {
            if (!value->is_null() && !value->is_string()) fail(key, *value, "null or a name");
            target = !value->is_null();
        }
    }
    template <class E, std::size_t N>
    void word_of(std::string_view key, E& target, const std::array<std::pair<std::string_view, E>, N>& words,
                 std::initializer_list<ApiFamily> needed) {
        if (const Json* value = find(key, needed)) target = word<E>(path(key), *value, words);
    }
    void reject_unknown() const {
        for (const auto& [key, value] : object_.items())
            if (std::ranges::find(known_, key) == known_.end())
                throw InputError(
                    fmt::format("{}: unknown key \"{}\"; allowed: {}", where_, key, fmt::join(known_, ", ")));
    }

  private:
    std::string path(std::string_view key) const { return fmt::format("{}.{}", where_, key); }
    [[noreturn]] void fail(std::string_view key, const Json& value, std::string_view expected) const {
        throw InputError(fmt::format("{}: expected {}, got {}", path(key), expected, value.dump()));
    }
    const Json* find(std::string_view key, std::initializer_list<ApiFamily> needed) {
        known_.push_back(key);
        const auto found = object_.find(std::string(key));
        if (found != object_.end()) return &*found;
        if (std::find(needed.begin(), needed.end(), family_) != needed.end())
            throw InputError(fmt::format("{}: missing; {} decides by it", path(key), to_string(family_)));
        return nullptr;
    }

    const Json& object_;
    std::string where_;
    ApiFamily family_;
    std::vector<std::string_view> known_{bystanders.begin(), bystanders.end()}; ///< keys are literals
};

} // namespace

Problem problem_from_json(const Json& line, const std::string& where) {
    using enum ApiFamily;
    if (!line.is_object() || !line.contains("family") || !line.contains("problem"))
        throw InputError(where + ": expected an object with \"family\" and \"problem\"");
    Problem p;
    p.family = word<ApiFamily>(where + ".family", line["family"], families);
    if (!line["problem"].is_object()) throw InputError(where + ".problem: expected an object");
    Reader read(line["problem"], where + ".problem", p.family);
    const auto all = {fwd, fwd_splitkv, fwd_pagedkv, fwd_appendkv, batch_prefill, bwd};
    const auto attention = {fwd, fwd_splitkv, fwd_pagedkv, batch_prefill};

    std::string arch, data_type;
    read.text("arch", arch);
    read.text("data_type", data_type);
    if (arch.empty() || !parse_field_text(arch, p.arch))
        throw InputError(
            fmt::format("{}.problem.arch: expected the name of an architecture, got \"{}\"", where, arch));
    if (data_type.empty()) throw InputError(where + ".problem.data_type: missing");
    p.data_type = parse_enum<DataType>(data_type);
    read.integer("batch", p.batch, {fwd, batch_prefill});
    read.integer("nhead_q", p.nhead_q, {fwd, batch_prefill});
    read.integer("seqlen_q", p.seqlen_q, {fwd, fwd_splitkv, fwd_pagedkv, fwd_appendkv, bwd});
    read.integer("seqlen_k", p.seqlen_k, {fwd, fwd_splitkv, fwd_pagedkv, bwd});
    read.integer("max_seqlen_q", p.max_seqlen_q, {fwd, batch_prefill});
    read.integer("hdim_q", p.hdim_q, all);
    read.integer("hdim_v", p.hdim_v, all);
    read.integer("num_cus", p.num_cus, {fwd, batch_prefill});
    read.boolean("is_group_mode", p.is_group_mode, {fwd, fwd_splitkv, fwd_pagedkv, batch_prefill, bwd});
    read.boolean("is_v_rowmajor", p.is_v_rowmajor,
                 {fwd, fwd_splitkv, fwd_pagedkv, fwd_appendkv, batch_prefill});
    read.word_of("mask_type", p.mask_type, masks, {fwd, fwd_splitkv, fwd_pagedkv, batch_prefill, bwd});
    read.word_of("bias_type", p.bias_type, biases, {fwd, fwd_splitkv, fwd_pagedkv, batch_prefill, bwd});
    read.word_of("qscale_type", p.qscale_type, qscales, {fwd, batch_prefill});
    read.word_of("rope_type", p.rope_type, ropes, {fwd_appendkv});
    read.boolean("has_logits_soft_cap", p.has_logits_soft_cap, attention);
    read.boolean("has_lse", p.has_lse, attention);
    read.boolean("has_dropout", p.has_dropout, {fwd, batch_prefill, bwd});
    read.boolean("has_sink", p.has_sink, attention);
    read.boolean("skip_min_seqlen_q", p.skip_min_seqlen_q, {fwd, fwd_pagedkv});
    read.boolean("do_fp8_static_quant", p.do_fp8_static_quant, {fwd_splitkv, fwd_pagedkv});
    read.boolean("use_pagedkv", p.use_pagedkv, {fwd_pagedkv});
    read.boolean("has_dbias", p.has_dbias, {bwd});
    read.boolean("is_store_randval", p.is_store_randval, {bwd});
    read.boolean("is_deterministic", p.is_deterministic, {bwd});
    read.pointer("cu_seqlen_k_ptr", p.cu_seqlen_k_ptr, {fwd});
    read.pointer("seqlen_k_ptr", p.seqlen_k_ptr, {fwd_splitkv, fwd_pagedkv});
    read.pointer("block_table_ptr", p.block_table_ptr, {fwd_splitkv, fwd_appendkv});
    read.word_of("kv_memory_layout", p.kv_memory_layout, layouts, {batch_prefill});
    read.word_of("kv_lookup_table", p.kv_lookup_table, lookups, {batch_prefill});
    read.integer("page_size", p.page_size, {batch_prefill});
    read.word_of("kv_load_mode", p.kv_load_mode, load_modes, {batch_prefill});
    read.reject_unknown();
    return p;
}

} // namespace fmha::upstream
