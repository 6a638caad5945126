// The working list: valid, unique, and a kernel for every legal problem.

#include "dispatcher/selection/match.hpp"
#include "dispatcher/types/element.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "tests/catalog/catalog_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <unordered_map>

namespace fmha::catalog::test {
namespace {

using testing::IsEmpty;
using enum KernelFamily;

const std::vector<KernelConfig>& house(std::string_view arch) {
    static std::map<std::string, std::vector<KernelConfig>, std::less<>> lists;
    const auto found = lists.find(arch);
    if (found != lists.end()) return found->second;
    return lists.emplace(arch, list(archs(), request(RuleSet::house, {ArchName(arch)}))).first->second;
}

/// Kernels by the fields that must be equal, as the dispatcher asks for them.
class Index {
  public:
    explicit Index(std::string_view arch) : limits_(archs().at(arch).hardware().limits) {
        for (const KernelConfig& config : house(arch))
            kernels_[equality_key(config.signature)].push_back(facts_of(config));
    }

    bool serves(Problem problem, KernelFamily stage) const {
        problem.arch = limits_.arch;
        problem.compute_units = limits_.compute_units;
        const StageQuery query = make_query(problem, stage);
        const auto found = kernels_.find(query.equality_key);
        if (found == kernels_.end()) return false;
        for (const KernelFacts& facts : found->second)
            if (check_sizes(query, facts)) return true;
        return false;
    }
    const HardwareLimits& limits() const { return limits_; }

  private:
    HardwareLimits limits_;
    std::unordered_map<std::uint64_t, std::vector<KernelFacts>> kernels_;
};

TEST(House, EveryRecordSatisfiesEveryRule) {
    for (const arch::ArchTables& arch : archs().all())
        for (const KernelConfig& config : house(arch.name()))
            if (!is_valid(config, arch.hardware().limits))
                FAIL() << name_of(RuleSet::house, config) << ": "
                       << validate(config, arch.hardware().limits).front().message;
}

TEST(House, NamesAndIdentitiesAreUnique) {
    std::set<std::string> seen_names, identities;
    std::size_t kernels = 0;
    for (const arch::ArchTables& arch : archs().all())
        for (const KernelConfig& config : house(arch.name())) {
            ++kernels;
            seen_names.insert(name_of(RuleSet::house, config));
            identities.insert(identifier(config));
        }
    EXPECT_EQ(seen_names.size(), kernels);
    EXPECT_EQ(identities.size(), kernels);
}

TEST(House, HasAllNineFamiliesAndAllTypes) {
    FamilySet families = FamilySet::none();
    std::set<DataType> forward_types;
    for (const KernelConfig& config : house("gfx950")) {
        families.add(config.signature.family);
        if (config.signature.family == fwd) forward_types.insert(config.signature.data_type);
    }
    EXPECT_EQ(families, FamilySet{});
    EXPECT_EQ(forward_types.size(), EnumTable<DataType>::names.size());
}

TEST(House, HardwareDecidesTheTypes) {
    for (const arch::ArchTables& arch : archs().all()) {
        std::uint32_t types = 0;
        for (const KernelConfig& config : house(arch.name()))
            types |= 1U << static_cast<unsigned>(config.signature.data_type);
        EXPECT_EQ(types, arch.hardware().limits.data_types) << arch.name().view();
    }
}

/// Visits legal forward problems: every combination of features, head dimensions round each bucket, lengths with and
/// without tails.
template <class Visit>
void each_forward_problem(const HardwareLimits& limits, Visit&& visit) {
    struct Sizes {
        std::int64_t hdim_q, hdim_v, seqlen_q, seqlen_k;
    };
    constexpr std::array sizes{Sizes{32, 32, 128, 128},     Sizes{64, 64, 1, 256},
                               Sizes{72, 128, 100, 51},     Sizes{128, 128, 1024, 256},
                               Sizes{128, 24, 3, 99},       Sizes{192, 128, 256, 512},
                               Sizes{8, 256, 33, 64},       Sizes{256, 256, 64, 1},
                               Sizes{256, 104, 4096, 8192}, Sizes{160, 160, 17, 0}};
    struct Dropout {
        bool on, stored;
    };
    for (const auto& type : EnumTable<DataType>::names) {
        if (!limits.has(type.value)) continue;
        const bool mx = type.value == DataType::mxfp8 || type.value == DataType::mxfp4;
        const bool eight_bits = !mx && element_bits(element_types(type.value, Fp8Flavour::ocp).q) == 8;
        std::vector<QScale> scales{mx ? QScale::mx : QScale::no_scale};
        if (eight_bits) scales = {QScale::no_scale, QScale::pertensor, QScale::blockscale};
        for (const Mode mode : {Mode::batch, Mode::group})
            for (const VLayout layout : {VLayout::row, VLayout::column})
                for (const QScale scale : scales)
                    for (const auto& bias : EnumTable<BiasType>::names)
                        for (const bool cap : {false, true})
                            for (const auto& mask : EnumTable<MaskClass>::names)
                                for (const bool lse : {false, true})
                                    for (const Dropout dropout :
                                         {Dropout{false, false}, {true, false}, {true, true}})
                                        for (const int sinks : {0, 1, 2, 3})
                                            for (const Sizes& size : sizes) {
                                                if ((mx && layout == VLayout::row) ||
                                                    (cap && bias.value != BiasType::no_bias))
                                                    continue;
                                                Problem p;
                                                Signature& s = p.signature;
                                                s.data_type = type.value;
                                                s.mode = mode;
                                                s.v_layout = layout;
                                                s.qscale = scale;
                                                s.bias = bias.value;
                                                s.has_logits_soft_cap = cap;
                                                s.mask = mask.value;
                                                s.has_lse = lse;
                                                s.has_dropout = dropout.on;
                                                s.is_store_randval = dropout.stored;
                                                s.has_sink = (sinks & 1) != 0;
                                                s.has_sink_logit = (sinks & 2) != 0;
                                                s.skip_min_seqlen_q = mode == Mode::group && lse;
                                                s.hdim_q = size.hdim_q;
                                                s.hdim_v = size.hdim_v;
                                                p.batch = 2;
                                                p.nhead_q = p.nhead_k = 2;
                                                p.seqlen_q = size.seqlen_q;
                                                p.seqlen_k = size.seqlen_k;
                                                p.max_seqlen_q = size.seqlen_q;
                                                p.presence.seqstart_q = p.presence.seqstart_k =
                                                    mode == Mode::group;
                                                visit(p);
                                            }
    }
}

std::vector<std::string> forward_holes(std::string_view arch, std::size_t& asked,
                                       std::int64_t alignment = most_tensor_alignment) {
    const Index index(arch);
    std::vector<std::string> holes;
    each_forward_problem(index.limits(), [&](Problem problem) {
        ++asked;
        problem.tensor_alignment = alignment;
        if (!index.serves(problem, fwd) && holes.size() < 5) holes.push_back(problem.to_string());
    });
    return holes;
}

TEST(House, EveryForwardProblemOfGfx950HasAKernel) {
    std::size_t asked = 0;
    EXPECT_THAT(forward_holes("gfx950", asked), IsEmpty());
    EXPECT_GT(asked, 100'000U);
}

TEST(House, EveryForwardProblemOfTheOtherArchitecturesHasAKernel) {
    for (const char* arch : {"gfx90a", "gfx942", "gfx1100", "gfx1151", "gfx1201", "sm_90"}) {
        std::size_t asked = 0;
        EXPECT_THAT(forward_holes(arch, asked), IsEmpty()) << arch;
        EXPECT_GT(asked, 10'000U) << arch;
    }
}

TEST(House, PipelineWsHasTheInstructionsOfWarpGroupsAndNothingElseHasThem) {
    std::size_t warp_groups = 0;
    for (const KernelConfig& config : house("sm_90")) {
        const bool ws = config.algorithm.pipeline == Pipeline::ws;
        if (ws) ++warp_groups;
        const bool paged = config.signature.family == fwd_pagedkv,
                   prefill = config.signature.family == batch_prefill;
        if (config.signature.family != fwd && !paged && !prefill) {
            EXPECT_FALSE(ws);
            continue;
        }
        EXPECT_EQ(config.algorithm.warp.m0 == 64, ws) << name_of(RuleSet::house, config);
        EXPECT_FALSE(ws && config.signature.has_dropout) << name_of(RuleSet::house, config);
        // Pages of 128 keys hold whole tiles.
        EXPECT_FALSE(ws && paged && 128 % config.algorithm.tile.n0 != 0) << name_of(RuleSet::house, config);
        const bool copied = config.signature.kv_layout == KvLayout::linear &&
                            config.signature.page_size >= 8 && config.algorithm.load_mode == LoadMode::gload;
        EXPECT_FALSE(ws && prefill && !copied) << name_of(RuleSet::house, config);
    }
    EXPECT_GT(warp_groups, 500U);
}

TEST(House, TensorsThatNoMapDescribesHaveKernelsToo) {
    std::size_t asked = 0;
    EXPECT_THAT(forward_holes("sm_90", asked, 2), IsEmpty());
    EXPECT_GT(asked, 10'000U);
}

TEST(House, PagedProblemsOfHopperHaveKernelsWithAndWithoutMaps) {
    const Index index("sm_90");
    std::vector<std::string> holes;
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp8})
        for (const Mode mode : {Mode::batch, Mode::group})
            for (const auto& mask : EnumTable<MaskClass>::names)
                for (const BiasType bias : {BiasType::no_bias, BiasType::elementwise, BiasType::alibi})
                    for (const bool cap : {false, true})
                        for (const std::int64_t rows : {1, 17, 64, 65, 1000, 2000})
                            for (const std::int64_t hdim : {32, 72, 128, 256})
                                for (const std::int64_t alignment : {2, 16}) {
                                    if (cap && bias != BiasType::no_bias) continue;
                                    Problem p;
                                    Signature& s = p.signature;
                                    s.data_type = type;
                                    s.mode = mode;
                                    s.mask = mask.value;
                                    s.bias = bias;
                                    s.has_logits_soft_cap = cap;
                                    s.use_paged_kv = true;
                                    s.page_size = 128;
                                    s.hdim_q = s.hdim_v = hdim;
                                    p.batch = p.nhead_q = p.nhead_k = 2;
                                    p.seqlen_q = p.max_seqlen_q = rows;
                                    p.seqlen_k = 77;
                                    p.tensor_alignment = alignment;
                                    p.presence.seqlen_k = true;
                                    p.presence.seqstart_q = p.presence.seqstart_k = mode == Mode::group;
                                    if (!index.serves(p, fwd_pagedkv) && holes.size() < 5)
                                        holes.push_back(p.to_string());
                                }
    EXPECT_THAT(holes, IsEmpty());
}

TEST(House, PrefillsOfHopperHaveKernelsWithAndWithoutMaps) {
    const Index index("sm_90");
    std::vector<std::string> holes;
    for (const DataType type : {DataType::fp16, DataType::bf16})
        for (const auto& mask : EnumTable<MaskClass>::names)
            for (const BiasType bias : {BiasType::no_bias, BiasType::elementwise, BiasType::alibi})
                for (const bool cap : {false, true})
                    for (const std::int64_t rows : {1, 17, 64, 65, 300, 1000, 3000})
                        for (const std::int64_t hdim : {32, 64, 72, 128, 256})
                            for (const std::int32_t page_size : {1, 16, 1024})
                                for (const std::int64_t alignment : {2, 16})
                                    for (const KvLayout layout : {KvLayout::linear, KvLayout::vectorized}) {
                                        if (page_size == 1 && layout == KvLayout::vectorized) continue;
                                        if (cap && bias != BiasType::no_bias) continue;
                                        Problem p;
                                        Signature& s = p.signature;
                                        s.data_type = type;
                                        s.mode = Mode::group;
                                        s.mask = mask.value;
                                        s.bias = bias;
                                        s.has_logits_soft_cap = cap;
                                        s.use_paged_kv = true;
                                        s.page_size = page_size;
                                        s.kv_layout = layout;
                                        s.kv_lookup = KvLookup::sglang_1d;
                                        s.hdim_q = s.hdim_v = hdim;
                                        p.batch = p.nhead_q = p.nhead_k = 2;
                                        p.max_seqlen_q = rows;
                                        p.seqlen_k = 77;
                                        p.tensor_alignment = alignment;
                                        p.presence.seqstart_q = true;
                                        if (!index.serves(p, batch_prefill) && holes.size() < 5)
                                            holes.push_back(p.to_string());
                                    }
    EXPECT_THAT(holes, IsEmpty());
}

TEST(House, TheHoleCheckSeesAHole) {
    // A problem that nothing may take: head dimensions beyond every bucket.
    Problem problem;
    problem.signature.hdim_q = problem.signature.hdim_v = 264;
    problem.batch = problem.nhead_q = problem.nhead_k = 1;
    problem.seqlen_q = problem.seqlen_k = 128;
    EXPECT_FALSE(Index("gfx950").serves(problem, fwd));
    problem.signature.hdim_q = problem.signature.hdim_v = 256;
    EXPECT_TRUE(Index("gfx950").serves(problem, fwd));
}

TEST(House, BackwardProblemsHaveAllThreeStages) {
    for (const char* arch : {"gfx90a", "gfx950", "gfx1100"}) {
        const Index index(arch);
        std::vector<std::string> holes;
        for (const DataType type : {DataType::fp32, DataType::fp16, DataType::bf16}) {
            if (!index.limits().has(type)) continue;
            for (const Mode mode : {Mode::batch, Mode::group})
                for (const auto& mask : EnumTable<MaskClass>::names)
                    for (const auto& bias : EnumTable<BiasType>::names)
                        for (const bool dbias : {false, true})
                            for (const int dropout : {0, 1, 2})
                                for (const bool deterministic : {false, true})
                                    for (const std::int64_t hdim : {32, 40, 64, 96, 128, 160, 256}) {
                                        if (dbias && bias.value != BiasType::elementwise) continue;
                                        Problem p;
                                        p.api_family = ApiFamily::bwd;
                                        Signature& s = p.signature;
                                        s.data_type = type;
                                        s.mode = mode;
                                        s.mask = mask.value;
                                        s.bias = bias.value;
                                        s.has_dbias = dbias;
                                        s.has_dropout = dropout > 0;
                                        s.is_store_randval = dropout > 1;
                                        s.is_deterministic = deterministic;
                                        s.has_sink_logit = deterministic;
                                        s.hdim_q = hdim;
                                        s.hdim_v = hdim == 40 ? 88 : hdim;
                                        p.batch = p.nhead_q = p.nhead_k = 2;
                                        p.seqlen_q = p.max_seqlen_q = 100;
                                        p.seqlen_k = 77;
                                        p.presence.seqstart_q = p.presence.seqstart_k = mode == Mode::group;
                                        for (const KernelFamily stage :
                                             {bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq})
                                            if (!index.serves(p, stage) && holes.size() < 5)
                                                holes.push_back(
                                                    fmt::format("{}: {}", to_string(stage), p.to_string()));
                                    }
        }
        EXPECT_THAT(holes, IsEmpty()) << arch;
    }
}

TEST(House, KeyValueCacheProblemsHaveKernels) {
    const Index index("gfx950");
    std::vector<std::string> holes;
    const auto need = [&](const Problem& p, KernelFamily stage) {
        if (!index.serves(p, stage) && holes.size() < 5)
            holes.push_back(fmt::format("{}: {}", to_string(stage), p.to_string()));
    };
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp8, DataType::fp8bf16})
        for (const Mode mode : {Mode::batch, Mode::group})
            for (const auto& mask : EnumTable<MaskClass>::names)
                for (const bool paged : {false, true})
                    for (const bool lse : {false, true})
                        for (const bool sinks : {false, true})
                            for (const std::int64_t hdim : {32, 72, 128, 256}) {
                                Problem p;
                                Signature& s = p.signature;
                                s.data_type = type;
                                s.mode = mode;
                                s.mask = mask.value;
                                s.has_lse = lse;
                                s.has_sink = s.has_sink_logit = sinks;
                                s.use_paged_kv = paged;
                                s.page_size = paged ? 128 : 1;
                                s.hdim_q = s.hdim_v = hdim;
                                p.batch = p.nhead_q = p.nhead_k = 2;
                                p.seqlen_q = p.max_seqlen_q = 100;
                                p.seqlen_k = 77;
                                p.num_splits = 128;
                                p.presence.seqlen_k = paged;
                                p.presence.seqstart_q = p.presence.seqstart_k = mode == Mode::group;
                                need(p, fwd_splitkv);
                                need(p, fwd_splitkv_combine);
                                if (paged && type != DataType::fp8bf16) need(p, fwd_pagedkv);
                                if (mode == Mode::batch) need(p, fwd_appendkv);
                                if (!paged || mode == Mode::batch) continue;
                                for (const std::int32_t page : {1, 16, 1024})
                                    for (const KvLayout layout : {KvLayout::vectorized, KvLayout::linear}) {
                                        if (page == 1 && layout == KvLayout::vectorized) continue;
                                        s.page_size = page;
                                        s.kv_layout = layout;
                                        s.kv_lookup = KvLookup::vllm_2d;
                                        p.kv_pool_bytes = std::int64_t{1} << 32;
                                        need(p, batch_prefill);
                                    }
                            }
    EXPECT_THAT(holes, IsEmpty());
}

TEST(House, ProfilesKeepWhatTheyPromise) {
    const auto kept = [](std::string_view profile) {
        return list(archs(), request(RuleSet::house, {"gfx950"}, profile));
    };
    EXPECT_EQ(kept("ck_default").size(), house("gfx950").size())
        << "the working list is one list, fp32 included";
    EXPECT_EQ(kept("150").size(), house("gfx950").size());
    EXPECT_EQ(kept("all").size(), house("gfx950").size());
    for (const KernelConfig& config : kept("pytorch")) {
        EXPECT_NE(config.signature.bias, BiasType::alibi);
        EXPECT_EQ(config.signature.qscale, QScale::no_scale);
        EXPECT_FALSE(config.signature.has_logits_soft_cap);
    }
    for (const KernelConfig& config : kept("fp32")) EXPECT_EQ(config.signature.data_type, DataType::fp32);
    for (const KernelConfig& config : kept("aiter_bwd_group")) {
        EXPECT_EQ(config.signature.mode, Mode::group);
        EXPECT_TRUE(api_traits_of(config.signature.family).gradients);
    }
    for (const ProfileRow& row : profiles())
        EXPECT_FALSE(kept(to_string(row.id)).empty()) << to_string(row.id);
}

} // namespace
} // namespace fmha::catalog::test
