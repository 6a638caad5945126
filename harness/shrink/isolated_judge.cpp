#include "harness/shrink/isolated_judge.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/case_tensors.hpp"
#include "harness/run/worker_pool.hpp"

#include <utility>

namespace fmha::harness {

CaseJudge isolated_judge(const KernelSource& source, const CaseRunOptions& options,
                         std::chrono::milliseconds timeout, std::function<bool()> stop) {
    return [&source, &options, timeout, stop = std::move(stop)](const Case& c) {
        require_runnable(c, options.arch);
        std::vector<CaseResult> results;
        PoolOptions pool;
        pool.task_timeout = timeout;
        pool.stop = stop;
        run_isolated(
            1, pool, [&](std::size_t) { return pack(run_case(c, source, options)); },
            [&](std::size_t, const TaskEnd& end) {
                if (end.kind == TaskEnd::Kind::bad_input) throw InputError(end.answer);
                results = answered(c, options, end);
                return true;
            });
        return results;
    };
}

} // namespace fmha::harness
