#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <sys/mman.h>

namespace fmha::harness::test {

/// Numbers, 0 at first, that a process and its children read and write together.
class SharedNumbers {
  public:
    /// Throws std::bad_alloc.
    explicit SharedNumbers(std::size_t count)
        : bytes_((count + 1) * sizeof(Number)),
          numbers_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        if (numbers_ == MAP_FAILED) throw std::bad_alloc();
    }
    ~SharedNumbers() { munmap(numbers_, bytes_); }
    SharedNumbers(const SharedNumbers&) = delete;
    SharedNumbers& operator=(const SharedNumbers&) = delete;

    std::atomic<std::uint32_t>& operator[](std::size_t i) const { return static_cast<Number*>(numbers_)[i]; }

  private:
    using Number = std::atomic<std::uint32_t>;
    static_assert(Number::is_always_lock_free);

    std::size_t bytes_;
    void* numbers_;
};

} // namespace fmha::harness::test
