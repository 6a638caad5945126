#pragma once

#include "backward_chain.hpp"
#include "dispatcher/plan/workspace.hpp"
#include "dispatcher/types/args.hpp"
#include "dispatcher/types/numerics.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace fmha::test {

enum class BackwardSinks : std::uint8_t { none, normal, high }; ///< every third head −∞; 30 … 60

struct BackwardSpec {
    std::int64_t batch = 1, heads = 2, kv_heads = 1;
    bool reduce_dk_dv = false; ///< not for kernels that write dQ directly
    std::vector<std::int64_t> seqlen_q{40},
        seqlen_k{70}; ///< physical, of each entry in turn; batch mode: the first
    std::vector<std::int64_t> logical_q{}, logical_k{}; ///< empty = physical
    bool cumulative = false;                            ///< logical lengths as cumulative arrays
    std::int64_t hdim_q = 0, hdim_v = 0;                ///< 0: what the kernel is made for
    MaskArgs mask{};
    float p_drop = 0.2F; ///< of kernels with dropout
    BackwardSinks sinks = BackwardSinks::none;
    std::int64_t bias_rank = 2;
    float slope = 0.25F; ///< of ALiBi, the largest
    bool rows_outermost = false;
    std::int64_t gap = 0; ///< elements between lines, of which no kernel may know
    std::int64_t compute_units = 0;
    std::uint64_t seed = 1;

    std::string text() const;
};

/// Distances from the reference in units of the limits of B.9; a correct chain of kernels stays at or below 1.
struct BackwardVerdict {
    double d = 0.0, dq = 0.0, dk = 0.0, dv = 0.0, dbias = 0.0, d_sink = 0.0;
    double rms = 0.0;        ///< the largest of dQ, dK and dV, in units of the prediction; 0 with fp32
    bool zeros_exact = true; ///< W-12, W-14, and d_sink of heads without a sink
    bool only_outputs_written = true;
    std::string worst;

    bool acceptable() const {
        return d <= 1.0 && dq <= 1.0 && dk <= 1.0 && dv <= 1.0 && dbias <= 1.0 && d_sink <= 1.0 &&
               rms <= 1.25 && zeros_exact && only_outputs_written;
    }
    std::string text() const;
};

/// A backward problem for a chain of kernels, with O and LSE from the reference's forward, and memory for what the kernels
/// make of it. What lies between logical elements is NaN, and so is the workspace before it is prepared.
class BackwardProblem {
  public:
    BackwardProblem(const BackwardChain& chain, const BackwardSpec& spec);
    BackwardProblem(const BackwardProblem&) = delete;
    BackwardProblem& operator=(const BackwardProblem&) = delete;
    ~BackwardProblem() = default;

    const BwdArgs& args() const { return args_; }
    BwdArgs& args() { return args_; }
    /// Fills outputs and workspace with `poison` and prepares the workspace.
    void reset(std::byte poison = std::byte{0xFF});
    /// Calls `launch(kernel, args)` for each stage.
    void run(const std::function<void(const KernelConfig&, const BwdArgs&)>& launch) const;
    BackwardVerdict judge(const Numerics& numerics) const;
    /// Bytes of all outputs with everything around them.
    std::vector<std::byte> outputs() const;
    /// The same as numbers; where nothing is written NaN, unless another poison was chosen.
    std::vector<double> output_values() const;
    const BwdWorkspaceLayout& layout() const { return layout_; }
    std::span<std::byte> workspace();

  private:
    static constexpr std::int64_t guard = 256; ///< elements before and behind a tensor
    static constexpr std::size_t canary = 64;  ///< bytes before and behind the workspace

    struct Memory {
        std::vector<std::byte> bytes;
        TensorView view;
        std::int64_t heads = 0, cols = 0;
        bool keys = false;  ///< lines are keys
        bool pairs = false; ///< columns are keys
    };
    Memory& memory(ElementType type, std::int64_t heads, std::int64_t cols, bool keys, bool pairs = false);
    void lay_out_lengths();
    void draw(std::mt19937_64& engine);
    void lay_out_workspace();
    std::int64_t start(std::int64_t b, bool keys) const;
    bool unwritten_around(const Memory& memory) const;

    BackwardChain chain_;
    BackwardSpec spec_;
    std::vector<std::int64_t> physical_q_, physical_k_, logical_q_, logical_k_;
    std::deque<std::vector<std::int32_t>> ints_;
    std::vector<float> sinks_, slopes_, d_sink_;
    std::deque<Memory> memories_;
    std::vector<Memory*> outputs_;
    BwdWorkspaceLayout layout_;
    std::vector<std::byte> workspace_;
    BwdArgs args_;
    std::byte poison_{0xFF};
};

} // namespace fmha::test
