#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

/// Replaces the operators new and delete of a test program, one source of which includes this and says when there is no memory.
namespace fmha::test {

/// Whether the allocation that is asked for now throws std::bad_alloc. Any thread calls it.
bool refuses_memory();

inline void* allocate(std::size_t bytes, std::size_t alignment) {
    if (refuses_memory()) throw std::bad_alloc();
    const std::size_t whole = (bytes / alignment + 1) * alignment;
    if (void* memory = std::aligned_alloc(alignment, whole)) return memory;
    throw std::bad_alloc();
}

} // namespace fmha::test

void* operator new(std::size_t bytes) {
    return fmha::test::allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
    return fmha::test::allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return fmha::test::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return fmha::test::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
