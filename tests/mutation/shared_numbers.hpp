#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <sys/mman.h>

namespace fmha::harness::test {

/// Numbers, 0 at first, that a process and its children read and write together. Nothing that lies near can be written, so that a kernel that runs
/// off its own tensors ends its process and leaves the numbers alone.
class SharedNumbers {
  public:
    /// Throws std::bad_alloc.
    explicit SharedNumbers(std::size_t count)
        : bytes_((count + 1) * sizeof(Number)),
          place_(mmap(nullptr, bytes_ + 2 * around, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                      0)) {
        if (place_ == MAP_FAILED) throw std::bad_alloc();
        numbers_ = static_cast<unsigned char*>(place_) + around;
        if (mprotect(numbers_, bytes_, PROT_READ | PROT_WRITE) == 0) return;
        munmap(place_, bytes_ + 2 * around);
        throw std::bad_alloc();
    }
    ~SharedNumbers() { munmap(place_, bytes_ + 2 * around); }
    SharedNumbers(const SharedNumbers&) = delete;
    SharedNumbers& operator=(const SharedNumbers&) = delete;

    std::atomic<std::uint32_t>& operator[](std::size_t i) const { return static_cast<Number*>(numbers_)[i]; }

  private:
    using Number = std::atomic<std::uint32_t>;
    static_assert(Number::is_always_lock_free);

    static constexpr std::size_t around = std::size_t{1} << 30U;

    std::size_t bytes_;
    void *place_, *numbers_ = nullptr;
};

} // namespace fmha::harness::test
