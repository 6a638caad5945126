#pragma once

#include "dispatcher/registry/entry.hpp"
#include "dispatcher/selection/match.hpp"

#include <span>
#include <unordered_map>
#include <vector>

namespace fmha {

/// An immutable, indexed set of kernels without duplicates. Kernels that a problem could use lie together:
/// a bucket holds one architecture and one value of the fields that must be equal, its groups one pair of
/// head dimensions and one set of capabilities each. Kernels of a group that a problem cannot tell apart (they
/// differ in waves, instructions, …) share one candidate, so a search looks at few of them.
class Segment {
  public:
    /// Kernels of a group with the same facts; `first` is the position of the lowest configuration.
    struct Candidate {
        KernelFacts facts;
        std::uint32_t first = 0;
    };
    struct Group : RankingFacts {
        std::uint32_t begin = 0, end = 0; ///< positions, ascending in configuration
        std::uint32_t first_candidate = 0, last_candidate = 0;
    };
    /// Groups of one bucket, ascending in (hdim_q, hdim_v).
    using Bucket = std::span<const Group>;

    /// Throws DeclarationError for a configuration that cannot be indexed and KeyConflict when two entries
    /// have the same configuration.
    explicit Segment(std::vector<KernelEntry> entries);

    std::size_t size() const { return entries_.size(); }
    /// Entries in the order of the index.
    const KernelEntry& entry(std::uint32_t position) const { return entries_[order_[position]]; }
    const KernelFacts& facts(std::uint32_t position) const {
        return candidates_[candidate_of_[position]].facts;
    }
    /// The different facts in a group, ascending in `first`.
    std::span<const Candidate> candidates(const Group& group) const {
        return std::span(candidates_)
            .subspan(group.first_candidate, group.last_candidate - group.first_candidate);
    }
    std::span<const KernelEntry> entries() const { return entries_; }

    /// The kernels of one architecture whose equality fields have this key; empty when there are none.
    Bucket bucket(const ArchName& arch, std::uint64_t equality_key) const;
    std::span<const ArchName> archs() const { return archs_; }

    const KernelEntry* find(const KernelConfig& config) const;

  private:
    struct BucketKey {
        std::uint32_t arch = 0;
        std::uint64_t equality = 0;
        friend bool operator==(const BucketKey&, const BucketKey&) = default;
    };
    struct BucketHash {
        std::size_t operator()(const BucketKey& key) const {
            return (key.equality * 0x9E3779B97F4A7C15ULL) ^ (std::uint64_t{key.arch} * 0xC2B2AE3D27D4EB4FULL);
        }
    };
    struct Range {
        std::uint32_t begin = 0, end = 0;
    };

    std::vector<KernelEntry> entries_;
    std::vector<std::uint32_t> order_;
    std::vector<Candidate> candidates_;
    std::vector<std::uint32_t> candidate_of_; ///< by position
    std::vector<Group> groups_;
    std::vector<ArchName> archs_;
    std::unordered_map<BucketKey, Range, BucketHash> buckets_;
};

} // namespace fmha
