#include "dispatcher/explain/explain.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <thread>

namespace fmha {
namespace {

using testing::builder_for;
using testing::fwd_kernel;
using testing::instance;

/// Eight threads register, merge, plan, explain, list and export at once, with auto-export switched on. Run
/// under the thread sanitizer this must be silent; without it, every answer must be consistent.
TEST(Threads, RegisterPlanExplainAndExportTogether) {
    const auto file = std::filesystem::path(::testing::TempDir()) / "fmha_threads_export.json";
    Registry registry;
    Registry other;
    other.add(fwd_kernel(256, 256));
    registry.add(fwd_kernel(256, 256));
    registry.auto_export(file);
    const Dispatcher dispatcher(registry);
    std::atomic<int> unplanned{0};
    std::atomic<bool> inconsistent{false};
    const auto work = [&](int thread) {
        for (int i = 0; i < 8; ++i) {
            const KernelConfig own = fwd_kernel(8 * (i + 1), 8 * (thread + 1));
            registry.add(instance(own, fmt::format("t{}_{}", thread, i)));
            const Problem problem =
                builder_for(ApiFamily::fwd).dims(8 * (i + 1), 8 * (thread + 1), 1, 64, 64).build();
            const ExecutionPlan plan = dispatcher.plan(problem);
            if (!plan.valid()) ++unplanned;
            if (plan.valid() && !match(problem, plan.stages().front().kernel->config)) inconsistent = true;
            switch ((thread + i) % 6) {
            case 0:
                registry.merge_from(other, Priority::normal);
                break;
            case 1:
                registry.merge_from(registry, Priority::high);
                break;
            case 2:
                if (registry.get_all().empty()) inconsistent = true;
                break;
            case 3:
                if (nlohmann::json::parse(registry.export_json())["kernels"].empty()) inconsistent = true;
                break;
            case 4:
                if (!explain(dispatcher, problem, 2).plan.valid()) inconsistent = true;
                break;
            default:
                if (!registry.lookup(identifier(own))) inconsistent = true;
            }
            registry.set_name(fmt::format("name{}", i));
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 8; ++thread) threads.emplace_back(work, thread);
    }
    EXPECT_EQ(unplanned, 0);
    EXPECT_FALSE(inconsistent);
    // 8 threads x 8 kernels and the kernel that was there before.
    EXPECT_EQ(registry.size(), 65U);
    std::filesystem::remove(file);
}

/// A question of another thread is not one within the heuristic, though both are asked at once.
TEST(Threads, AHeuristicAnswersBothOfTwoThreads) {
    Registry registry;
    const KernelConfig small = fwd_kernel(128, 128, 64), large = fwd_kernel(128, 128, 128);
    registry.add(small);
    registry.add(large);
    Dispatcher dispatcher(registry);
    const Problem problem = builder_for(ApiFamily::fwd).dims(128, 128, 1, 100, 512).build();
    std::barrier both(2);
    std::atomic<int> preferred{0}, nested{0};
    dispatcher.set_heuristic([&](const Problem& asked) {
        both.arrive_and_wait();
        if (dispatcher.select_kernel(asked)->config == small) ++nested;
        both.arrive_and_wait();
        return std::vector{identifier(large)};
    });
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 2; ++thread)
            threads.emplace_back([&] {
                if (dispatcher.select_kernel(problem)->config == large) ++preferred;
            });
    }
    EXPECT_EQ(nested, 2);
    EXPECT_EQ(preferred, 2);
}

} // namespace
} // namespace fmha
