#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "harness/cases/case.hpp"
#include "harness/gates/judge.hpp"
#include "harness/gates/outputs.hpp"
#include "reference/backward.hpp"

#include <functional>

namespace fmha::harness {

/// A copy of the outputs of a stage of backward, host memory: "d" and "d_sink" of the first, "dk", "dv" and "dbias" of the
/// main one, and "dq" of the last, or of the main one where that is `direct`.
Outputs bwd_outputs(const BwdArgs& args, KernelFamily stage, bool direct);

/// G1b and G2b (tolerances B.9) on the lines of `expected`, G3 on D and d_sink; on everything G5.2 (W-12, W-14: a query that sees no
/// key has dQ 0, a key that no query sees has dK and dV 0, and so has dBias where nothing is seen), G5.9, and without dropout and sinks
/// G1.sum, because softmax makes the dBias of a row add up to 0. An output that `outputs` lacks is not judged. `expected` needs the
/// numerics of the main kernel, for D and d_sink those of the first stage.
/// `fill` and `inputs` say whether roundings are independent (G2b).
Judgement judge_backward(const BwdArgs& args, const Outputs& outputs, const reference::Gradients& expected,
                         Fill fill, InputOrigin inputs);

/// Calls visit with the limits by which `judge_backward` judges each of `outputs`.
void each_bounded_gradient(const BwdArgs& args, const Outputs& outputs, const reference::Gradients& expected,
                           Fill fill, const std::function<void(const Bounded&)>& visit);

} // namespace fmha::harness
