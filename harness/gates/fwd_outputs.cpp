#include "harness/gates/fwd_outputs.hpp"

#include "harness/data/storage.hpp"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

std::string place(const reference::RowId& row) {
    return fmt::format("b{} h{} row {}", row.b, row.h, row.i);
}

} // namespace

FwdOutputs::FwdOutputs(const FwdArgs& args)
    : o_type_(args.o.type), columns_(args.shape.hdim_v), nhead_(args.shape.nhead_q),
      row_ids_(reference::all_rows(args)) {
    std::int64_t rows = 0, bytes = 0;
    for (std::int64_t b = 0; b < args.shape.batch; ++b) {
        const auto lengths = reference::entry_lengths(args, b);
        first_row_.push_back(rows);
        entry_rows_.push_back(lengths.seqlen_q);
        first_byte_.push_back(bytes);
        entry_keys_.push_back(lengths.seqlen_k);
        rows += lengths.seqlen_q * nhead_;
        bytes += lengths.seqlen_q * nhead_ * lengths.seqlen_k;
    }
    o_.resize(static_cast<std::size_t>(element_bytes(o_type_, rows * columns_)));
    if (args.lse.present()) lse_.resize(static_cast<std::size_t>(rows));
    if (args.randval.present()) randval_.resize(static_cast<std::size_t>(bytes));

    std::int64_t index = 0;
    for (const auto& id : row_ids_) {
        const auto entry = static_cast<std::size_t>(id.b);
        const std::int64_t start = args.shape.mode == Mode::group ? args.lengths.seqstart_q[id.b] : 0;
        const std::int64_t stored = start + id.i;
        for (std::int64_t c = 0; c < columns_; ++c)
            store_code(o_.data(), o_type_, index * columns_ + c,
                       load_code(args.o.data, o_type_, args.o.offset(id.b, id.h, stored, c)));
        if (args.lse.present())
            lse_[static_cast<std::size_t>(index)] = std::bit_cast<float>(
                load_code(args.lse.data, ElementType::fp32, args.lse.offset(id.b, id.h, stored, 0)));
        if (args.randval.present()) {
            const std::int64_t keys = entry_keys_[entry];
            auto* bytes_of_row = randval_.data() + first_byte_[entry] + (index - first_row_[entry]) * keys;
            for (std::int64_t j = 0; j < keys; ++j)
                if (reference::key_visible(args, id.b, id.i, j))
                    bytes_of_row[j] = static_cast<std::uint8_t>(load_code(
                        args.randval.data, ElementType::uint8, args.randval.offset(id.b, id.h, stored, j)));
        }
        ++index;
    }
}

std::int64_t FwdOutputs::row_index(const reference::RowId& row) const {
    const auto entry = static_cast<std::size_t>(row.b);
    return first_row_[entry] + row.h * entry_rows_[entry] + row.i;
}

std::uint32_t FwdOutputs::o_code(std::int64_t row, std::int64_t c) const {
    return load_code(o_.data(), o_type_, row * columns_ + c);
}

std::uint8_t FwdOutputs::random_byte(std::int64_t row, std::int64_t j) const {
    const auto entry = static_cast<std::size_t>(row_ids_[static_cast<std::size_t>(row)].b);
    return randval_[static_cast<std::size_t>(first_byte_[entry] +
                                             (row - first_row_[entry]) * entry_keys_[entry] + j)];
}

bool FwdOutputs::all_zero() const {
    const std::uint32_t sign = 1U << static_cast<unsigned>(element_bits(o_type_) - 1);
    // The only negative zero that is not one: FNUZ uses its code for NaN.
    const bool fnuz = o_type_ == ElementType::fp8_fnuz || o_type_ == ElementType::bf8_fnuz;
    for (std::int64_t e = 0; e < rows() * columns_; ++e) {
        const std::uint32_t code = load_code(o_.data(), o_type_, e);
        if (code != 0 && (code != sign || fnuz)) return false;
    }
    return true;
}

std::string FwdOutputs::first_difference(const FwdOutputs& other) const {
    if (o_ == other.o_ && randval_ == other.randval_ && lse_.size() == other.lse_.size() &&
        (lse_.empty() || std::memcmp(lse_.data(), other.lse_.data(), lse_.size() * sizeof(float)) == 0))
        return {};
    for (std::int64_t row = 0; row < rows(); ++row) {
        const auto& id = row_ids_[static_cast<std::size_t>(row)];
        for (std::int64_t c = 0; c < columns_; ++c)
            if (o_code(row, c) != other.o_code(row, c))
                return fmt::format("o at {} column {}: {:#x} and {:#x}", place(id), c, o_code(row, c),
                                   other.o_code(row, c));
        if (has_lse() &&
            std::bit_cast<std::uint32_t>(lse(row)) != std::bit_cast<std::uint32_t>(other.lse(row)))
            return fmt::format("lse at {}: {} and {}", place(id), lse(row), other.lse(row));
        const std::int64_t keys = has_randval() ? entry_keys_[static_cast<std::size_t>(id.b)] : 0;
        for (std::int64_t j = 0; j < keys; ++j)
            if (random_byte(row, j) != other.random_byte(row, j))
                return fmt::format("randval at {} key {}: {} and {}", place(id), j, random_byte(row, j),
                                   other.random_byte(row, j));
    }
    return "shapes differ";
}

} // namespace fmha::harness
