// An exception in a thread of the executor reaches the caller who launched the kernel.
#include "fwd_problem.hpp"

#include "kernels/programs/programs.hpp"
#include "kernels/targets/host/executor.hpp"

#include <gtest/gtest.h>

#include <new>
#include <thread>

namespace fmha::host_target::test {
namespace {

TEST(Executor, AThreadWithoutMemoryDoesNotEndTheProcess) {
    const FwdProblem problem{Shape{}};
    const auto config = problem.config({.m0 = 64, .n0 = 32, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64});
    const kernels::Program<KernelFamily::fwd> program;
    const auto caller = std::this_thread::get_id();
    const auto make_context = [&](std::vector<TileVisit>* trace) {
        if (std::this_thread::get_id() != caller) throw std::bad_alloc();
        return HostContext(config, trace);
    };
    EXPECT_THROW(run_blocks(program, config, problem.args(), {.threads = 4}, make_context), std::bad_alloc);
    EXPECT_NO_THROW(run_blocks(program, config, problem.args(), {.threads = 1}, make_context));
}

} // namespace
} // namespace fmha::host_target::test
