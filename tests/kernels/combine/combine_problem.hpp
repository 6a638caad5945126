#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/numerics.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fmha::test {

/// How the LSEs of the splits of a row lie.
enum class Logs : std::uint8_t {
    normal,
    equal,
    far,        ///< 1500 away from 0
    wide,       ///< hundreds apart
    some_empty, ///< two in five −∞, and one row in five has nothing else
    all_empty,
    last_only, ///< all but the last −∞
};

enum class Sinks : std::uint8_t {
    none,
    normal, ///< every third head −∞
    above,  ///< 20 above every LSE of `normal`
    absent, ///< −∞ for every head
};

struct CombineSpec {
    std::int64_t batch = 1, heads = 2, hdim_v = 0; ///< hdim_v 0: what the kernel is made for
    std::vector<std::int64_t> seqlen_q{11};        ///< of each entry in turn
    std::int64_t splits = 3;
    Logs logs = Logs::normal;
    Sinks sinks = Sinks::none;
    bool rows_outermost = false; ///< the heads of a row lie together
    std::int64_t gap = 0;        ///< elements between lines, of which no kernel may know
    float scale_o = 1.0F;
    std::uint64_t seed = 1;

    std::string text() const;
};

/// Distances from the reference in units of the limits of B.7; a correct kernel stays at or below 1.
struct CombineVerdict {
    double o = 0.0, lse = 0.0, rms = 0.0;
    bool exact_rows_exact =
        true; ///< one split without a sink is O itself, rows without keys are +0 and −∞ or the sink
    bool only_outputs_written = true;
    std::string worst;

    bool acceptable() const {
        return o <= 1.0 && lse <= 1.0 && rms <= 1.25 && exact_rows_exact && only_outputs_written;
    }
};

/// Partial results for a combine kernel, and memory for what it makes of them. What lies between logical elements is
/// NaN; so is o_acc of a split without keys, which nobody needs to write.
class CombineProblem {
  public:
    CombineProblem(const KernelConfig& kernel, const CombineSpec& spec);
    CombineProblem(const CombineProblem&) = delete;
    CombineProblem& operator=(const CombineProblem&) = delete;
    ~CombineProblem() = default;

    const SplitKvArgs& args() const { return args_; }
    CombineVerdict judge(const Numerics& numerics) const;
    /// Bytes of O and LSE with everything around them.
    std::vector<std::byte> outputs() const;

  private:
    struct Memory {
        std::vector<std::byte> bytes;
        TensorView view;
    };
    Memory memory(ElementType type, std::int64_t heads, std::int64_t cols) const;
    void fill_partials(std::mt19937_64& engine);
    double stored(const Memory& memory, std::int64_t b, std::int64_t h, std::int64_t row,
                  std::int64_t c) const;
    std::int64_t first_row(std::int64_t b) const;
    bool unwritten_around_outputs() const;

    CombineSpec spec_;
    std::vector<std::int64_t> lengths_;
    std::vector<std::int32_t> starts_;
    std::vector<float> sinks_;
    std::int64_t rows_ = 0; ///< of a tensor
    Memory o_acc_, lse_acc_, o_, lse_;
    SplitKvArgs args_;
};

} // namespace fmha::test
