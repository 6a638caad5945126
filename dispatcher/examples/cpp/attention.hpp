#pragma once

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace example {

/// A small problem of forward attention in fp32 with memory of its own, so that a program can show one thing.
class Attention {
  public:
    Attention(std::int64_t nhead_q, std::int64_t nhead_k, std::int64_t seqlen_q, std::int64_t seqlen_k,
              std::int64_t hdim = 64);
    Attention& causal();

    const fmha::FwdArgs& args() const { return args_; }
    fmha::Problem problem(const char* arch = "gfx950") const;
    /// Forgets the output, so that a run that does nothing is noticed.
    void forget();
    /// Whether every element of O is as near to the reference's as fp32 allows; says how near the worst one is.
    bool judge(const char* what) const;

  private:
    std::vector<float> q_, k_, v_, o_;
    fmha::FwdArgs args_;
};

/// The wanted ones of gfx950's kernels for plain forward attention in fp32 (any head dimension, mask, tile), as instances that run on the
/// host.
std::vector<std::shared_ptr<const fmha::KernelInstance>>
host_kernels(const std::function<bool(const fmha::KernelConfig&)>& wanted);

/// Prints a sentence and passes the condition on.
bool check(bool condition, const char* sentence);

} // namespace example
