// The pictures of docs/masks.md are drawn again from the reference and compared, so that the document cannot
// drift from the masks that are computed.

#include "harness/cases/mask_text.hpp"
#include "reference/forward.hpp"

#include <gmock/gmock.h>

#include <fmt/format.h>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

using fmha::harness::MaskText;

/// One line a query row: '#' for a visible key, '.' for a hidden one.
std::string picture(const MaskText& mask, std::int64_t seqlen_q, std::int64_t seqlen_k) {
    fmha::FwdArgs args;
    args.shape.batch = args.shape.nhead_q = args.shape.nhead_k = 1;
    args.shape.seqlen_q = seqlen_q;
    args.shape.seqlen_k = seqlen_k;
    args.mask = {mask.type, mask.left, mask.right, mask.sink};
    std::string text;
    for (std::int64_t i = 0; i < seqlen_q; ++i) {
        for (std::int64_t j = 0; j < seqlen_k; ++j)
            text += fmha::reference::key_visible(args, 0, i, j) ? '#' : '.';
        text += '\n';
    }
    return text;
}

struct Picture {
    std::string mask, drawn;
    std::int64_t seqlen_q = 0, seqlen_k = 0;
};

/// Blocks that open with "``` mask=b seqlen_q=3 seqlen_k=5".
std::vector<Picture> pictures(std::istream& document) {
    const std::regex opening(R"(^```\s*mask=(\S+) seqlen_q=(\d+) seqlen_k=(\d+)$)");
    std::vector<Picture> found;
    std::smatch match;
    for (std::string line; std::getline(document, line);) {
        if (!std::regex_match(line, match, opening)) continue;
        Picture picture{match[1], "", std::stoll(match[2]), std::stoll(match[3])};
        while (std::getline(document, line) && line != "```") picture.drawn += line + '\n';
        found.push_back(picture);
    }
    return found;
}

std::string redrawn(const Picture& shown) {
    MaskText mask;
    EXPECT_TRUE(fmha::harness::parse_mask(shown.mask, mask)) << shown.mask;
    return picture(mask, shown.seqlen_q, shown.seqlen_k);
}

TEST(MaskPictures, AreWhatTheReferenceComputes) {
    std::ifstream document(FMHA_SOURCE_DIR "/docs/masks.md");
    const auto shown = pictures(document);
    ASSERT_GE(shown.size(), 16U) << "docs/masks.md has lost its pictures";
    for (const Picture& one : shown)
        EXPECT_EQ(one.drawn, redrawn(one))
            << "docs/masks.md: mask=" << one.mask << " " << one.seqlen_q << "x" << one.seqlen_k;
}

TEST(MaskPictures, AWrongPictureIsNoticed) {
    std::istringstream document("``` mask=b seqlen_q=2 seqlen_k=3\n###\n###\n```\n");
    const auto shown = pictures(document);
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_NE(shown.front().drawn, redrawn(shown.front()));
}

} // namespace
