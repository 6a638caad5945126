#include "dispatcher/selection/match.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace fmha {

namespace {

using Families = std::uint16_t;

constexpr Families bit(KernelFamily family) {
    return static_cast<Families>(1U << static_cast<unsigned>(family));
}

/// The families whose row of the table `column` holds for.
constexpr Families having(bool (*column)(const KernelTraits&)) {
    Families families = 0;
    for (const KernelTraits& traits : kernel_table)
        if (column(traits)) families = static_cast<Families>(families | bit(traits.family));
    return families;
}

constexpr Families everything = having([](const KernelTraits&) { return true; });
constexpr Families attention =
    having([](const KernelTraits& t) { return t.products == MatrixProducts::two; });
constexpr Families scores = having([](const KernelTraits& t) { return t.products != MatrixProducts::none; });
constexpr Families gradients =
    having([](const KernelTraits& t) { return t.products == MatrixProducts::five; });
constexpr Families stores_keys = having([](const KernelTraits& t) { return traits_of(t.api).stores_keys; });
constexpr Families page_lists = having([](const KernelTraits& t) { return traits_of(t.api).lists_pages; });
constexpr Families combines = having([](const KernelTraits& t) { return t.combines_splits; });
constexpr Families completes_dq = having([](const KernelTraits& t) { return t.completes_dq; });
constexpr Families row_sums = having([](const KernelTraits& t) { return t.row_sums; });
// A split kernel always writes the LSE of its part; the combine kernel stores the final one or not.
constexpr Families stores_lse =
    having([](const KernelTraits& t) { return traits_of(t.api).forward() && !t.stores_splits; });

constexpr bool contains(Families set, KernelFamily family) {
    return (set & bit(family)) != 0;
}

/// A field that must be equal, in which stages it matters, and how many bits hold it.
struct EqualField {
    Reason reason;
    Families families;
    unsigned bits;
    std::uint64_t (*value)(const Signature&);
};

template <auto Member>
std::uint64_t member(const Signature& s) {
    return static_cast<std::uint64_t>(s.*Member);
}

// The layout and look-up start at -1 (unset); one more makes them storable.
constexpr std::array<EqualField, 18> equal_fields{{
    {Reason::wrong_family, everything, 4, member<&Signature::family>},
    {Reason::data_type_differs, everything, 4, member<&Signature::data_type>},
    {Reason::mode_differs, everything, 1, member<&Signature::mode>},
    {Reason::v_layout_differs, scores | stores_keys, 1, member<&Signature::v_layout>},
    {Reason::soft_cap_differs, scores, 1, member<&Signature::has_logits_soft_cap>},
    {Reason::bias_differs, scores, 2, member<&Signature::bias>},
    {Reason::lse_differs, stores_lse, 1, member<&Signature::has_lse>},
    {Reason::dropout_differs, scores, 1, member<&Signature::has_dropout>},
    {Reason::qscale_differs, scores, 3, member<&Signature::qscale>},
    {Reason::rope_differs, scores | stores_keys, 2, member<&Signature::rope>},
    {Reason::paging_differs, scores | stores_keys, 1, member<&Signature::use_paged_kv>},
    {Reason::static_quant_differs, scores | combines, 1, member<&Signature::do_fp8_static_quant>},
    {Reason::dbias_differs, scores, 1, member<&Signature::has_dbias>},
    {Reason::deterministic_differs, scores | completes_dq, 1, member<&Signature::is_deterministic>},
    // In forward a kernel that can store random bytes decides at run time whether it does.
    {Reason::store_randval_differs, gradients, 1, member<&Signature::is_store_randval>},
    {Reason::kv_layout_differs, page_lists, 2,
     [](const Signature& s) { return static_cast<std::uint64_t>(s.kv_layout) + 1; }},
    {Reason::kv_lookup_differs, page_lists, 2,
     [](const Signature& s) { return static_cast<std::uint64_t>(s.kv_lookup) + 1; }},
    // Batch prefill compiles the page size in, so 1 means 1; elsewhere 1 means "any" (StageQuery::page_size).
    {Reason::page_size_differs, page_lists, 32,
     [](const Signature& s) { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(s.page_size)); }},
}};

static_assert([] {
    unsigned bits = 0;
    for (const EqualField& field : equal_fields) bits += field.bits;
    return bits <= 64;
}());

Capabilities capabilities_of(const Signature& s) {
    Capabilities caps;
    if (contains(scores, s.family)) caps.mask = s.mask;
    caps.sink = contains(attention, s.family) && s.has_sink;
    // The row sums of the first backward stage yield the gradient of the sink logits (W-10).
    caps.sink_logit = contains(attention | row_sums, s.family) && s.has_sink_logit;
    caps.skip_min_seqlen_q = contains(attention, s.family) && s.skip_min_seqlen_q;
    caps.store_randval = api_traits_of(s.family).contiguous() && s.is_store_randval;
    return caps;
}

std::int32_t small(std::string_view field, std::int64_t value) {
    if (value < 0 || value > std::numeric_limits<std::uint16_t>::max())
        throw DeclarationError(fmt::format("kernel {} = {} is outside 0 to 65535", field, value));
    return static_cast<std::int32_t>(value);
}

/// The multiple that an unpadded kernel needs: the declared one, else the extent that its tile covers.
std::int32_t alignment(std::int8_t pad, std::int32_t declared, std::int64_t covered) {
    if (pad == 1) return 1;
    if (pad == 8) return 8;
    return declared > 0 ? declared : static_cast<std::int32_t>(std::max<std::int64_t>(covered, 1));
}

} // namespace

std::uint64_t equality_key(const Signature& signature) {
    std::uint64_t key = 0;
    unsigned shift = 0;
    for (const EqualField& field : equal_fields) {
        if (contains(field.families, signature.family)) key |= field.value(signature) << shift;
        shift += field.bits;
    }
    return key;
}

KernelFacts facts_of(const KernelConfig& config) {
    const Signature& s = config.signature;
    const Algorithm& a = config.algorithm;
    const KernelTraits& traits = traits_of(s.family);
    const bool lists_pages = api_traits_of(s.family).lists_pages;
    const auto constraint = parse_constraint(a.constraint);
    if (!constraint)
        throw DeclarationError(fmt::format("constraint \"{}\" of kernel {} is not a registered predicate",
                                           a.constraint.view(), identifier(config)));
    KernelFacts facts;
    facts.has = capabilities_of(s);
    facts.constraint = *constraint;
    facts.selection_rank = a.selection_rank;
    facts.tile_m0 = a.tile.m0;
    facts.tile_n0 = a.tile.n0;
    facts.max_seq_len_q = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(a.max_seq_len_q, 0, std::numeric_limits<std::int32_t>::max()));
    if (contains(attention | stores_keys, s.family) && !lists_pages) facts.page_size = s.page_size;
    if (traits.query_dim) {
        facts.hdim_q = small("hdim_q", s.hdim_q);
        // In bwd_dq_dk_dv the entry named k0max is a step; its padded head dimension is hdim_q itself.
        const bool own_k0max = contains(attention, s.family) && a.tile.k0max > 0;
        facts.align_q = alignment(a.pad.d, a.hdim_q_alignment, own_k0max ? a.tile.k0max : s.hdim_q);
    }
    if (traits.value_dim) {
        facts.hdim_v = small("hdim_v", s.hdim_v);
        const bool column_tiles = traits.combines_splits && a.tile.n1 > 0;
        facts.align_v = alignment(a.pad.dv, a.hdim_v_alignment, column_tiles ? a.tile.n1 : s.hdim_v);
    }
    facts.needs_full_q_tiles = traits.query_tiles && !a.pad.s;
    facts.needs_full_k_tiles = traits.key_tiles && !a.pad.sk;
    if (traits.combines_splits) {
        const bool stated = a.max_splits_log2 > 0;
        facts.max_splits = static_cast<std::int16_t>(
            1 << (stated ? std::min(a.max_splits_log2, most_splits_log2) : most_splits_log2));
    }
    // A page that holds whole tiles is where a descriptor begins: its offsets stay within the page, wherever in the pool that is.
    facts.offsets_32_bits =
        lists_pages && a.load_mode == LoadMode::bload && s.page_size < std::int32_t{a.tile.n0};
    // Its feed copies tiles by tensor maps, which have addresses and strides of whole units.
    if (a.pipeline == Pipeline::ws) {
        facts.by_tensor_maps = true;
        facts.tensor_alignment = most_tensor_alignment;
    }
    return facts;
}

StageQuery make_query(const Problem& problem, KernelFamily stage) {
    Signature signature = problem.signature;
    signature.family = stage;
    StageQuery query;
    query.family = stage;
    query.problem = &problem;
    query.arch = problem.arch;
    query.equality_key = equality_key(signature);
    query.needs = capabilities_of(signature);
    if (signature.use_paged_kv && !api_traits_of(stage).lists_pages) query.page_size = signature.page_size;
    if (traits_of(stage).query_dim) query.hdim_q = signature.hdim_q;
    if (traits_of(stage).value_dim) query.hdim_v = signature.hdim_v;
    query.group = signature.mode == Mode::group;
    query.ragged_q = query.group || problem.has_variable_seqlen_q();
    query.ragged_k = query.group || problem.has_variable_seqlen_k();
    query.reduces_heads = problem.heads_of_dk_dv() > 1;
    query.seqlen_q = problem.effective_max_seqlen_q();
    query.seqlen_k = problem.seqlen_k;
    query.max_seqlen_q = problem.max_seqlen_q;
    query.num_splits = problem.num_splits;
    query.kv_pool_bytes = problem.kv_pool_bytes;
    query.tensor_alignment = problem.tensor_alignment;
    query.tensors_mappable = problem.tensors_mappable;
    query.constraint = ConstraintInputs::of(problem);
    return query;
}

void follow_main(StageQuery& query, const KernelConfig& main) {
    if (traits_of(query.family).completes_dq)
        query.main_hdim_q = main.signature.hdim_q;
    else
        query.main_hdim_v = main.signature.hdim_v;
    query.main_tile_m0 = main.algorithm.tile.m0;
}

int surplus(const Capabilities& has, const Capabilities& needs) {
    return static_cast<int>(has.sink && !needs.sink) + static_cast<int>(has.sink_logit && !needs.sink_logit) +
           static_cast<int>(has.skip_min_seqlen_q && !needs.skip_min_seqlen_q) +
           static_cast<int>(has.store_randval && !needs.store_randval) +
           static_cast<int>(has.mask == MaskClass::generic && needs.mask == MaskClass::causal);
}

bool arch_matches(const ArchName& problem, const ArchName& kernel) {
    return problem.empty() || kernel.empty() || problem == kernel;
}

namespace {

template <class Visit>
void each_equality_failure(const StageQuery& query, const KernelConfig& config, Visit&& visit) {
    const std::uint64_t own = equality_key(config.signature);
    std::uint64_t difference = query.equality_key ^ own;
    unsigned shift = 0;
    for (const EqualField& field : equal_fields) {
        const std::uint64_t mask = ((std::uint64_t{1} << field.bits) - 1) << shift;
        if ((difference & mask) != 0) {
            const Verdict verdict{field.reason,
                                  static_cast<std::int64_t>((query.equality_key & mask) >> shift),
                                  static_cast<std::int64_t>((own & mask) >> shift)};
            // Which fields matter depends on the family, so after a wrong one nothing else can be compared.
            if (!visit(verdict) || field.reason == Reason::wrong_family) return;
        }
        shift += field.bits;
    }
}

template <class Visit>
void each_condition(const StageQuery& query, const KernelConfig& config, Visit&& visit) {
    bool go_on = true;
    const auto forward = [&](const Verdict& verdict) {
        go_on = visit(verdict) && verdict.reason != Reason::wrong_family;
        return go_on;
    };
    if (!arch_matches(query.arch, config.arch) && !forward({Reason::wrong_arch, 0, 0})) return;
    each_equality_failure(query, config, forward);
    if (go_on) each_failure(query, facts_of(config), forward);
}

} // namespace

Verdict match(const StageQuery& query, const KernelConfig& config) {
    Verdict first;
    each_condition(query, config, [&first](const Verdict& verdict) {
        first = verdict;
        return false;
    });
    return first;
}

Verdict match(const Problem& problem, const KernelConfig& config) {
    return match(make_query(problem, config.signature.family), config);
}

Distance distance(const StageQuery& query, const KernelConfig& config) {
    Distance far;
    each_condition(query, config, [&far](const Verdict& verdict) {
        if (far.failures++ == 0) far.first = verdict;
        return true;
    });
    return far;
}

} // namespace fmha
