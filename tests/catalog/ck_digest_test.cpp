// Names and emission order of rule set ck against digests of upstream's own listing.

#include "tests/catalog/catalog_support.hpp"

#include <gmock/gmock.h>
#include <openssl/evp.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace fmha::catalog::test {
namespace {

std::string digest(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_Digest(text.data(), text.size(), bytes, &size, EVP_sha256(), nullptr);
    std::string hex;
    constexpr std::string_view digits = "0123456789abcdef";
    for (unsigned int i = 0; i < size; ++i) {
        hex += digits[bytes[i] >> 4U];
        hex += digits[bytes[i] & 15U];
    }
    return hex;
}

TEST(CkDigest, EveryRow) {
    const arch::ArchSet archs = arch::ArchSet::built_in();
    std::ifstream file(FMHA_TEST_DATA "/ck_digests.tsv");
    int rows = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        std::istringstream fields(line);
        std::string target, family, profile, sorted, emission;
        std::size_t count = 0;
        fields >> target >> family >> profile >> count >> sorted >> emission;
        Request r = request(RuleSet::ck, {ArchName(target)}, profile);
        r.families = only({*parse_enum<KernelFamily>(family)});
        std::vector<std::string> listed = names(archs, r);
        EXPECT_EQ(listed.size(), count) << line;
        EXPECT_EQ(digest(listed), emission) << line;
        std::sort(listed.begin(), listed.end());
        EXPECT_EQ(digest(listed), sorted) << line;
        ++rows;
    }
    EXPECT_EQ(rows, 108);
}

} // namespace
} // namespace fmha::catalog::test
