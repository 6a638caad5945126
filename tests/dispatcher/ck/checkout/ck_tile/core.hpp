#pragma once
namespace ck_tile {
using index_t = int;
struct stream_config {
    void* stream_id_ = nullptr;
    bool time_kernel_ = false;
    int log_level_ = 0;
};
} // namespace ck_tile
