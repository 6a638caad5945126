#pragma once

#include "harness/data/guarded_tensor.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// The use of a tensor by a kernel: it reads it, writes it, updates it in place (caches, rotated queries), or uses it as
/// memory of its own (workspaces).
enum class Flow : std::uint8_t { in, out, in_out, scratch };

/// The first `columns` elements of a stored row, without those before `first`.
struct RowRun {
    std::int64_t b = 0, h = 0, row = 0, columns = 0, first = 0;
};
using RowVisit = std::function<void(const RowRun&)>;

/// One tensor or small array of a case in words: its memory, its content, and which of its cells belong to the problem.
struct TensorSpec {
    std::string name; ///< the .npy file, the device's buffer, the verdict, the message
    Flow flow = Flow::in;
    TensorLayout layout;
    /// Writes the logical content into poisoned memory; null: the tensor stays poison.
    std::function<void(GuardedTensor&)> fill;
    /// Visits the cells that a kernel may read (in) or has to write (out, in_out); not read for scratch, all of which a
    /// kernel may write.
    std::function<void(const RowVisit&)> logical;
    /// Other programs bring or take it as a file; lengths and the like follow from the case.
    bool exchanged = true;

    /// A kernel has to write its logical cells.
    bool is_output() const { return flow == Flow::out || flow == Flow::in_out; }
};

/// Calls visit(b, h, row, column) for each cell that belongs to the problem.
template <class Visit>
void each_cell(const TensorSpec& spec, Visit&& visit) {
    spec.logical([&](const RowRun& run) {
        for (std::int64_t c = run.first; c < run.columns; ++c) visit(run.b, run.h, run.row, c);
    });
}

/// Bytes that the files of a case take in memory, beside its tensors.
struct FileBytes {
    std::int64_t largest = 0;   ///< one while it is read or written
    std::int64_t reference = 0; ///< all outputs as a reference computes them, float64
    std::int64_t updated = 0;   ///< what tensors that are updated in place held before
};

/// Memory that a kernel may reach through one pointer: stretches in ascending order, with nothing in between.
struct MemoryBlock {
    std::string_view name;
    std::vector<std::span<unsigned char>> stretches;

    const unsigned char* begin() const { return stretches.front().data(); }
    const unsigned char* end() const { return stretches.back().data() + stretches.back().size(); }
};

/// Bytes that the tensor's stretches take, without guards.
std::int64_t allocated_bytes(const TensorLayout& layout);

/// All memory of a case in host memory, one guarded tensor a role. Knows no family.
class TensorSet {
  public:
    /// Allocates, and leaves everything poisoned and unfilled. Throws NoRoomForTensor.
    explicit TensorSet(std::vector<TensorSpec> specs);

    /// Poisons everything, guards and outputs included, and fills the logical inputs anew: the same case with another
    /// content of all memory that must not matter (L-5).
    void refill(Poison poison);

    /// Gives the tensor `name` other memory, of another layout, or another content from the next refill on. Throws Error for a
    /// name that the case has not, and NoRoomForTensor.
    void lay_out(std::string_view name, const TensorLayout& layout);
    void fill_with(std::string_view name, std::function<void(GuardedTensor&)> fill);

    bool has(std::string_view name) const { return find(name) != nullptr; }
    /// Throws Error for a name that the case has not.
    GuardedTensor& tensor(std::string_view name);
    const GuardedTensor& tensor(std::string_view name) const;
    std::span<const TensorSpec> specs() const { return specs_; }

    /// Every tensor and array, whole, as another memory must hold them for a kernel to run there. Valid until the set is moved
    /// or destroyed.
    std::vector<MemoryBlock> memory() const;

    /// Digest of the logical content of all inputs, without strides, padding and memory: the bytes of a case.
    std::uint64_t content_digest() const;

    /// Checksum over all inputs, guards included.
    std::uint64_t input_checksum() const;
    /// Checksum over the tensors that `chosen` names, guards included.
    std::uint64_t checksum(const std::function<bool(const TensorSpec&)>& chosen) const;

    /// The first byte that was written beside the logical elements of outputs and of tensors that are updated in place, or into the guards
    /// of scratch memory: "o: element 513 (guard after)". nullopt when nothing was (B.6.5). Leaves all contents as they are.
    std::optional<std::string> stray_write();

  private:
    /// All memory of a tensor as it was filled, for each poison.
    using Images = std::array<std::vector<unsigned char>, 2>;

    void fill(std::size_t index, Poison poison);
    const GuardedTensor* find(std::string_view name) const;
    std::size_t index_of(std::string_view name) const;
    std::optional<StrayByte> stray_in(std::size_t index);

    std::vector<TensorSpec> specs_;
    std::vector<GuardedTensor> tensors_;             ///< by position in specs_
    std::vector<std::vector<unsigned char>> images_; ///< of in_out tensors: all memory after the last refill
    std::vector<Images> filled_; ///< of small tensors, because values take longer to make than to copy
};

} // namespace fmha::harness
