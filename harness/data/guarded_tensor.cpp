#include "harness/data/guarded_tensor.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace fmha::harness {
namespace {

/// 4 KiB on x86, up to 64 KiB elsewhere.
std::int64_t page_bytes() {
    static const std::int64_t bytes = sysconf(_SC_PAGESIZE);
    return bytes;
}

std::int64_t round_down(std::int64_t bytes) {
    const std::int64_t page = page_bytes();
    return bytes - (bytes % page + page) % page;
}
std::int64_t round_up(std::int64_t bytes) {
    return round_down(bytes + page_bytes() - 1);
}

/// The eight bytes that repeat the poison of a type; regions start and end at multiples of eight.
std::uint64_t poison_word(ElementType type, Poison poison) {
    std::uint64_t word = poison_code(type, poison);
    for (int bits = element_bits(type); bits < 64; bits *= 2) word |= word << static_cast<unsigned>(bits);
    return word;
}

} // namespace

GuardedTensor::GuardedTensor(const TensorLayout& layout) : layout_(layout) {
    const std::int64_t guard = page_bytes();
    const std::int64_t stretch = element_bytes(layout.type, layout.segment_elements);
    const std::int64_t step = element_bytes(layout.type, layout.segment_stride);
    const std::int64_t payload = layout.lead + (layout.segments - 1) * step + stretch;
    mapping_bytes_ = static_cast<std::size_t>(guard + round_up(payload) + guard);
    mapping_ = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) {
        mapping_ = nullptr;
        throw NoRoomForTensor(
            fmt::format("a tensor of {} bytes does not fit into the address space", payload));
    }
    unsigned char* const page = static_cast<unsigned char*>(mapping_) + guard;
    base_ = page + layout.lead;
    for (std::int64_t s = 0; s < layout.segments; ++s) {
        const std::int64_t begin = layout.lead + s * step, end = begin + stretch;
        const std::int64_t from = round_down(begin - guard), to = round_up(end) + guard;
        if (!regions_.empty() && page + from < regions_.back().end) {
            regions_.back().end = page + to;
            regions_.back().payload_end = end - layout.lead;
        } else {
            regions_.push_back({page + from, page + to, begin - layout.lead, end - layout.lead});
        }
    }
    for (const Region& region : regions_)
        if (mprotect(region.begin, static_cast<std::size_t>(region.end - region.begin),
                     PROT_READ | PROT_WRITE) != 0) {
            munmap(mapping_, mapping_bytes_); // an object that was never complete gets no destructor
            throw NoRoomForTensor(fmt::format("a tensor of {} bytes does not fit into memory", payload));
        }
}

GuardedTensor::~GuardedTensor() {
    if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void GuardedTensor::swap(GuardedTensor& other) noexcept {
    std::swap(layout_, other.layout_);
    std::swap(poison_, other.poison_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapping_bytes_, other.mapping_bytes_);
    std::swap(base_, other.base_);
    std::swap(regions_, other.regions_);
}

TensorView GuardedTensor::view() const {
    const bool has_elements =
        layout_.batches > 0 && layout_.heads > 0 && layout_.rows > 0 && layout_.columns > 0;
    return {has_elements ? base_ : nullptr,
            layout_.type,
            layout_.batch_stride,
            layout_.head_stride,
            layout_.row_stride,
            layout_.col_stride};
}

void GuardedTensor::poison(Poison poison) {
    poison_ = poison;
    const std::uint64_t word = poison_word(layout_.type, poison);
    for (const Region& region : regions_)
        for (unsigned char* at = region.begin; at < region.end; at += sizeof word)
            std::memcpy(at, &word, sizeof word);
}

void GuardedTensor::set_codes(std::int64_t b, std::int64_t h, std::int64_t row,
                              std::span<const std::uint32_t> codes) {
    // Most of the time of filling large tensors passes with such rows.
    if (element_bits(layout_.type) == 16 && layout_.col_stride == 1) {
        unsigned char* to = base_ + 2 * view_offset(b, h, row, 0);
        for (const std::uint32_t code : codes) {
            const auto narrow = static_cast<std::uint16_t>(code);
            std::memcpy(to, &narrow, sizeof narrow);
            to += sizeof narrow;
        }
        return;
    }
    std::int64_t column = 0;
    for (const std::uint32_t code : codes) set_code(b, h, row, column++, code);
}

std::vector<std::span<unsigned char>> GuardedTensor::memory() const {
    std::vector<std::span<unsigned char>> stretches;
    for (const Region& region : regions_) stretches.emplace_back(region.begin, region.end);
    return stretches;
}

StrayByte GuardedTensor::place_of(std::int64_t offset) const {
    const std::int64_t bits = element_bits(layout_.type);
    const std::int64_t element = offset >= 0 ? offset * 8 / bits : -((-offset * 8 + bits - 1) / bits);
    const auto region =
        std::ranges::find_if(regions_, [&](const Region& r) { return base_ + offset < r.end; });
    if (region == regions_.end() || offset >= region->payload_end) return {element, "guard after"};
    return {element, offset < region->payload_begin ? "guard before" : "between logical elements"};
}

std::optional<StrayByte> GuardedTensor::first_stray() const {
    const std::uint64_t word = poison_word(layout_.type, poison_);
    const auto* expected = reinterpret_cast<const unsigned char*>(&word);
    for (const Region& region : regions_)
        for (const unsigned char* at = region.begin; at < region.end; at += sizeof word)
            if (std::memcmp(at, &word, sizeof word) != 0)
                return place_of(std::mismatch(at, at + sizeof word, expected).first - base_);
    return std::nullopt;
}

std::optional<StrayByte> GuardedTensor::first_stray_in_guards() const {
    const std::uint64_t word = poison_word(layout_.type, poison_);
    const auto* expected = reinterpret_cast<const unsigned char*>(&word);
    for (const Region& region : regions_)
        for (const unsigned char* at = region.begin; at < region.end; ++at) {
            const std::int64_t offset = at - base_;
            if (offset >= region.payload_begin && offset < region.payload_end) continue;
            if (*at != expected[static_cast<std::size_t>(at - region.begin) % sizeof word])
                return place_of(offset);
        }
    return std::nullopt;
}

std::optional<StrayByte> GuardedTensor::first_difference(std::span<const unsigned char> image) const {
    const unsigned char* expected = image.data();
    for (const Region& region : regions_) {
        const auto at = std::mismatch(region.begin, region.end, expected);
        if (at.first != region.end) return place_of(at.first - base_);
        expected = at.second;
    }
    return std::nullopt;
}

void GuardedTensor::restore(std::span<const unsigned char> image) {
    const unsigned char* from = image.data();
    for (const Region& region : regions_) {
        const auto bytes = static_cast<std::size_t>(region.end - region.begin);
        std::memcpy(region.begin, from, bytes);
        from += bytes;
    }
}

std::uint64_t GuardedTensor::checksum() const {
    std::uint64_t sum = 0xCBF29CE484222325ULL;
    for (const Region& region : regions_)
        for (const unsigned char* at = region.begin; at < region.end; at += sizeof sum) {
            std::uint64_t word = 0;
            std::memcpy(&word, at, sizeof word);
            sum = (sum ^ word) * 0x100000001B3ULL;
            sum ^= sum >> 32U;
        }
    return sum;
}

} // namespace fmha::harness
