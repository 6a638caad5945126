#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace fmha::test {

/// A normal distribution for problems that draw a million numbers, where std::normal_distribution takes more time than the kernel. Its
/// numbers are short runs of a list that a process draws once, from places that the engine draws.
class NormalNumbers {
  public:
    double operator()(std::mt19937_64& engine) {
        if (left_ == 0) {
            at_ = engine() % (list().size() - run);
            left_ = run;
        }
        --left_;
        return list()[at_++];
    }

  private:
    static constexpr std::size_t run = 32;
    std::size_t at_ = 0, left_ = 0;

    static const std::vector<double>& list() {
        static const std::vector<double> drawn = [] {
            std::mt19937_64 engine(1);
            std::normal_distribution<double> normal;
            std::vector<double> numbers(std::size_t{1} << 16U);
            for (double& number : numbers) number = normal(engine);
            return numbers;
        }();
        return drawn;
    }
};

} // namespace fmha::test
