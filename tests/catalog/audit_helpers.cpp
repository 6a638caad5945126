#include "tests/catalog/audit_helpers.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

namespace fmha::catalog::test {

Request request_for(RuleSet rules, std::string_view arch, std::string_view profile) {
    Request request;
    request.rules = rules;
    request.targets = {ArchName(arch)};
    request.profile = parse_profile(profile);
    return request;
}

std::size_t count(const Request& request, KernelFamily family) {
    Request one = request;
    one.families = FamilySet::of(family);
    return count(one);
}

std::size_t count(const Request& request) {
    std::size_t kernels = 0;
    enumerate(arch::ArchSet::built_in(), request, [&](const KernelConfig&) { ++kernels; });
    return kernels;
}

std::vector<std::string> names(const arch::ArchSet& archs, const Request& request) {
    std::vector<std::string> list;
    enumerate(archs, request,
              [&](const KernelConfig& config) { list.push_back(name_of(request.rules, config)); });
    return list;
}

std::vector<std::string> names(const Request& request) {
    return names(arch::ArchSet::built_in(), request);
}

std::string emission_digest(const Request& request) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EXPECT_EQ(EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr), 1);
    std::string line;
    bool first = true;
    enumerate(arch::ArchSet::built_in(), request, [&](const KernelConfig& config) {
        line.clear();
        if (!first) line.push_back('\n');
        first = false;
        append_name(request.rules, config, line);
        EVP_DigestUpdate(hash.get(), line.data(), line.size());
    });
    std::array<unsigned char, 32> digest{};
    unsigned length = 0;
    EXPECT_EQ(EVP_DigestFinal_ex(hash.get(), digest.data(), &length), 1);
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
}

arch::ArchSet with_change(std::string_view path, std::string_view from, std::string_view to) {
    const auto built_in = arch::ArchSet::built_in_files();
    std::vector<arch::ArchSet::File> files(built_in.begin(), built_in.end());
    const auto file = std::ranges::find(files, path, &arch::ArchSet::File::path);
    if (file == files.end()) {
        ADD_FAILURE() << "no file " << path;
        return arch::ArchSet::built_in();
    }
    std::string text(file->text);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " does not stand in " << path;
    if (at == std::string::npos) return arch::ArchSet::built_in();
    EXPECT_EQ(text.find(from, at + 1), std::string::npos)
        << from << " stands in " << path << " more than once";
    text.replace(at, from.size(), to);
    file->text = text;
    return arch::ArchSet::parse(files, /*validate=*/true);
}

Change change_of(const Request& request, const arch::ArchSet& changed) {
    auto before = names(request);
    auto after = names(changed, request);
    std::ranges::sort(before);
    std::ranges::sort(after);
    Change change;
    std::ranges::set_difference(before, after, std::back_inserter(change.lost));
    std::ranges::set_difference(after, before, std::back_inserter(change.gained));
    return change;
}

} // namespace fmha::catalog::test
