#include "kernels/built/loop_model.hpp"

#include <algorithm>

namespace fmha::built {

namespace {
double matrix_cycles(const LoopIteration& iteration) {
    return static_cast<double>(iteration[LoopUnit::matrix].cycles);
}
double busiest(const LoopIteration& iteration) {
    std::int64_t most = 1;
    for (const UnitLoad& unit : iteration.units) most = std::max(most, unit.cycles);
    return static_cast<double>(most);
}
/// Cycles that one wave needs to issue its instructions, one after another.
double issue_cycles(const LoopIteration& iteration) {
    std::int64_t sum = iteration.access_slots;
    for (const LoopUnit unit : {LoopUnit::vector, LoopUnit::scalar, LoopUnit::branch, LoopUnit::wait})
        sum += iteration[unit].cycles;
    return static_cast<double>(sum);
}
} // namespace

double vector_a_score(const LoopModel& model, const LoopIteration& iteration) {
    const std::int64_t instructions =
        iteration[LoopUnit::vector].instructions + iteration[LoopUnit::transcendental].instructions;
    return static_cast<double>(instructions) / static_cast<double>(std::max<std::int64_t>(model.scores, 1));
}

double busy_alone(const LoopIteration& iteration) {
    const double others = issue_cycles(iteration) - static_cast<double>(iteration.matrix_slots);
    return matrix_cycles(iteration) / std::max(1.0, matrix_cycles(iteration) + others);
}

double busy_together(const LoopIteration& iteration, std::int64_t waves) {
    const double each = issue_cycles(iteration) / static_cast<double>(std::max<std::int64_t>(waves, 1));
    return matrix_cycles(iteration) / std::max(busiest(iteration), each);
}

double busy_waiting(const LoopIteration& iteration, std::int64_t waves) {
    const double each = static_cast<double>(std::max<std::int64_t>(iteration.wave_cycles, 1)) /
                        static_cast<double>(std::max<std::int64_t>(waves, 1));
    return std::min(busy_together(iteration, waves), matrix_cycles(iteration) / each);
}

} // namespace fmha::built
