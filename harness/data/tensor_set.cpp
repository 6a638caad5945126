#include "harness/data/tensor_set.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fmha::harness {
namespace {

/// Bytes of a tensor above which no copy of its content is kept.
constexpr std::int64_t most_kept_bytes = std::int64_t{4} << 20;

std::vector<unsigned char> copy_of(const GuardedTensor& tensor) {
    std::vector<unsigned char> image;
    for (const auto& stretch : tensor.memory()) image.insert(image.end(), stretch.begin(), stretch.end());
    return image;
}

} // namespace

std::int64_t allocated_bytes(const TensorLayout& layout) {
    return element_bytes(layout.type, layout.segments * layout.segment_elements);
}

TensorSet::TensorSet(std::vector<TensorSpec> specs)
    : specs_(std::move(specs)), images_(specs_.size()), filled_(specs_.size()) {
    tensors_.reserve(specs_.size());
    for (const TensorSpec& spec : specs_) tensors_.emplace_back(spec.layout);
    for (GuardedTensor& tensor : tensors_) tensor.poison(Poison::nan);
}

void TensorSet::refill(Poison poison) {
    for (std::size_t n = 0; n < specs_.size(); ++n) {
        tensors_[n].poison(poison);
        if (specs_[n].fill) fill(n, poison);
        if (specs_[n].flow == Flow::in_out) images_[n] = copy_of(tensors_[n]);
    }
}

void TensorSet::fill(std::size_t index, Poison poison) {
    std::vector<unsigned char>& image = filled_[index][static_cast<std::size_t>(poison)];
    if (!image.empty()) {
        tensors_[index].restore(image);
        return;
    }
    specs_[index].fill(tensors_[index]);
    if (allocated_bytes(specs_[index].layout) <= most_kept_bytes) image = copy_of(tensors_[index]);
}

void TensorSet::lay_out(std::string_view name, const TensorLayout& layout) {
    const std::size_t n = index_of(name);
    tensors_[n] = GuardedTensor(layout);
    tensors_[n].poison(Poison::nan);
    specs_[n].layout = layout;
    filled_[n] = {};
}

void TensorSet::fill_with(std::string_view name, std::function<void(GuardedTensor&)> fill) {
    const std::size_t n = index_of(name);
    specs_[n].fill = std::move(fill);
    filled_[n] = {};
}

const GuardedTensor* TensorSet::find(std::string_view name) const {
    const auto found = std::ranges::find(specs_, name, &TensorSpec::name);
    return found == specs_.end() ? nullptr : &tensors_[static_cast<std::size_t>(found - specs_.begin())];
}

std::size_t TensorSet::index_of(std::string_view name) const {
    if (const GuardedTensor* found = find(name)) return static_cast<std::size_t>(found - tensors_.data());
    throw Error(fmt::format("the case has no tensor {}", name));
}

const GuardedTensor& TensorSet::tensor(std::string_view name) const {
    return tensors_[index_of(name)];
}

GuardedTensor& TensorSet::tensor(std::string_view name) {
    return const_cast<GuardedTensor&>(std::as_const(*this).tensor(name));
}

std::vector<MemoryBlock> TensorSet::memory() const {
    std::vector<MemoryBlock> blocks;
    for (std::size_t n = 0; n < specs_.size(); ++n) blocks.push_back({specs_[n].name, tensors_[n].memory()});
    return blocks;
}

std::uint64_t TensorSet::content_digest() const {
    // FNV-1a, fixed for ever, because golden files hold it.
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    constexpr std::uint64_t prime = 0x100000001B3ULL;
    const auto add = [&hash](unsigned byte) { hash = (hash ^ byte) * prime; };
    for (std::size_t n = 0; n < specs_.size(); ++n) {
        if (specs_[n].flow != Flow::in && specs_[n].flow != Flow::in_out) continue;
        for (const char letter : specs_[n].name) add(static_cast<unsigned char>(letter));
        each_cell(specs_[n], [&](auto b, auto h, auto row, auto c) {
            const std::uint32_t code = tensors_[n].code(b, h, row, c);
            add(code & 0xFFU);
            if (code < 0x10000U) {
                // What a narrow code has above it is 0: products alone, which need not wait for each other.
                hash = (hash ^ (code >> 8U)) * (prime * prime * prime);
                return;
            }
            for (unsigned shift = 8; shift < 32; shift += 8) add(code >> shift & 0xFFU);
        });
    }
    return hash;
}

std::uint64_t TensorSet::input_checksum() const {
    return checksum([](const TensorSpec& spec) { return spec.flow == Flow::in; });
}

std::uint64_t TensorSet::checksum(const std::function<bool(const TensorSpec&)>& chosen) const {
    std::uint64_t sum = 0;
    for (std::size_t n = 0; n < specs_.size(); ++n)
        if (chosen(specs_[n])) sum = sum * 0x100000001B3ULL + tensors_[n].checksum();
    return sum;
}

std::optional<StrayByte> TensorSet::stray_in(std::size_t index) {
    const TensorSpec& spec = specs_[index];
    GuardedTensor& tensor = tensors_[index];
    // Elements that a kernel had to write are put aside, so that the rest can be compared with its former content.
    std::int64_t cells = 0;
    spec.logical([&](const RowRun& run) { cells += run.columns - run.first; });
    const ElementType type = spec.layout.type;
    std::vector<unsigned char> written(static_cast<std::size_t>(element_bytes(type, cells)));
    std::int64_t next = 0;
    each_cell(spec, [&](auto b, auto h, auto row, auto c) {
        store_code(written.data(), type, next++, tensor.code(b, h, row, c));
    });
    const auto put_back = [&] {
        next = 0;
        each_cell(spec, [&](auto b, auto h, auto row, auto c) {
            tensor.set_code(b, h, row, c, load_code(written.data(), type, next++));
        });
    };
    std::optional<StrayByte> stray;
    if (spec.flow == Flow::in_out) {
        const std::vector<unsigned char> now = copy_of(tensor);
        tensor.restore(images_[index]);
        put_back();
        stray = tensor.first_difference(now);
        tensor.restore(now);
        return stray;
    }
    each_cell(spec,
              [&](auto b, auto h, auto row, auto c) { tensor.set_code(b, h, row, c, tensor.poison_code()); });
    stray = tensor.first_stray();
    put_back();
    return stray;
}

std::optional<std::string> TensorSet::stray_write() {
    for (std::size_t n = 0; n < specs_.size(); ++n) {
        std::optional<StrayByte> stray;
        if (specs_[n].flow == Flow::scratch) stray = tensors_[n].first_stray_in_guards();
        if (specs_[n].is_output()) stray = stray_in(n);
        if (stray) return fmt::format("{}: element {} ({})", specs_[n].name, stray->element, stray->where);
    }
    return std::nullopt;
}

} // namespace fmha::harness
