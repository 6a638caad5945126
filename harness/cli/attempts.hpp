#pragma once

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"

#include <filesystem>
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
    /// Writes what `text` returns, unless `file` is empty: nobody asked for it.
    template <class Text>
    void write(const std::filesystem::path& file, const Text& text) {
        (*this)([&] {
            if (!file.empty()) system::write_file(file, text());
        });
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
