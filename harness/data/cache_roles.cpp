#include "harness/data/cache_roles.hpp"

#include <vector>

namespace fmha::harness::roles {
namespace {

/// `values`: of V, which may lie column by column.
TensorLayout layout_cached(const Case& c, const Geometry& g, bool values) {
    if (is_packed(c)) return values ? layout_v(c, g) : layout_k(c, g);
    const CachePlaces places(c);
    const StrideMaker strides = StrideMaker::of_cache(c);
    const bool seq_major = c.iperm == Layout::bshd;
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

void visit_cached(const DataSource& source, std::int64_t columns, const RowVisit& visit) {
    each_cached_key(source, [&](auto, auto h, auto, const CachePlaces::Place& at) {
        visit({at.slot, h, at.row, columns});
    });
}

} // namespace

TensorLayout layout_cached_k(const Case& c, const Geometry& g) {
    return layout_cached(c, g, false);
}
TensorLayout layout_cached_v(const Case& c, const Geometry& g) {
    return layout_cached(c, g, true);
}

void fill_cached_k(const DataSource& source, GuardedTensor& tensor) {
    if (is_packed(source.c)) return fill_k(source, tensor);
    const CachePlaces places(source.c);
    std::vector<double> row(static_cast<std::size_t>(source.c.hdim_q));
    each_cached_key(source, [&](auto b, auto h, auto j, const CachePlaces::Place& at) {
        const std::int64_t owner = places.owner(b, j);
        source.fill.k_row(owner, h, j, source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k, row);
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
        encode_row(source, tensor, stream_v, {owner, h, j, at.slot, at.row}, row);
    });
}
void rows_of_cached_k(const DataSource& source, const RowVisit& visit) {
    is_packed(source.c) ? rows_of_k(source, visit) : visit_cached(source, source.c.hdim_q, visit);
}
void rows_of_cached_v(const DataSource& source, const RowVisit& visit) {
    is_packed(source.c) ? rows_of_v(source, visit) : visit_cached(source, source.c.hdim_v, visit);
}

std::int64_t cached_keys(const DataSource& source, std::int64_t b) {
    const std::int64_t before = source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k;
    return source.c.family == ApiFamily::fwd_appendkv ? before + source.c.append.seqlen_knew : before;
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
    fill_entries(source, tensor, false, [](const Entry& entry) { return entry.seqlen_k; });
}

TensorLayout layout_starts(const Case& c, const Geometry&) {
    return array_layout(ElementType::int32, c.batch + 1);
}
void rows_of_starts(const DataSource& source, const RowVisit& visit) {
    visit({0, 0, 0, source.c.batch + 1});
}
void fill_seqstart_q(const DataSource& source, GuardedTensor& tensor) {
    fill_entries(source, tensor, true, [](const Entry& entry) { return entry.physical_q; });
}
void fill_seqstart_k(const DataSource& source, GuardedTensor& tensor) {
    if (!source.c.cache.gappy)
        return fill_entries(source, tensor, true, [](const Entry& entry) { return entry.physical_k; });
    const CachePlaces places(source.c);
    for (std::int64_t b = 0; b <= source.c.batch; ++b)
        tensor.set_code(0, 0, 0, b, static_cast<std::uint32_t>(places.start(b)));
}

void bind_place(const Case& c, KvPlace& place) {
    place.is_gappy = c.cache.gappy;
    if (!is_paged(c)) return;
    const CachePlaces places(c);
    place.page_size = c.cache.page_size;
    place.page_count = places.slots();
    place.block_table_stride = places.table_stride();
}

} // namespace fmha::harness::roles
