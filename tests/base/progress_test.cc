// The progress line: silent without a terminal and in the first second, erased at the end.
#include "base/progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace stepcast {
namespace {

// What `job` writes to the stream it is given.
std::string written_by(const std::function<void(std::FILE*)>& job) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  job(out);
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

constexpr std::chrono::milliseconds ms(int n) { return std::chrono::milliseconds(n); }

TEST(Progress, IsSilentInTheFirstSecond) {
  EXPECT_EQ(written_by([](std::FILE* out) {
              Progress progress("plans", 10, out, true);
              progress.update_at(1, ms(999));
              progress.update(2);
            }),
            "");
}

TEST(Progress, IsSilentWithoutATerminal) {
  EXPECT_EQ(written_by([](std::FILE* out) {
              Progress progress("plans", 10, out, false);
              progress.update_at(1, ms(5000));
            }),
            "");
}

TEST(Progress, WritesAtMostTenLinesASecondAndErasesTheLast) {
  EXPECT_EQ(written_by([](std::FILE* out) {
              Progress progress("plans", 10, out, true);
              progress.update_at(3, ms(1000));
              progress.update_at(4, ms(1099));
              progress.update_at(5, ms(2100));
            }),
            "\rplans 3/10  1 s\x1b[K\rplans 5/10  2 s\x1b[K\r\x1b[K");
}

}  // namespace
}  // namespace stepcast
