#include "harness/fuzz/random_case.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/type_classes.hpp"
#include "harness/cases/cache_case.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/data/edge_code.hpp"
#include "harness/data/fwd_fill.hpp"
#include "harness/families/family.hpp"
#include "harness/fuzz/draw.hpp"
#include "harness/run/case_tensors.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace fmha::harness {
namespace {

bool is_8_bit(DataType type) {
    return type == DataType::fp8 || type == DataType::bf8 || type == DataType::fp8bf16 ||
           type == DataType::fp8fp32;
}

class RandomCase {
  public:
    RandomCase(const Case& plain, std::uint64_t seed)
        : draw_(seed), c_(plain), api_(traits_of(plain.family)) {
        c_.seed = seed;
    }

    Case drawn(const Case& plain, const TilePlanner& planned_tile) {
        shape();
        c_.iperm = draw_.any({Layout::bhsd, Layout::bshd});
        c_.operm = draw_.any({Layout::bhsd, Layout::bshd});
        c_.stride_padding = draw_.any({std::int64_t{0}, std::int64_t{8}, std::int64_t{16}});
        if (api_.stores_keys) {
            appended();
            lengths({.m0 = 64, .n0 = 128});
        } else {
            attention();
            fill();
            // Which kernel is planned depends little on lengths, and lengths on its tile.
            lengths({.m0 = 16, .n0 = 16});
            const std::optional<Tile> tile =
                planned_tile && c_.split.stage == SplitStage::both ? planned_tile(c_) : std::nullopt;
            if (tile) lengths(*tile);
        }
        if (api_.reads_cache) room();
        if (api_.attends && api_.reads_cache && draw_.one_in(3)) chain();
        far_apart();
        return named_by_plain(c_, plain);
    }

  private:
    void shape() {
        types();
        // Batch prefill is always packed, append-KV never.
        if (!api_.stores_keys && !api_.lists_pages) c_.mode = draw_.any({Mode::batch, Mode::group});
        c_.batch = draw_.between(1, 3);
        c_.nhead_k = draw_.between(1, 2);
        c_.nhead_q = c_.nhead_k * draw_.between(1, 3);
        const bool mx = is_micro_scaled(c_.data_type);
        const std::int64_t unit = mx ? 32 : is_8_bit(c_.data_type) ? 16 : 8;
        const auto dim = [&] { return unit * draw_.between(1, (draw_.one_in(8) ? 256 : 136) / unit); };
        c_.hdim_q = dim();
        c_.hdim_v = draw_.one_in(3) ? dim() : c_.hdim_q;
    }

    void types() {
        const RandomTypes of_family = family_of(c_.family).random_types();
        if (of_family.types.empty())
            throw InputError(fmt::format("no random problems are drawn of {}", to_string(c_.family)));
        c_.data_type = draw_.any(of_family.types);
        if (is_8_bit(c_.data_type) && !of_family.scales_of_8_bits.empty())
            c_.qscale = draw_.any(of_family.scales_of_8_bits);
        if (is_micro_scaled(c_.data_type)) {
            c_.qscale = QScale::mx;
            c_.v_layout = VLayout::column;
        }
        if (c_.data_type == DataType::fp8 && api_.attends && !api_.gradients) {
            c_.scale_o = draw_.any({1.0, 16.0, 100.0});
            c_.static_quant = !api_.lists_pages && draw_.one_in(4);
            // No list has such kernels with descales.
            if (c_.static_quant) c_.qscale = QScale::no_scale;
        }
        // Blocks are multiples of every kernel's tiles.
        if (c_.qscale != QScale::blockscale) return;
        c_.block_scale_q = draw_.any({128, 128, 256, 384});
        c_.block_scale_k = draw_.any({128, 128, 256, 384});
    }

    void appended() {
        c_.seqlen_q = {draw_.any({0, 1, 1, 5, 70})};
        c_.append.any_bits = draw_.one_in(2);
        c_.mask = draw_.any({MaskType::no_mask, MaskType::top_left, MaskType::bottom_right});
        c_.window_right = c_.mask == MaskType::no_mask ? -1 : 0;
        if (!is_8_bit(c_.data_type) && c_.hdim_q >= 16 && draw_.one_in(2)) {
            c_.append.rope = draw_.any({Rope::interleaved, Rope::half_rotated});
            c_.append.rotary_dim = 16 * draw_.between(1, c_.hdim_q / 16);
        }
        cache();
    }

    void attention() {
        mask();
        const bool plain_scores =
            is_micro_scaled(c_.data_type) || (api_.lists_pages && is_8_bit(c_.data_type));
        if (!plain_scores) scores();
        if (draw_.one_in(5)) c_.sink_logits = draw_.any({SinkLogits::normal, SinkLogits::saturated});
        if (draw_.one_in(6)) c_.scale_s = draw_.any({0.05, 0.3});
        if (!api_.gradients) c_.lse = !draw_.one_in(8);
        if (api_.splits_keys) splits();
        if (api_.reads_cache) cache();
        if (api_.gradients) gradients();
    }

    void mask() {
        switch (draw_.between(0, 6)) {
        case 0:
        case 1:
            break;
        case 2:
            c_.mask = MaskType::top_left;
            c_.window_right = 0;
            break;
        case 3:
            c_.mask = MaskType::bottom_right;
            c_.window_right = 0;
            break;
        case 4:
        case 5:
            c_.mask = draw_.any({MaskType::top_left, MaskType::bottom_right});
            c_.window_left = draw_.between(0, 90);
            c_.window_right = draw_.between(-1, 40);
            // Backward has no kernels with sink tokens (K-2).
            if (!api_.gradients) c_.sink_size = draw_.one_in(3) ? draw_.between(1, 9) : 0;
            break;
        default:
            c_.mask = MaskType::window_generic;
            c_.window_left = draw_.between(0, 90);
            c_.window_right = draw_.between(0, 40);
        }
    }

    void scores() {
        switch (draw_.between(0, 5)) {
        case 0:
            c_.bias = BiasType::elementwise;
            c_.bias_rank = static_cast<int>(draw_.between(0, 2));
            break;
        case 1:
            c_.bias = BiasType::alibi;
            c_.bias_rank = static_cast<int>(draw_.between(0, 1));
            c_.negative_slopes = draw_.one_in(4);
            break;
        case 2:
            if (!api_.gradients) c_.logits_soft_cap = draw_.any({5.0, 30.0, 50.0});
            break;
        default:
            break;
        }
        if (!api_.dropout || !draw_.one_in(4)) return;
        c_.p_drop = draw_.any({0.1, 0.25, 0.5});
        c_.dropout_seed = static_cast<std::uint64_t>(draw_.between(0, 1LL << 60));
        c_.dropout_offset = static_cast<std::uint64_t>(draw_.between(0, 1LL << 40));
        c_.store_randval = draw_.one_in(2);
    }

    void splits() {
        c_.split.num_splits = draw_.any({1, 2, 3, 5, 8, 17, 0});
        if (!draw_.one_in(5)) return;
        c_.split.stage = SplitStage::combine;
        c_.split.num_splits = draw_.between(1, 40);
        using enum PartialLse;
        c_.split.partial_lse =
            draw_.any({PartialLse::normal, equal, far, wide, some_empty, all_empty, last_only});
        // The first stage's features mean nothing to the second.
        c_.mask = MaskType::no_mask;
        c_.window_left = c_.window_right = -1;
        c_.sink_size = 0;
        c_.bias = BiasType::no_bias;
        c_.bias_rank = Case{}.bias_rank;
        c_.negative_slopes = false;
        c_.logits_soft_cap = c_.scale_s = 0.0;
    }

    void gradients() {
        c_.backward.dbias = c_.bias == BiasType::elementwise && draw_.one_in(2);
        c_.backward.deterministic = draw_.one_in(2);
        c_.backward.reduce_dk_dv = c_.nhead_q > c_.nhead_k && draw_.one_in(3);
        c_.backward.compute_units = draw_.any({0, 0, 2, 3, 7});
        if (draw_.one_in(6)) c_.backward.forward = ForwardResults::kernel;
    }

    void cache() {
        CachePart& cache = c_.cache;
        cache.page_order = draw_.between(0, 9);
        if (api_.lists_pages) return prefill_pages();
        const bool paged = api_.always_paged || draw_.one_in(2);
        cache.page_size = paged ? draw_.any({128, 128, 256, 384}) : 0;
        cache.cache_batch_idx = !paged && c_.mode == Mode::batch && draw_.one_in(2);
        if (api_.stores_keys) return;
        c_.length_form_k = draw_.one_in(4) ? LengthForm::none : LengthForm::seqlen;
        cache.gappy = paged && c_.length_form_k == LengthForm::seqlen && draw_.one_in(4);
        cache.shared_pages = paged && !cache.gappy && draw_.one_in(5) ? 1 : 0;
    }

    void prefill_pages() {
        CachePart& cache = c_.cache;
        cache.kv_layout = draw_.any({KvLayout::linear, KvLayout::vectorized});
        cache.kv_lookup = draw_.any({KvLookup::vllm_2d, KvLookup::sglang_1d});
        const bool vectors = cache.kv_layout == KvLayout::vectorized;
        cache.page_size = vectors ? draw_.any({16, 16, 1024}) : draw_.any({1, 16, 16, 1024});
        if (is_8_bit(c_.data_type)) {
            c_.qscale = draw_.any({QScale::pertensor, QScale::per_token_head, QScale::kv_blockscale});
            if (c_.qscale == QScale::kv_blockscale) cache.page_size = 1024;
        }
        c_.length_form_k = cache.kv_lookup == KvLookup::vllm_2d ? LengthForm::seqlen : LengthForm::none;
        cache.shared_pages = draw_.one_in(6) ? 1 : 0;
    }

    void fill() {
        using enum Fill;
        c_.fill = draw_.any({normal, normal, sharp, indexed, zeros, huge, uniform, integers, rising,
                             edge_last, edge_first, heavy_tailed, shifted});
        const bool edge = c_.fill == edge_last || c_.fill == edge_first;
        if (api_.gradients && (c_.fill == huge || c_.fill == shifted)) c_.fill = normal;
        if (edge && !edges_decide()) c_.fill = normal;
        if (c_.split.stage == SplitStage::combine) c_.fill = normal;
    }

    /// An edge fill that can decide no row is an error, so it is for cases in which a key wins alone.
    bool edges_decide() const {
        return c_.bias == BiasType::no_bias && c_.logits_soft_cap == 0.0 && c_.p_drop == 0.0 &&
               c_.scale_s == 0.0 && c_.sink_logits == SinkLogits::none && c_.cache.shared_pages == 0 &&
               ranks() > 1;
    }

    /// A key has a rank of its own among so many in both 8-bit flavours: FNUZ holds the smaller weights.
    std::int64_t ranks() const {
        const auto code = EdgeCode::make(element_types(c_.data_type, Fp8Flavour::fnuz).q,
                                         c_.qscale == QScale::mx, c_.hdim_q, resolved_scale(c_));
        return code ? code->capacity() : 0;
    }

    /// From `least` to a little more than two tiles: near an edge, very short, or anything.
    std::int64_t length(std::int64_t tile, std::int64_t least) {
        if (draw_.one_in(2))
            return std::max(least, tile * draw_.between(1, tile >= 128 ? 2 : 3) + draw_.between(-1, 1));
        if (draw_.one_in(4)) return draw_.between(least, least + 8);
        return draw_.between(least, 2 * tile + 40);
    }

    void lengths(const Tile& tile) {
        const bool append = api_.stores_keys;
        if (append) c_.append.seqlen_knew = draw_.one_in(8) ? 0 : length(tile.m0, 1);
        const bool array = append || c_.length_form_k == LengthForm::seqlen || api_.lists_pages;
        const bool varied =
            c_.mode == Mode::group || (api_.reads_cache && array) || (!api_.reads_cache && draw_.one_in(3));
        const std::size_t entries = varied ? static_cast<std::size_t>(c_.batch) : 1;
        const bool varied_q = varied && (c_.mode == Mode::group || !api_.reads_cache);
        if (!append) c_.seqlen_q.clear();
        c_.seqlen_k.clear();
        const std::int64_t most_k =
            c_.fill == Fill::edge_last || c_.fill == Fill::edge_first ? ranks() : std::int64_t{1} << 20;
        for (std::size_t b = 0; b < entries; ++b) {
            if (!append && (b == 0 || varied_q))
                c_.seqlen_q.push_back(length(std::min<std::int64_t>(tile.m0, 128), varied_q ? 0 : 1));
            c_.seqlen_k.push_back(draw_.one_in(12) ? 0 : std::min(most_k, length(tile.n0, 1)));
            if (c_.data_type == DataType::mxfp4) c_.seqlen_k.back() += c_.seqlen_k.back() % 2;
        }
        // Longer pages hold no second one of a short sequence.
        if (c_.cache.page_size >= 1024 && draw_.one_in(2) &&
            c_.seqlen_k.front() + c_.cache.page_size <= most_k)
            c_.seqlen_k.front() += c_.cache.page_size;
        if (!append && std::ranges::max(c_.seqlen_q) == 0) c_.seqlen_q.front() = 5;
        if (std::ranges::max(c_.seqlen_k) == 0) c_.seqlen_k.front() = append ? 0 : 8;
        if (c_.cache.shared_pages > 0 && c_.cache.shared_pages * c_.cache.page_size > room_of(c_))
            c_.cache.shared_pages = 0;
        c_.physical_q.clear();
        c_.physical_k.clear();
        if (!api_.reads_cache && varied) padded();
        if (api_.min_seqlen_q && c_.mode == Mode::group)
            c_.min_seqlen_q = draw_.one_in(6) ? draw_.between(1, 20) : 0;
    }

    /// Allocated lengths beyond the logical ones, of which the kernel is told.
    void padded() {
        c_.length_form_q = c_.length_form_k = LengthForm::none;
        if (c_.mode == Mode::group && draw_.one_in(2)) return;
        c_.length_form_q = c_.length_form_k = draw_.any({LengthForm::seqlen, LengthForm::cu_seqlen});
        if (c_.mode == Mode::batch) {
            c_.physical_q = {std::ranges::max(c_.seqlen_q) + draw_.between(0, 20)};
            c_.physical_k = {std::ranges::max(c_.seqlen_k) + 2 * draw_.between(0, 10)};
            return;
        }
        for (std::size_t b = 0; b < c_.seqlen_q.size(); ++b) {
            c_.physical_q.push_back(c_.seqlen_q[b] + draw_.between(0, 20));
            c_.physical_k.push_back(c_.seqlen_k[b] + 2 * draw_.between(0, 10));
        }
    }

    /// Takes `with` where it does not contradict itself.
    void take_if_legal(const Case& with) {
        try {
            check_form(with, with.id);
            c_ = with;
        } catch (const InputError&) {
            return;
        }
    }

    /// More slots of a cache than its keys need.
    void room() {
        if (!draw_.one_in(4)) return;
        Case with = c_;
        with.cache.capacity = std::ranges::max(c_.seqlen_k) + (api_.stores_keys ? c_.append.seqlen_knew : 0) +
                              draw_.between(0, 150);
        take_if_legal(with);
    }

    /// The calls around attention over a cache; many masks and pages allow none.
    void chain() {
        Case with = c_;
        const std::int64_t rows = std::max<std::int64_t>(c_.seqlen_q.front(), 1);
        switch (draw_.between(0, 2)) {
        case 0:
            with.chain.appended = draw_.between(1, std::max<std::int64_t>(1, std::ranges::min(c_.seqlen_k)));
            if (!is_8_bit(c_.data_type) && c_.hdim_q >= 16 && draw_.one_in(2)) {
                with.fill = Fill::normal;
                with.append.rope = draw_.any({Rope::interleaved, Rope::half_rotated});
                with.append.rotary_dim = 16 * draw_.between(1, c_.hdim_q / 16);
            }
            break;
        case 1:
            // Each call is a run of the kernel.
            with.chain.chunk_rows = draw_.between((rows + 4) / 5, rows);
            break;
        default:
            with.chain.last_rows = draw_.between(1, rows);
        }
        take_if_legal(with);
    }

    /// Entries or pages with nothing between them, about 2^31 and 2^32 elements apart, where the case has the tensor.
    void far_apart() {
        if (!draw_.one_in(12)) return;
        Case with = c_;
        with.wide_tensor =
            draw_.any({"q", "k", "v", "o", "lse", "d_o", "dq", "dk", "dv", "o_acc", "k_new", "v_new"});
        with.wide_batch_stride = draw_.any({std::int64_t{1} << 22, (std::int64_t{1} << 31) - 64,
                                            (std::int64_t{1} << 31) + 64, (std::int64_t{1} << 32) + 64});
        try {
            require_runnable(with, {});
        } catch (const InputError&) {
            return;
        }
        take_if_legal(with);
    }

    Draw draw_;
    Case c_;
    const ApiTraits& api_;
};

} // namespace

Case random_case(const Case& plain, std::uint64_t seed, const TilePlanner& planned_tile) {
    return RandomCase(plain, seed).drawn(plain, planned_tile);
}

} // namespace fmha::harness
