#pragma once

#include "dispatcher/types/error.hpp"

#include <string>

namespace fmha::cli {

/// Steps each of which is tried although another has failed, such as the files that a command writes: one that cannot be
/// written takes no other away.
class Attempts {
  public:
    /// Runs `step` and keeps the sentence of its InputError.
    template <class Step>
    void operator()(const Step& step) {
        try {
            step();
        } catch (const InputError& error) {
            failed(error.what());
        }
    }
    void failed(const std::string& sentence) { sentences_ += (sentences_.empty() ? "" : "; ") + sentence; }

    /// Throws InputError with the sentences of all steps that failed, if any has.
    void finish() const {
        if (!sentences_.empty()) throw InputError(sentences_);
    }

  private:
    std::string sentences_;
};

} // namespace fmha::cli
