// Text of untrusted files on its way to a terminal.
#include "cli/printable.hpp"

#include <gtest/gtest.h>

namespace bcisim::cli {
namespace {

TEST(Printable, WordsOfAnyLanguageStay) {
  for (const char* text : {"", "tcp_recvmsg+0x123 (50 %)", "K\xc3\xa4se", "\xe2\x82\xac",
                           "\xf0\x9f\x90\xa7", "back\\slash \"quoted\""}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatATerminalObeysIsShown) {
  EXPECT_EQ(printable("\033[2Jgone\n"), "\\x1b[2Jgone\\x0a");
  EXPECT_EQ(printable(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b\x32J"), "\\xc2\\x9b2J");            // CSI of C1
  EXPECT_EQ(printable("\xe2\x80\xae\x61"), "\\xe2\\x80\\xae\x61");  // right to left
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");          // a new line
}

TEST(Printable, WhatIsNoUtf8IsShownByteByByte) {
  EXPECT_EQ(printable("\x9b\x32J"), "\\x9b2J");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");                           // cut
  EXPECT_EQ(printable("\xc3("), "\\xc3(");                           // not followed
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");                    // too long for one
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");           // likewise
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
}

}  // namespace
}  // namespace bcisim::cli
