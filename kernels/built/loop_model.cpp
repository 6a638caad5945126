#include "kernels/built/loop_model.hpp"

#include <algorithm>

namespace fmha::built {

namespace {
double all_cycles(const LoopIteration& iteration) {
    std::int64_t sum = -iteration.issue_slots; // counted twice otherwise
    for (const UnitLoad& unit : iteration.units) sum += unit.cycles;
    return static_cast<double>(sum);
}
double busiest(const LoopIteration& iteration) {
    std::int64_t most = 1;
    for (const UnitLoad& unit : iteration.units) most = std::max(most, unit.cycles);
    return static_cast<double>(most);
}
double matrix_cycles(const LoopIteration& iteration) {
    return static_cast<double>(iteration[LoopUnit::matrix].cycles);
}
} // namespace

double vector_a_score(const LoopModel& model, const LoopIteration& iteration) {
    const std::int64_t instructions =
        iteration[LoopUnit::vector].instructions + iteration[LoopUnit::transcendental].instructions;
    return static_cast<double>(instructions) / static_cast<double>(std::max<std::int64_t>(model.scores, 1));
}

double busy_alone(const LoopIteration& iteration) {
    return matrix_cycles(iteration) / std::max(1.0, all_cycles(iteration));
}

double busy_together(const LoopIteration& iteration, std::int64_t waves) {
    const double each = all_cycles(iteration) / static_cast<double>(std::max<std::int64_t>(waves, 1));
    return matrix_cycles(iteration) / std::max(busiest(iteration), each);
}

} // namespace fmha::built
