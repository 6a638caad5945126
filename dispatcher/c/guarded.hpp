#pragma once

#include "dispatcher/include/fmha/fmha.h"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/problem.hpp"

#include <fmt/format.h>

#include <new>
#include <string>
#include <string_view>

namespace fmha::c {

/// Throws InputError, which says that `name` is NULL, unless it is present or not needed.
inline void require(bool present, const char* name) {
    if (!present) throw InputError(fmt::format("{} is NULL", name));
}

/// Runs `body`, turns exceptions into a status and keeps their sentence and rule.
template <class Body>
fmha_status guarded(std::string& error, std::string& rule, Body&& body) {
    const auto failed = [&](fmha_status status, const char* sentence, std::string_view broken_rule = {}) {
        try {
            rule = broken_rule;
            error = sentence;
        } catch (const std::bad_alloc&) {
            error.clear();
            rule.clear(); // the status says enough, and nothing may leave
        }
        return status;
    };
    try {
        body();
        // Not before it: a heuristic's call within this one may have left its own.
        error.clear();
        rule.clear();
        return FMHA_OK;
    } catch (const ProblemError& problem) {
        return failed(FMHA_BAD_PROBLEM, problem.what(), problem.rule());
    } catch (const NoKernelFound& missing) {
        return failed(FMHA_NO_KERNEL, missing.what());
    } catch (const UnsupportedInvocation& unsupported) {
        return failed(FMHA_UNSUPPORTED, unsupported.what());
    } catch (const DeviceError& device) {
        return failed(FMHA_DEVICE_ERROR, device.what());
    } catch (const HeuristicError& heuristic) {
        return failed(FMHA_BAD_ARGUMENT, heuristic.what());
    } catch (const InputError& input) {
        return failed(FMHA_BAD_ARGUMENT, input.what());
    } catch (const WorkspaceError& workspace) {
        return failed(FMHA_BAD_ARGUMENT, workspace.what());
    } catch (const std::bad_alloc&) {
        return failed(FMHA_NO_MEMORY, "out of memory");
    } catch (const std::exception& other) {
        return failed(FMHA_INTERNAL, other.what());
    } catch (...) {
        return failed(FMHA_INTERNAL, "an exception of an unknown type");
    }
}

} // namespace fmha::c
