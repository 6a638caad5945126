#include "harness/data/cache_roles.hpp"

#include "dispatcher/types/family_traits.hpp"

#include <algorithm>
#include <vector>

namespace fmha::harness::roles {
namespace {

/// Of a cache: K, or V, which may lie column by column.
enum class CacheSide : std::uint8_t { keys, values };

/// Rows of one vector, without padding between them (B-3).
TensorLayout layout_vectors(const Case& c, const Geometry& g, const CachePlaces& places, CacheSide side) {
    const bool values = side == CacheSide::values;
    TensorLayout layout;
    layout.type = values ? g.types.v : g.types.k;
    layout.columns = 128 / element_bits(layout.type);
    layout.rows = places.rows() * (values ? c.hdim_v : c.hdim_q) / layout.columns;
    layout.heads = c.nhead_k;
    layout.batches = places.slots();
    layout.row_stride = layout.columns;
    layout.head_stride = layout.rows * layout.columns + c.stride_padding;
    layout.batch_stride = layout.heads * layout.head_stride + c.stride_padding;
    layout.segment_elements = layout.batches * layout.batch_stride;
    return layout;
}

TensorLayout layout_cached(const Case& c, const Geometry& g, CacheSide side) {
    const bool values = side == CacheSide::values;
    if (is_packed(c)) return values ? layout_v(c, g) : layout_k(c, g);
    const CachePlaces places(c);
    const StrideMaker strides = StrideMaker::of_cache(c);
    const bool seq_major = c.iperm == Layout::bshd;
    if (is_vectorized(c)) return layout_vectors(c, g, places, side);
    if (!values)
        return strides.make(g.types.k, places.slots(), c.nhead_k, places.rows(), c.hdim_q, seq_major);
    return c.v_layout == VLayout::row
               ? strides.make(g.types.v, places.slots(), c.nhead_k, places.rows(), c.hdim_v, seq_major)
               : strides.make_transposed(g.types.v, places.slots(), c.nhead_k, places.rows(), c.hdim_v,
                                         seq_major);
}

/// Calls visit(b, h, j, place) for every key of every entry and KV head.
template <class Visit>
void each_cached_key(const DataSource& source, Visit&& visit) {
    const CachePlaces places(source.c);
    for (std::int64_t b = 0; b < source.c.batch; ++b)
        for (std::int64_t j = 0; j < source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k; ++j) {
            const CachePlaces::Place at = places.of_key(b, j);
            for (std::int64_t h = 0; h < source.c.nhead_k; ++h) visit(b, h, j, at);
        }
}

void visit_cached(const DataSource& source, CacheSide side, const RowVisit& visit) {
    const Case& c = source.c;
    const bool values = side == CacheSide::values;
    const std::int64_t channels = values ? c.hdim_v : c.hdim_q;
    const ElementType type = values ? source.geometry.types.v : source.geometry.types.k;
    // The channels of a slot that follow one another: all of them, or those of a vector.
    const std::int64_t run = !is_vectorized(c) ? channels : values ? 1 : 128 / element_bits(type);
    each_cached_key(source, [&](auto, auto h, auto, const CachePlaces::Place& at) {
        for (std::int64_t channel = 0; channel < channels; channel += run) {
            const PageCell cell = page_cell(c, type, values, at.row, channel);
            visit({at.slot, h, cell.row, cell.col + run, cell.col});
        }
    });
}

/// Where the pages of every entry begin in the list, and where those of the last one end. The first place is nobody's.
std::vector<std::int64_t> listed_pages(const Case& c, const Geometry& g) {
    std::vector<std::int64_t> starts{1};
    for (const EntryGeometry& entry : g.entries)
        starts.push_back(starts.back() + blocks_of(entry.seqlen_k, c.cache.page_size));
    return starts;
}

} // namespace

TensorLayout layout_cached_k(const Case& c, const Geometry& g) {
    return layout_cached(c, g, CacheSide::keys);
}
TensorLayout layout_cached_v(const Case& c, const Geometry& g) {
    return layout_cached(c, g, CacheSide::values);
}

void fill_cached_k(const DataSource& source, GuardedTensor& tensor) {
    if (is_packed(source.c)) return fill_k(source, tensor);
    const CachePlaces places(source.c);
    std::vector<double> row(static_cast<std::size_t>(source.c.hdim_q));
    each_cached_key(source, [&](auto b, auto h, auto j, const CachePlaces::Place& at) {
        const std::int64_t owner = places.owner(b, j);
        const std::int64_t keys = source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k;
        source.fill.k_row(owner, h, j, keys, row);
        if (j >= first_new_key(source.c, keys)) std::ranges::fill(row, 0.0);
        encode_row(source, tensor, stream_k, {owner, h, j, at.slot, at.row}, row);
    });
}
void fill_cached_v(const DataSource& source, GuardedTensor& tensor) {
    if (is_packed(source.c)) return fill_v(source, tensor);
    const CachePlaces places(source.c);
    std::vector<double> row(static_cast<std::size_t>(source.c.hdim_v));
    each_cached_key(source, [&](auto b, auto h, auto j, const CachePlaces::Place& at) {
        const std::int64_t owner = places.owner(b, j);
        source.fill.v_row(owner, h, j, row);
        const std::int64_t keys = source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k;
        if (j >= first_new_key(source.c, keys)) std::ranges::fill(row, 0.0);
        encode_row(source, tensor, stream_v, {owner, h, j, at.slot, at.row}, row);
    });
}
void rows_of_cached_k(const DataSource& source, const RowVisit& visit) {
    is_packed(source.c) ? rows_of_k(source, visit) : visit_cached(source, CacheSide::keys, visit);
}
void rows_of_cached_v(const DataSource& source, const RowVisit& visit) {
    is_packed(source.c) ? rows_of_v(source, visit) : visit_cached(source, CacheSide::values, visit);
}

std::int64_t cached_keys(const DataSource& source, std::int64_t b) {
    const std::int64_t before = source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k;
    return traits_of(source.c.family).stores_keys ? before + source.c.append.seqlen_knew : before;
}

TensorLayout layout_block_table(const Case& c, const Geometry&) {
    return array_layout(ElementType::int32, c.batch, CachePlaces(c).table_stride());
}
void fill_block_table(const DataSource& source, GuardedTensor& tensor) {
    const CachePlaces places(source.c);
    for (std::int64_t b = 0; b < source.c.batch; ++b) {
        const auto [first, end] = places.pages(b, cached_keys(source, b));
        for (std::int64_t n = first; n < end; ++n)
            tensor.set_code(0, 0, b, n, static_cast<std::uint32_t>(places.page(b, n)));
    }
}
void rows_of_block_table(const DataSource& source, const RowVisit& visit) {
    const CachePlaces places(source.c);
    for (std::int64_t b = 0; b < source.c.batch; ++b) {
        const auto [first, end] = places.pages(b, cached_keys(source, b));
        visit({0, 0, b, end, first});
    }
}

TensorLayout layout_entries(const Case& c, const Geometry&) {
    return array_layout(ElementType::int32, c.batch);
}
void rows_of_entries(const DataSource& source, const RowVisit& visit) {
    visit({0, 0, 0, source.c.batch});
}
void fill_cache_batch_idx(const DataSource& source, GuardedTensor& tensor) {
    const CachePlaces places(source.c);
    for (std::int64_t b = 0; b < source.c.batch; ++b)
        tensor.set_code(0, 0, 0, b, static_cast<std::uint32_t>(places.slot(b)));
}
void fill_seqlen_k(const DataSource& source, GuardedTensor& tensor) {
    fill_entries(source, tensor, false, [](const EntryGeometry& entry) { return entry.seqlen_k; });
}

TensorLayout layout_starts(const Case& c, const Geometry&) {
    return array_layout(ElementType::int32, c.batch + 1);
}
void rows_of_starts(const DataSource& source, const RowVisit& visit) {
    visit({0, 0, 0, source.c.batch + 1});
}
void fill_cached_lengths(const DataSource& source, GuardedTensor& tensor) {
    for (std::int64_t b = 0; b < source.c.batch; ++b)
        tensor.set_code(0, 0, 0, b,
                        static_cast<std::uint32_t>(first_new_key(
                            source.c, source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k)));
}

TensorLayout layout_call_lengths(const Case& c, const Geometry&) {
    return array_layout(ElementType::int32, call_lengths_count(c));
}
void fill_call_lengths(const DataSource& source, GuardedTensor& tensor) {
    const Case& c = source.c;
    std::int64_t at = 0;
    for (const RowsOfCall& call : calls_of(c)) {
        for (std::int64_t b = 0; b < c.batch; ++b)
            tensor.set_code(0, 0, 0, at++, static_cast<std::uint32_t>(call.count));
        for (std::int64_t b = 0; b < c.batch; ++b) {
            const std::int64_t keys = source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k;
            const std::int64_t behind =
                rows_count_from_last_key(c) ? c.seqlen_q.front() - call.first - call.count : 0;
            tensor.set_code(0, 0, 0, at++,
                            static_cast<std::uint32_t>(std::max<std::int64_t>(0, keys - behind)));
        }
    }
}
void rows_of_call_lengths(const DataSource& source, const RowVisit& visit) {
    visit({0, 0, 0, call_lengths_count(source.c)});
}

void fill_seqstart_q(const DataSource& source, GuardedTensor& tensor) {
    fill_entries(source, tensor, true, [](const EntryGeometry& entry) { return entry.physical_q; });
}
void fill_seqstart_k(const DataSource& source, GuardedTensor& tensor) {
    if (!source.c.cache.gappy)
        return fill_entries(source, tensor, true,
                            [](const EntryGeometry& entry) { return entry.physical_k; });
    const CachePlaces places(source.c);
    for (std::int64_t b = 0; b <= source.c.batch; ++b)
        tensor.set_code(0, 0, 0, b, static_cast<std::uint32_t>(places.start(b)));
}

TensorLayout layout_kv_page_indices(const Case& c, const Geometry& g) {
    return array_layout(ElementType::int32, listed_pages(c, g).back() + 1);
}
void fill_kv_page_indices(const DataSource& source, GuardedTensor& tensor) {
    const CachePlaces places(source.c);
    const auto starts = listed_pages(source.c, source.geometry);
    for (std::size_t b = 0; b + 1 < starts.size(); ++b)
        for (std::int64_t n = starts[b]; n < starts[b + 1]; ++n)
            tensor.set_code(
                0, 0, 0, n,
                static_cast<std::uint32_t>(places.page(static_cast<std::int64_t>(b), n - starts[b])));
}
void rows_of_kv_page_indices(const DataSource& source, const RowVisit& visit) {
    const auto starts = listed_pages(source.c, source.geometry);
    visit({0, 0, 0, starts.back(), starts.front()});
}
void fill_kv_indptr(const DataSource& source, GuardedTensor& tensor) {
    std::int64_t n = 0;
    for (const std::int64_t start : listed_pages(source.c, source.geometry))
        tensor.set_code(0, 0, 0, n++, static_cast<std::uint32_t>(start));
}
void fill_kv_last_page_lens(const DataSource& source, GuardedTensor& tensor) {
    const std::int64_t size = source.c.cache.page_size;
    for (std::int64_t b = 0; b < source.c.batch; ++b) {
        const std::int64_t keys = source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k;
        if (keys > 0) tensor.set_code(0, 0, 0, b, static_cast<std::uint32_t>((keys - 1) % size + 1));
    }
}
void rows_of_kv_last_page_lens(const DataSource& source, const RowVisit& visit) {
    for (std::int64_t b = 0; b < source.c.batch; ++b)
        if (source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k > 0) visit({0, 0, 0, b + 1, b});
}

void bind_place(const Case& c, KvPlace& place) {
    place.is_gappy = c.cache.gappy;
    place.layout = c.cache.kv_layout;
    place.lookup = c.cache.kv_lookup;
    if (is_packed(c)) return;
    const CachePlaces places(c);
    place.page_count = places.slots();
    if (!is_paged(c)) return;
    place.page_size = c.cache.page_size;
    if (has_block_table(c)) place.block_table_stride = places.table_stride();
}

} // namespace fmha::harness::roles
