#include "dispatcher/system/streams.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

namespace fmha::system {

void refuse_size(const std::string& name, std::uint64_t most) {
    throw InputError(fmt::format("{}: has more than {} bytes, the most that an input may have", name, most));
}

std::string read_stream(std::istream& stream, const std::string& name, std::uint64_t most) {
    std::string text;
    std::vector<char> block(std::size_t{1} << 16U);
    while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
        const auto more = static_cast<std::size_t>(stream.gcount());
        if (text.size() + more > most) refuse_size(name, most);
        text.append(block.data(), more);
    }
    return text;
}

} // namespace fmha::system
