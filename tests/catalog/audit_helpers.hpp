#pragma once

#include "kernels/catalog/catalog.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::catalog::test {

/// A request for one architecture at a numeric profile.
Request request_for(RuleSet rules, std::string_view arch, std::string_view profile = "0");

/// How many kernels of the request have each family.
std::size_t count(const Request& request, KernelFamily family);
std::size_t count(const Request& request);

/// Names in emission order.
std::vector<std::string> names(const Request& request);
std::vector<std::string> names(const arch::ArchSet& archs, const Request& request);

/// SHA-256 of the names in emission order, joined by line feeds, in lower-case hexadecimal.
std::string emission_digest(const Request& request);

/// The compiled-in architecture folder with one text replaced in one file. The text must stand there once.
arch::ArchSet with_change(std::string_view path, std::string_view from, std::string_view to);

/// What a change of the tables does to the list: names that go and names that come, sorted.
struct Change {
    std::vector<std::string> lost, gained;
};
Change change_of(const Request& request, const arch::ArchSet& changed);

} // namespace fmha::catalog::test
