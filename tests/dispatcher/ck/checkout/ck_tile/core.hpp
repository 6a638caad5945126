#pragma once
namespace ck_tile {
using index_t = int;
}
