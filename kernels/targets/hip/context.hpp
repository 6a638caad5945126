#pragma once

#include "kernels/programs/decisions.hpp"
#include "kernels/targets/hip/block.hpp"

namespace fmha::hip_target {

template <class Part, class... Arguments>
concept Loads = requires(Part& part, Arguments&... arguments) {
    part.load(arguments...);
};
template <class Part, class... Arguments>
concept Stores = requires(Part& part, Arguments&... arguments) {
    part.store(arguments...);
};

/// A block context of kernels/programs/README.md, made of parts: each owns its state and its piece of the plan, and knows
/// nothing of the others. Their operations are the context's. `load` and `store` are those of the part that knows the
/// tile; every other name belongs to one part alone.
template <class Machine, class Setup, template <class> class... Parts>
class Context : public kernels::Decisions, public Parts<Block<Machine, Setup>>... {
    using Own = Block<Machine, Setup>;

  public:
    FMHA_DEVICE Context(Machine& machine, const Setup& setup)
        : Parts<Own>(Own{machine, setup})..., block_{machine, setup} {}

    FMHA_DEVICE decltype(auto) cfg() const { return block_.cfg(); }
    FMHA_DEVICE decltype(auto) plan() const { return block_.plan(); }
    template <class Args>
    FMHA_DEVICE const Args& reread(const Args& args) const {
        return block_.machine.reread(args);
    }
    FMHA_DEVICE std::int64_t kept(std::int64_t value) const { return block_.machine.kept(value); }

    template <class... Arguments>
    FMHA_DEVICE void load(Arguments&&... arguments) {
        static_assert((0 + ... + static_cast<int>(Loads<Parts<Own>, Arguments...>)) == 1,
                      "one part of a context loads a tile");
        (load_by(static_cast<Parts<Own>&>(*this), arguments...), ...);
    }
    template <class... Arguments>
    FMHA_DEVICE void store(Arguments&&... arguments) {
        static_assert((0 + ... + static_cast<int>(Stores<Parts<Own>, Arguments...>)) == 1,
                      "one part of a context stores a tile");
        (store_by(static_cast<Parts<Own>&>(*this), arguments...), ...);
    }

  private:
    Own block_;

    template <class Part, class... Arguments>
    FMHA_DEVICE static void load_by(Part& part, Arguments&... arguments) {
        if constexpr (Loads<Part, Arguments...>) part.load(arguments...);
    }
    template <class Part, class... Arguments>
    FMHA_DEVICE static void store_by(Part& part, Arguments&... arguments) {
        if constexpr (Stores<Part, Arguments...>) part.store(arguments...);
    }
};

} // namespace fmha::hip_target
