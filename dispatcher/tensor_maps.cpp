#include "dispatcher/tensor_maps.hpp"

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/shared_memory.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fmha {
namespace {

// The limits of CUDA's driver, and the extents that kernels count with (kernels/targets/hip/ws_launch.hpp).
constexpr std::int64_t end_of_strides = std::int64_t{1} << 40, end_of_row_strides = std::int64_t{1} << 34;
constexpr std::int64_t most_extent = std::int64_t{1} << 32, most_places = (std::int64_t{1} << 31) - 2;

/// `entries` are pages where rows lie in pages, and none where sequences are packed.
struct Mapped {
    const TensorView& view;
    std::int64_t entries, heads, rows, channels;
    bool by_sequence; ///< a map that ends with a sequence instead of the slot of an entry
};

/// Steps from the first to the last of `extent`, `stride` apart, in units of `unit`; more than any kernel counts when they are too many.
std::int64_t steps(std::int64_t extent, std::int64_t stride, std::int64_t unit) {
    std::int64_t count = 0;
    const bool fits = !__builtin_mul_overflow(std::max<std::int64_t>(extent - 1, 0), stride / unit, &count);
    return fits ? std::min(count, most_places + 1) : most_places + 1;
}

bool map_has(const Mapped& tensor) {
    const auto& [view, entries, heads, rows, channels, by_sequence] = tensor;
    if (!view.present() || (entries > 0 && rows <= 0)) return true; // and is not copied
    const std::int64_t bytes = std::max<std::int64_t>(1, element_bits(view.type) / 8);
    const auto below = [bytes](std::int64_t stride, std::int64_t end) { return stride < end / bytes; };
    if (view.col_stride != 1 && channels > 1) return false;
    const std::int64_t of_entry = entries > 1 ? view.batch_stride : 0,
                       of_head = heads > 1 ? view.head_stride : 0;
    if (!by_sequence && !shares_memory(view, entries, heads)) {
        const auto fits = [&](std::int64_t extent, std::int64_t stride) {
            return extent <= most_extent && (extent <= 1 || (stride > 0 && below(stride, end_of_strides)));
        };
        return fits(rows, view.row_stride) && fits(heads, view.head_stride) &&
               fits(entries, view.batch_stride);
    }
    if (view.row_stride <= 0 || !below(view.row_stride, end_of_row_strides)) return false;
    constexpr std::int64_t end_of_addresses = std::int64_t{1} << 62;
    for (const std::int64_t stride : {of_entry, of_head})
        if (stride < 0 || !below(stride, end_of_addresses)) return false;
    const std::int64_t common = std::gcd(of_entry, of_head);
    return common == 0 || (below(common, end_of_strides) &&
                           steps(entries, of_entry, common) + steps(heads, of_head, common) <= most_places);
}

template <class Args>
bool maps_have(const Args& args, VLayout v_layout, std::int64_t entries, std::int64_t rows,
               bool by_sequence) {
    const Shape& shape = args.shape;
    if (shape.batch <= 0) return true;
    const bool group = shape.mode == Mode::group;
    const auto keys = [&](const TensorView& view, std::int64_t channels) {
        return map_has({view, entries, shape.nhead_k, rows, channels, by_sequence});
    };
    // V by column is mapped in batch mode alone: its lines are channels, which end where the tensor does.
    const auto values = [&] {
        if (v_layout == VLayout::row) return keys(args.v, shape.hdim_v);
        if (group) return true;
        TensorView by_channel = args.v;
        std::swap(by_channel.row_stride, by_channel.col_stride);
        return !by_sequence && !shares_memory(by_channel, entries, shape.nhead_k) &&
               map_has({by_channel, entries, shape.nhead_k, shape.hdim_v, rows, by_sequence});
    };
    return map_has({args.q, group ? 0 : shape.batch, shape.nhead_q, group ? 0 : shape.seqlen_q, shape.hdim_q,
                    group}) &&
           keys(args.k, shape.hdim_q) && values();
}

} // namespace

bool tensor_maps_have(const FwdArgs& args, VLayout v_layout) {
    const bool group = args.shape.mode == Mode::group;
    const bool ragged = group || args.lengths.seqlen_k != nullptr || args.lengths.cu_seqlen_k != nullptr;
    return maps_have(args, v_layout, group ? 0 : args.shape.batch, group ? 0 : args.shape.seqlen_k, ragged);
}

bool tensor_maps_have(const PagedKvArgs& args, VLayout v_layout) {
    return maps_have(args, v_layout, args.place.page_count, args.place.page_size, true);
}

bool tensor_maps_have(const BatchPrefillArgs& args, VLayout v_layout) {
    BatchPrefillArgs mapped = args;
    if (args.place.layout == KvLayout::vectorized) mapped.k = mapped.v = {};
    return maps_have(mapped, v_layout, args.place.page_count, args.place.page_size, true);
}

} // namespace fmha
