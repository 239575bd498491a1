// A runtime with the linked-in standard ops and the build's CPU plugin, for tests of the standard
// ops.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "framework/runtime/runtime.h"
#include "ops/ops.h"

namespace thalweg::testing_support {

// more: further linked-in plugins. Any error fails the test.
inline std::shared_ptr<Runtime> StandardRuntime(uint32_t threads, const std::vector<std::pair<std::string, tw_query_fn>>& more = {}) {
  RuntimeOptions options;
  options.threads = threads;
  options.static_plugins = {{"ops", tw_plugin_query_v0_ops}};
  for (const auto& [name, query] : more) options.static_plugins.push_back({name, query});
  options.disabled_plugins = {"*opencl*"};
  auto runtime = Runtime::Create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  return *runtime;
}

// Shares one such runtime between the tests of a suite.
class StandardRuntimeTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Runtime>& Shared() {
    static std::shared_ptr<Runtime> runtime;
    return runtime;
  }
  static void SetUpTestSuite() { Shared() = StandardRuntime(2); }
  static void TearDownTestSuite() { Shared() = nullptr; }
};

}  // namespace thalweg::testing_support
