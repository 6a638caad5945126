#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace fmha {

/// Base of every error that this library throws. `what()` is one sentence that names the thing, its value and
/// the allowed values.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A file, flag or environment variable that cannot be used. Commands turn it into exit code 2.
class InputError : public Error {
  public:
    using Error::Error;
};

/// An invalid problem (spec section 23 and the H, L, N, … rules).
class ProblemError : public Error {
  public:
    ProblemError(std::string rule, std::string field, std::string value, const std::string& sentence)
        : Error(rule + ": " + sentence), rule_(std::move(rule)), field_(std::move(field)),
          value_(std::move(value)) {}
    ProblemError(std::string rule, std::string field, std::int64_t value, const std::string& sentence)
        : ProblemError(std::move(rule), std::move(field), std::to_string(value), sentence) {}
    const std::string& rule() const { return rule_; }
    const std::string& field() const { return field_; }
    const std::string& value() const { return value_; }
    /// `what()` without the rule; valid as long as this.
    std::string_view sentence() const { return std::string_view(what()).substr(rule_.size() + 2); }

  private:
    std::string rule_, field_, value_;
};

/// A kernel declaration, profile or sweep configuration that breaks a rule.
class DeclarationError : public Error {
  public:
    using Error::Error;
};

/// Two different kernels claim one identity.
class KeyConflict : public Error {
  public:
    using Error::Error;
};

/// A valid problem that no registered kernel takes; the text carries the explanation.
class NoKernelFound : public Error {
  public:
    using Error::Error;
};

/// Some stage of a plan has no kernel.
class PlanIncomplete : public Error {
  public:
    using Error::Error;
};

/// A kernel instance was handed arguments that it does not support.
class UnsupportedInvocation : public Error {
  public:
    using Error::Error;
};

/// A kernel instance was handed the arguments of another family.
class ArgumentTypeError : public Error {
  public:
    using Error::Error;
};

/// A kernel that a target could execute has not been built.
class KernelNotBuilt : public Error {
  public:
    using Error::Error;
};

/// A workspace that is too small or misaligned.
class WorkspaceError : public Error {
  public:
    using Error::Error;
};

/// A call of the device API failed.
class DeviceError : public Error {
  public:
    using Error::Error;
};

/// A kernel faulted and took the context of this process with it: nothing more can be launched from here.
class DeviceLost : public DeviceError {
  public:
    using DeviceError::DeviceError;
};

/// The device has not enough memory left.
class DeviceOutOfMemory : public DeviceError {
  public:
    using DeviceError::DeviceError;
};

/// Code generation, compilation or linking failed; carries the tool's whole stderr.
class BuildError : public Error {
  public:
    using Error::Error;
};

/// A user's selection heuristic threw.
class HeuristicError : public Error {
  public:
    using Error::Error;
};

} // namespace fmha
