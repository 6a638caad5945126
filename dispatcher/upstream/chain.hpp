#pragma once

#include "dispatcher/types/json.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/upstream/problem.hpp"
#include "kernels/catalog/catalog.hpp"

#include <map>
#include <optional>
#include <vector>

namespace fmha::upstream {

/// The kernels that upstream's generated API launches for a problem. Records are those of rule set `ck`; an empty main
/// kernel means "no kernel".
struct Selection {
    std::optional<KernelConfig> main;       ///< dq_dk_dv in backward
    std::optional<KernelConfig> combine;    ///< split-KV; empty when upstream has no combine kernel for it
    std::optional<KernelConfig> dot_do_o;   ///< backward
    std::optional<KernelConfig> convert_dq; ///< backward; empty when the main kernel writes dQ directly
};

/// Upstream's generated if-else chains for one architecture (receipt 0, simplified masks): data type, then
/// the first head-dimension bucket that is large enough, then the first kernel all of whose conditions hold.
/// Order is emission order, which is why this reads the catalogue and no registry.
class Chain {
  public:
    /// Throws InputError for an architecture that the catalogue does not know.
    Chain(const arch::ArchSet& archs, std::string_view arch);

    Selection select(const Problem& problem) const;

    /// Main kernels whose conditions hold, in chain order; `select` returns the first.
    std::vector<KernelConfig> accepting(const Problem& problem) const;

  private:
    struct Bucket {
        std::int64_t hdim_q = 0, hdim_v = 0;
        std::int32_t largest_m0 = 0; ///< of this bucket in this chain, for the tile preference
        std::vector<KernelConfig> kernels;
    };
    /// `fwd` has a second chain, tried first; everything else uses chain 0.
    struct Key {
        KernelFamily family = KernelFamily::fwd;
        DataType data_type = DataType::fp16;
        bool v3 = false;
        friend auto operator<=>(const Key&, const Key&) = default;
    };

    struct Companion {
        KernelFamily family = KernelFamily::fwd_splitkv_combine;
        bool pad_s = false, pad_d = false, pad_dv = false;
        /// Absent where kernels of the stage are chosen without.
        std::optional<bool> has_lse{}, is_deterministic{};
    };

    void add(const KernelConfig& config);
    /// Visits the main kernels whose conditions hold, in chain order, until `visit` returns false.
    template <class Visit>
    void each_accepting(const Problem& problem, Visit&& visit) const;
    /// Those of one chain: of the problem's bucket. Whether `visit` wants more.
    template <class Visit>
    bool each_in_chain(KernelFamily family, bool v3, const Problem& problem, Visit&& visit) const;
    /// The kernel of another stage of `main`'s plan, of its types and dimensions.
    std::optional<KernelConfig> companion(const Companion& wanted, const KernelConfig& main) const;

    std::map<Key, std::vector<Bucket>> chains_;
    std::vector<KernelConfig> companions_; ///< combine, dot_do_o, convert_dq
};

/// Remembers the chains of the architectures asked so far. Not for concurrent use.
class Chains {
  public:
    explicit Chains(arch::ArchSet archs) : archs_(std::move(archs)) {}
    const Chain& of(std::string_view arch);

  private:
    arch::ArchSet archs_;
    std::map<std::string, Chain, std::less<>> chains_;
};

/// `selected` in the form of upstream's problem files: a file name, an object of file names by stage, or
/// null.
Json selection_to_json(const Problem& problem, const Selection& selection);

} // namespace fmha::upstream
