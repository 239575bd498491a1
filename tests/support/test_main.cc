// The main function of every GoogleTest binary: as gtest_main's, but a run in which no case passed or failed and some were
// skipped exits with 77, so that ctest reports "skipped" and not "passed" where hardware or data is absent.
#include <cstdio>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (status == 0 && all.successful_test_count() == 0 && all.skipped_test_count() > 0) return 77;
  if (status == 0 && all.test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests)) {
    std::fprintf(stderr, "no test case was selected\n");
    return 1;
  }
  return status;
}
