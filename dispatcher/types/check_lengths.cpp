#include "dispatcher/types/check_lengths.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace fmha {
namespace {

/// The queries or the keys of a call.
struct Side {
    const std::int32_t* seqstart;
    const std::int32_t* seqlen;
    const std::int32_t* cu_seqlen;
    const char *seqstart_name, *seqlen_name, *cu_seqlen_name;
    std::int64_t allocated; ///< of every entry of a batch
};

Side queries_of(const Shape& shape, const LengthArrays& lengths) {
    return {lengths.seqstart_q, lengths.seqlen_q, lengths.cu_seqlen_q, "seqstart_q",
            "seqlen_q",         "cu_seqlen_q",    shape.seqlen_q};
}

Side keys_of(const Shape& shape, const LengthArrays& lengths) {
    return {lengths.seqstart_k, lengths.seqlen_k, lengths.cu_seqlen_k, "seqstart_k",
            "seqlen_k",         "cu_seqlen_k",    shape.seqlen_k};
}

/// Between two offsets.
std::int64_t distance(const char* rule, const char* field, const std::int32_t* offsets, std::int64_t b) {
    const std::int64_t begin = offsets[b], end = offsets[b + 1];
    if (begin < 0 || end < begin)
        throw ProblemError(
            rule, field, end,
            fmt::format("{} goes from {} to {} at entry {}; offsets are 0 or more and do not decrease", field,
                        begin, end, b));
    return end - begin;
}

} // namespace

std::int64_t packed_length(const std::int32_t* seqstart, const char* field, std::int64_t b) {
    if (b == 0 && seqstart[0] != 0)
        throw ProblemError("N-2", field, seqstart[0],
                           fmt::format("{} begins with {}; the first sequence of a packed batch begins at 0",
                                       field, seqstart[0]));
    return distance("N-2", field, seqstart, b);
}

std::vector<std::int64_t> packed_lengths(std::span<const std::int32_t> seqstart, const char* field) {
    std::vector<std::int64_t> lengths;
    for (std::size_t b = 0; b + 1 < seqstart.size(); ++b)
        lengths.push_back(packed_length(seqstart.data(), field, static_cast<std::int64_t>(b)));
    return lengths;
}

namespace {

/// The logical length of an entry (N-3).
std::int64_t length_of(const Side& side, Mode mode, std::int64_t b) {
    const std::int64_t room =
        mode == Mode::group ? packed_length(side.seqstart, side.seqstart_name, b) : side.allocated;
    if (side.seqlen == nullptr && side.cu_seqlen == nullptr) return room;
    const char* field = side.seqlen != nullptr ? side.seqlen_name : side.cu_seqlen_name;
    const std::int64_t length =
        side.seqlen != nullptr ? side.seqlen[b] : distance("N-3", field, side.cu_seqlen, b);
    if (length < 0 || length > room)
        throw ProblemError("N-1", field, length,
                           fmt::format("{} of entry {} is {}; allowed: 0 to {}, the rows that are allocated",
                                       field, b, length, room));
    return length;
}

} // namespace

std::int64_t query_length(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
    return length_of(queries_of(shape, lengths), shape.mode, b);
}

std::int64_t key_length(const Shape& shape, const LengthArrays& lengths, std::int64_t b) {
    return length_of(keys_of(shape, lengths), shape.mode, b);
}

void check_query_lengths(const Shape& shape, const LengthArrays& lengths) {
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const std::int64_t length = query_length(shape, lengths, b);
        if (shape.mode == Mode::group && length > shape.max_seqlen_q)
            throw ProblemError(
                "N-2", "max_seqlen_q", shape.max_seqlen_q,
                fmt::format("max_seqlen_q is {}, entry {} has {} queries", shape.max_seqlen_q, b, length));
    }
}

void check_lengths(const Shape& shape, const LengthArrays& lengths) {
    check_query_lengths(shape, lengths);
    for (std::int64_t b = 0; b < shape.batch; ++b) static_cast<void>(key_length(shape, lengths, b));
}

} // namespace fmha
