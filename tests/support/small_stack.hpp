#pragma once

#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <pthread.h>

namespace fmha::test {

/// Runs `body` on a stack of 128 KiB, which is what musl gives a thread and the least that the readers of input have to do with. Sanitizers widen every frame, and keep data of their own there.
/// `body` throws nothing. A stack that overflows ends the test program.
inline void on_small_stack(std::function<void()> body) {
    std::size_t bytes = std::size_t{128} << 10U;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    bytes *= 16;
#endif
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, bytes);
    pthread_t thread{};
    const auto run = [](void* given) -> void* {
        (*static_cast<std::function<void()>*>(given))();
        return nullptr;
    };
    const int refused = pthread_create(&thread, &attributes, run, &body);
    pthread_attr_destroy(&attributes);
    ASSERT_EQ(refused, 0);
    pthread_join(thread, nullptr);
}

} // namespace fmha::test
