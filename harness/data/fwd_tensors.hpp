#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/fwd_fill.hpp"
#include "harness/data/fwd_layout.hpp"
#include "harness/data/guarded_tensor.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// Memory that a kernel may reach through one pointer: stretches in ascending order, with nothing in between.
struct MemoryBlock {
    std::string_view name;
    std::vector<std::span<unsigned char>> stretches;
    bool tensor = true; ///< false: a small array that kernels only read

    const unsigned char* begin() const { return stretches.front().data(); }
    const unsigned char* end() const { return stretches.back().data() + stretches.back().size(); }
};

/// All memory of one forward case in host memory: tensors with guards, length arrays, small parameters.
class FwdTensors {
  public:
    /// Lays out, poisons and fills. `c` must outlive this. Throws InputError for a case that cannot be laid
    /// out.
    FwdTensors(const FwdCase& c, Fp8Flavour flavour);

    /// Poisons everything, guards and outputs included, and fills the logical inputs anew: the same case with
    /// another content of all memory that must not matter (L-5).
    void refill(Poison poison);

    /// Valid until this is moved or destroyed.
    FwdArgs args() const;

    /// Every present tensor and array, whole: what another memory must hold for a kernel to run there. Valid as long as
    /// `args`.
    std::vector<MemoryBlock> memory();

    const FwdCase& fwd_case() const { return *case_; }
    const FwdLayout& layout() const { return layout_; }
    const FwdFill& fill() const { return fill_; }
    const GuardedTensor& o() const { return o_; }
    const GuardedTensor& lse() const { return lse_; }
    const GuardedTensor& randval() const { return randval_; }

    /// For tensors that come from files (`fmha check`): "q", "k", "v", "o", "lse", "bias", "randval",
    /// "q_descale", "k_descale" or "v_descale"; absent ones are not present().
    GuardedTensor& tensor(const std::string& name);
    std::vector<float>& alibi_slopes() { return alibi_slopes_; }
    std::vector<float>& sink_logits() { return sink_logits_; }

    /// Checksum over all inputs, guards included.
    std::uint64_t input_checksum() const;

    /// Gives the logical elements of every output their poison back and returns what else was written:
    /// "o: element 513 (guard after)". nullopt when nothing outside the logical outputs changed (B.6.5). The
    /// outputs' contents are gone afterwards.
    std::optional<std::string> stray_write();

  private:
    void fill_inputs();
    void fill_descales();
    void fill_arrays();

    struct NamedTensor {
        std::string_view name;
        GuardedTensor* tensor;
    };
    std::array<NamedTensor, 10> tensors();

    const FwdCase* case_;
    FwdLayout layout_;
    FwdFill fill_;
    GuardedTensor q_, k_, v_, o_, lse_, bias_, randval_, q_descale_, k_descale_, v_descale_;
    std::vector<std::int32_t> seqstart_q_, seqstart_k_, seqlen_q_, seqlen_k_, cu_seqlen_q_, cu_seqlen_k_;
    std::vector<std::int32_t> block_start_q_, block_start_k_;
    std::vector<float> alibi_slopes_, sink_logits_;
};

/// Default ALiBi slopes of n heads.
std::vector<float> default_alibi_slopes(std::int64_t heads);

} // namespace fmha::harness
