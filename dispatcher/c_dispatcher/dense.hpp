#pragma once

#include <fmha/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

/// Dense tensors of the dispatcher's C functions, and copies of them as packed sequences and as pages.
namespace fmha::c_dispatcher {

using Bytes = std::vector<std::byte>;

/// Extents of a tensor [batch, heads, positions, channels], or with `heads_first` false [batch, positions, heads, channels].
struct Dense {
    std::int64_t batch, heads, positions, channels, element;
    bool heads_first = true;

    std::int64_t bytes() const { return batch * heads * positions * channels * element; }
    std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t s) const {
        return (heads_first ? (b * heads + h) * positions + s : (b * positions + s) * heads + h) * channels *
               element;
    }
    fmha_tensor view(const void* data) const {
        const std::int64_t inner = heads_first ? channels : heads * channels;
        return {const_cast<void*>(data), heads * positions * channels,
                heads_first ? positions * channels : channels, inner, 1};
    }
    /// Of a packed copy.
    fmha_tensor packed_view(void* data) const { return {data, 0, channels, heads * channels, 1}; }
};

/// [batch, positions, heads, channels], which is a packed batch.
inline Bytes packed(const void* data, const Dense& from) {
    if (data == nullptr) throw std::invalid_argument("a pointer is NULL");
    Bytes to(static_cast<std::size_t>(from.bytes()));
    const auto row = static_cast<std::size_t>(from.channels * from.element);
    Dense there = from;
    there.heads_first = false;
    for (std::int64_t b = 0; b < from.batch; ++b)
        for (std::int64_t h = 0; h < from.heads; ++h)
            for (std::int64_t s = 0; s < from.positions; ++s)
                std::memcpy(to.data() + there.at(b, h, s),
                            static_cast<const std::byte*>(data) + from.at(b, h, s), row);
    return to;
}

/// The other way round.
inline void unpack(const Bytes& from, void* data, const Dense& to) {
    if (data == nullptr) throw std::invalid_argument("a pointer is NULL");
    const auto row = static_cast<std::size_t>(to.channels * to.element);
    Dense there = to;
    there.heads_first = false;
    for (std::int64_t b = 0; b < to.batch; ++b)
        for (std::int64_t h = 0; h < to.heads; ++h)
            for (std::int64_t s = 0; s < to.positions; ++s)
                std::memcpy(static_cast<std::byte*>(data) + to.at(b, h, s), from.data() + there.at(b, h, s),
                            row);
}

/// Where sequences of one length begin, and where the last one ends.
inline std::vector<std::int32_t> evenly(std::int64_t count, std::int64_t length) {
    std::vector<std::int32_t> starts;
    for (std::int64_t n = 0; n <= count; ++n) starts.push_back(static_cast<std::int32_t>(n * length));
    return starts;
}

/// K or V as pages [page, heads, keys a page, channels], each entry's one after another, the rest of the last ones 0. `vector` above 0
/// is the vectorized layout of rule B-3 with vectors of so many elements: along the channels of K, along the keys of V.
inline Bytes pages(const void* data, const Dense& from, std::int64_t page_size, std::int64_t vector,
                   bool of_values) {
    if (data == nullptr) throw std::invalid_argument("a pointer is NULL");
    const std::int64_t each = (from.positions + page_size - 1) / page_size;
    const std::int64_t page = from.heads * page_size * from.channels;
    Bytes to(static_cast<std::size_t>(from.batch * each * page * from.element));
    for (std::int64_t b = 0; b < from.batch; ++b)
        for (std::int64_t h = 0; h < from.heads; ++h)
            for (std::int64_t s = 0; s < from.positions; ++s)
                for (std::int64_t c = 0; c < from.channels; ++c) {
                    const std::int64_t key = s % page_size;
                    std::int64_t at = key * from.channels + c;
                    if (vector > 0)
                        at = of_values ? (key / vector * from.channels + c) * vector + key % vector
                                       : (c / vector * page_size + key) * vector + c % vector;
                    at += (b * each + s / page_size) * page + h * page_size * from.channels;
                    std::memcpy(to.data() + at * from.element,
                                static_cast<const std::byte*>(data) + from.at(b, h, s) + c * from.element,
                                static_cast<std::size_t>(from.element));
                }
    return to;
}

} // namespace fmha::c_dispatcher
