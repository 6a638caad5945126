#pragma once

#include "harness/run/targets.hpp"

#include <memory>
#include <string>

namespace fmha::harness::test {

/// What a program of this room mutates: a target whose programs can be wrong, and the same without.
struct Subject {
    std::shared_ptr<const Target> mutated, original;
    std::string survivors; ///< name of its table, beside the sources
    /// That of another subject: what it proves about the programs' arithmetic holds here too, and not what it says of its target.
    std::string survivors_of_programs;
    double most_work; ///< floating-point operations of the cases that are tried
    /// No list has kernels of the warp-specialised program for the architecture; the target runs others by it.
    bool other_kernels_are_teams;
    /// A mutant that no case comes through is a survivor. Else it is left out of the score: the kernels of one architecture do not come
    /// through all places.
    bool counts_unreached;
};

/// Of the kernels for `arch`. Each program links the one that it is about.
Subject subject(const std::string& arch);

/// `original` with kernels from `mutated_kernel`, under its own numerics.
std::shared_ptr<const Target> mutated_target(std::shared_ptr<const Target> original);

} // namespace fmha::harness::test
