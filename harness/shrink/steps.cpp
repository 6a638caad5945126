#include "harness/shrink/steps.hpp"

#include "harness/cases/plain_case.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <optional>

namespace fmha::harness {
namespace {

using Lengths = std::vector<std::int64_t>;
using Names = std::span<const std::string_view>;

/// Fields that belong together.
constexpr std::array<std::string_view, 6> quantisation{"dtype",        "qscale",        "scale_o",
                                                       "static_quant", "block_scale_q", "block_scale_k"};
constexpr std::array<std::string_view, 2> bias{"bias", "dbias"};
constexpr std::array<std::string_view, 4> dropout{"p_drop", "dropout_seed", "dropout_offset",
                                                  "store_randval"};
constexpr std::array<std::string_view, 6> pages{"page_size",  "gappy",     "shared_pages",
                                                "page_order", "kv_layout", "kv_lookup"};
constexpr std::array<std::string_view, 3> starts{"gappy", "shared_pages", "length_form_k"};
constexpr std::array<std::string_view, 2> lookup{"kv_lookup", "length_form_k"};
constexpr std::array<std::string_view, 3> page_form{"kv_layout", "page_size", "qscale"};
constexpr std::array<std::string_view, 2> slots{"cache_batch_idx", "capacity"};
constexpr std::array<std::string_view, 2> rotation{"rope", "rotary_dim"};
constexpr std::array<std::string_view, 3> stages{"num_splits", "stage", "partial_lse"};
constexpr std::array<std::string_view, 2> workspace{"deterministic", "compute_units"};
constexpr std::array<std::string_view, 2> dims{"hdim_q", "hdim_v"};
constexpr std::array<std::string_view, 2> heads{"nhead_q", "nhead_k"};
constexpr std::array<std::string_view, 2> lengths{"seqlen_q", "seqlen_k"};
constexpr std::array<std::string_view, 4> layouts{"iperm", "operm", "v_layout", "stride_padding"};
constexpr std::array<std::string_view, 2> wide{"wide_tensor", "wide_batch_stride"};
constexpr std::array<Names, 3> sizes{lengths, dims, heads};
constexpr std::array<Names, 13> features{quantisation, bias,      dropout, pages,    starts,
                                         lookup,       page_form, slots,   rotation, stages,
                                         workspace,    layouts,   wide};

constexpr std::array<std::string_view, 4> padding{"physical_q", "physical_k", "length_form_q",
                                                  "length_form_k"};

/// Which of many draws the data are; smaller ones are no simpler.
bool is_seed(std::string_view name) {
    return name == "dropout_seed" || name == "dropout_offset" || name == "wide_batch_stride" ||
           name == "repeats";
}

bool is_power_of_two(std::string_view name) {
    return name == "page_size" || name == "block_scale_q" || name == "block_scale_k";
}

/// Other multiples have no kernels.
std::int64_t unit_of(std::string_view name) {
    return name == "hdim_q" || name == "hdim_v" || name == "hdim" || name == "rotary_dim" ? 8 : 1;
}

std::optional<std::int64_t> whole_number(const CaseField& field, const Case& c) {
    const auto value = Json::try_parse(field.print(c));
    if (!value || !value->is_number_integer()) return std::nullopt;
    return value->get<std::int64_t>();
}

std::vector<std::int64_t> numbers_below(std::string_view name, std::int64_t from, std::int64_t below) {
    std::vector<std::int64_t> numbers;
    if (is_power_of_two(name)) {
        for (std::int64_t n = std::max<std::int64_t>(from, 1); n < below; n *= 2) numbers.push_back(n);
        return numbers;
    }
    const std::int64_t unit = unit_of(name);
    // A list as long as the longest length would be; beyond that, every one is not worth naming.
    const std::int64_t stride = std::max<std::int64_t>(unit, (below - from) / 100'000);
    for (std::int64_t n = from; n < below; n += stride) numbers.push_back(n);
    return numbers;
}

Lengths* lengths_of(Case& c, std::string_view name) {
    if (name == "seqlen_q") return &c.seqlen_q;
    if (name == "seqlen_k") return &c.seqlen_k;
    if (name == "physical_q") return &c.physical_q;
    if (name == "physical_k") return &c.physical_k;
    return nullptr;
}

constexpr std::array<std::string_view, 4> length_fields{"seqlen_q", "seqlen_k", "physical_q", "physical_k"};

/// One length for all entries, the longest.
void make_uniform(Lengths& list) {
    if (list.size() > 1) list = {std::ranges::max(list)};
}

Case without_entry(const Case& c, std::size_t entry) {
    Case smaller = c;
    --smaller.batch;
    for (const auto name : length_fields)
        if (Lengths* list = lengths_of(smaller, name); list->size() > 1)
            list->erase(list->begin() + static_cast<std::ptrdiff_t>(std::min(entry, list->size() - 1)));
    return smaller;
}

void add_masks(const Case& c, std::vector<Case>& steps) {
    if (c.mask == MaskType::no_mask) return;
    const auto add = [&](MaskType type, std::int64_t left, std::int64_t right, std::int64_t sink) {
        Case simpler = c;
        simpler.mask = type;
        simpler.window_left = left;
        simpler.window_right = right;
        simpler.sink_size = sink;
        steps.push_back(std::move(simpler));
    };
    const bool causal = c.window_left == -1 && c.window_right == 0 && c.sink_size == 0;
    if (!causal || c.mask != MaskType::top_left) add(MaskType::top_left, -1, 0, 0);
    if (causal) return;
    add(MaskType::bottom_right, -1, 0, 0);
    if (c.sink_size > 0) add(c.mask, c.window_left, c.window_right, 0);
    if (c.sink_size > 1) add(c.mask, c.window_left, c.window_right, 1);
    if (c.window_left > 0) {
        add(c.mask, 0, c.window_right, c.sink_size);
        add(c.mask, c.window_left / 2, c.window_right, c.sink_size);
    }
    if (c.window_right > 0) {
        add(c.mask, c.window_left, 0, c.sink_size);
        add(c.mask, c.window_left, c.window_right / 2, c.sink_size);
    }
    if (c.mask == MaskType::window_generic)
        add(MaskType::top_left, c.window_left, c.window_right, c.sink_size);
}

} // namespace

Case with_plain(const Case& c, const Case& plain, Names names) {
    Case simpler = c;
    for (const auto name : names) {
        const CaseField& field = *find_field(name);
        if (field.families.contains(c.family)) read_text(field, field.print(plain), simpler);
    }
    return simpler;
}

std::vector<Case> size_steps(const Case& c, const Case& plain) {
    std::vector<Case> steps;
    Case everything = c;
    for (const CaseField& field : case_fields())
        if (!field.compound() && field.families.contains(c.family))
            read_text(field, field.print(plain), everything);
    steps.push_back(everything);
    for (const Names size : sizes) steps.push_back(with_plain(c, plain, size));
    std::ranges::move(entry_steps(c), std::back_inserter(steps));
    return steps;
}

std::vector<Case> feature_steps(const Case& c, const Case& plain) {
    std::vector<Case> steps;
    Case one_length = with_plain(c, plain, padding);
    one_length.mode = plain.mode;
    one_length.min_seqlen_q = plain.min_seqlen_q;
    make_uniform(one_length.seqlen_q);
    make_uniform(one_length.seqlen_k);
    steps.push_back(std::move(one_length));
    steps.push_back(with_plain(c, plain, padding));
    for (const Names feature : features) steps.push_back(with_plain(c, plain, feature));
    Case other_data = c;
    other_data.seed = plain.seed;
    steps.push_back(std::move(other_data));
    return steps;
}

std::vector<Case> field_steps(const Case& c, const Case& plain) {
    std::vector<Case> steps;
    for (const CaseField* field : unplain_fields(c, plain))
        steps.push_back(with_plain(c, plain, field->elementary()));
    return steps;
}

std::vector<Case> pair_steps(const Case& c, const Case& plain) {
    std::vector<Case> steps;
    const auto fields = unplain_fields(c, plain);
    for (std::size_t i = 0; i < fields.size(); ++i)
        for (std::size_t j = i + 1; j < fields.size(); ++j)
            steps.push_back(
                with_plain(with_plain(c, plain, fields[i]->elementary()), plain, fields[j]->elementary()));
    return steps;
}

std::vector<Case> exchange_steps(const Case& c, const Case& plain) {
    const std::size_t before = unplain_fields(c, plain).size();
    std::vector<Case> steps;
    for (const Case& simpler : pair_steps(c, plain))
        for (const auto name : length_fields) {
            const CaseField& field = *find_field(name);
            const auto value = whole_number(field, simpler), least = whole_number(field, plain);
            if (!field.families.contains(c.family) || !value || value != least) continue;
            Case longer = simpler;
            // The number of fields falls with each step, so that they come to an end.
            if (read_text(field, fmt::format("{}", *least + 1), longer) &&
                unplain_fields(longer, plain).size() < before)
                steps.push_back(std::move(longer));
        }
    return steps;
}

std::vector<Case> entry_steps(const Case& c) {
    std::vector<Case> steps;
    for (const auto name : length_fields) {
        Case uniform = c;
        Lengths& list = *lengths_of(uniform, name);
        if (list.size() < 2) continue;
        for (const std::int64_t length : Lengths(list)) {
            list = {length};
            steps.push_back(uniform);
        }
    }
    for (std::int64_t entry = 0; c.batch > 1 && entry < c.batch; ++entry) {
        if (entry > 0 && std::ranges::all_of(length_fields, [&](std::string_view name) {
                Case any = c;
                return lengths_of(any, name)->size() < 2;
            }))
            break;
        steps.push_back(without_entry(c, static_cast<std::size_t>(entry)));
    }
    return steps;
}

std::vector<Case> value_steps(const Case& c) {
    std::vector<Case> steps;
    add_masks(c, steps);
    const auto add = [&](std::string_view name, std::string_view text) {
        const CaseField& field = *find_field(name);
        Case simpler = c;
        if (field.families.contains(c.family) && read_text(field, text, simpler))
            steps.push_back(std::move(simpler));
    };
    if (c.bias == BiasType::elementwise) {
        if (c.bias_rank > 0) add("bias", "e:0");
        if (c.bias_rank > 1) add("bias", "e:1");
    }
    if (c.bias == BiasType::alibi && c.bias_rank > 0) add("bias", c.negative_slopes ? "-a:0" : "a:0");
    if (c.negative_slopes) add("bias", c.bias_rank > 0 ? "a:1" : "a:0");
    const std::int64_t group = c.nhead_q / std::max<std::int64_t>(c.nhead_k, 1);
    for (const auto& [grouped, grouped_k] :
         {std::pair<std::int64_t, std::int64_t>{group, 1}, {2, 1}, {2, 2}, {4, 2}})
        if (grouped + grouped_k < c.nhead_q + c.nhead_k)
            add("heads", fmt::format("{}:{}", grouped, grouped_k));
    if (c.hdim_q != c.hdim_v) add("hdim", fmt::format("{}", c.hdim_q));
    if (c.seqlen_q.size() == 1 && c.seqlen_k.size() == 1) {
        // A mask may need them to stay as far apart as they are.
        const std::int64_t shorter = std::min(c.seqlen_q.front(), c.seqlen_k.front());
        for (const std::int64_t less : {shorter - 1, shorter / 2, std::int64_t{1}})
            if (less > 0 && less < shorter)
                add("seqlen", fmt::format("{}:{}", c.seqlen_q.front() - less, c.seqlen_k.front() - less));
    }
    if (c.p_drop > 0.0 && c.p_drop != 0.5) add("p_drop", "0.5");
    if (c.sink_logits > SinkLogits::normal) add("sink_logits", "normal");
    if (c.length_form_q == LengthForm::cu_seqlen) add("length_form_q", "seqlen");
    if (c.length_form_k == LengthForm::cu_seqlen) add("length_form_k", "seqlen");
    return steps;
}

std::vector<ShrinkableNumber> shrinkable_numbers(const Case& c, const Case& plain) {
    std::vector<ShrinkableNumber> numbers;
    for (const CaseField* field : unplain_fields(c, plain)) {
        // The halves of a compound are smaller on their own.
        if (field->compound() && field->name != "hdim") {
            for (const auto half : field->elementary()) {
                const CaseField& single = *find_field(half);
                const auto value = whole_number(single, c), least = whole_number(single, plain);
                if (value && least && *value > *least)
                    numbers.push_back({&single, 0, numbers_below(half, *least, *value)});
            }
            continue;
        }
        if (is_seed(field->name)) continue;
        const auto value = whole_number(*field, c), least = whole_number(*field, plain);
        if (value && least && *value > *least)
            numbers.push_back({field, 0, numbers_below(field->name, *least, *value)});
        Case copy = c;
        const Lengths* list = lengths_of(copy, field->name);
        for (std::size_t entry = 0; list != nullptr && list->size() > 1 && entry < list->size(); ++entry)
            if ((*list)[entry] > 1)
                numbers.push_back({field, entry, numbers_below(field->name, 1, (*list)[entry])});
    }
    return numbers;
}

Case with_number(const Case& c, const ShrinkableNumber& number, std::int64_t value) {
    Case smaller = c;
    Lengths* list = lengths_of(smaller, number.field->name);
    if (list != nullptr && list->size() > 1) {
        if (number.entry < list->size()) (*list)[number.entry] = value;
        return smaller;
    }
    if (number.field->name == "batch") {
        while (smaller.batch > value)
            smaller = without_entry(smaller, static_cast<std::size_t>(smaller.batch));
        return smaller;
    }
    read_text(*number.field, fmt::format("{}", value), smaller);
    return smaller;
}

} // namespace fmha::harness
