// Shared by the tests of plugin loading: a temporary folder with copies of test plugins, and
// loaders whose host table records the plugins' messages.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/registry/plugin_loader.h"
#include "tests/framework/support/fakes.h"

namespace thalweg::testing_support {

class LoadingTest : public ::testing::Test {
 protected:
  LoadingTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-plugins-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~LoadingTest() override {
    loader_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Returns the path of a variant of test_plugin.c.
  static std::string Built(std::string_view variant) {
    const char* where = std::getenv("THALWEG_TEST_PLUGINS");
    return StrCat(where ? where : "plugins", "/", variant, ".so");
  }
  // Copies a variant into the folder `plugins`; returns its path.
  std::string Put(std::string_view variant, std::string_view name) {
    const std::string path = StrCat(plugins(), "/", name);
    std::filesystem::create_directories(plugins());
    std::filesystem::copy_file(Built(variant), path, std::filesystem::copy_options::overwrite_existing);
    return path;
  }
  std::string plugins() const { return folder_ + "/plugins"; }
  std::string Write(std::string_view name, std::string_view contents) {
    std::string path = folder_ + "/" + std::string(name);
    std::ofstream(path, std::ios::binary).write(contents.data(), std::streamsize(contents.size()));
    return path;
  }
  std::string Contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // Replaces the loader by a new one.
  PluginLoader& NewLoader(PluginLoading loading = {}) {
    loader_.reset();
    auto make_host = [this](std::string_view, std::string_view, uint32_t minor, const std::weak_ptr<const void>&) {
      auto* t = new Table{{}, &lines_, {}};
      t->run.log = [](const tw_host* h, uint32_t, const char* text, uint64_t len) {
        reinterpret_cast<const Table*>(h)->lines->emplace_back(text, len);
      };
      t->c = {TW_SIZED(tw_host), TW_EPOCH, minor, this, &StatusApi(), nullptr, nullptr, nullptr, nullptr, &t->run, nullptr, nullptr};
      return std::unique_ptr<tw_host, void (*)(tw_host*)>(&t->c, [](tw_host* h) { delete reinterpret_cast<Table*>(h); });
    };
    registry_ = std::make_unique<Registry>();
    loader_ = std::make_unique<PluginLoader>(registry_.get(), make_host, std::move(loading));
    return *loader_;
  }
  // Returns a runtime's usual settings: with the helper and a cache.
  PluginLoading Usual() const {
    PluginLoading loading;
    loading.without_helper = PluginProbe::kRefuse;
    loading.helper = PluginHelperBesideUs();
    loading.cache_folder = folder_ + "/cache";
    return loading;
  }
  std::string CacheFile() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/cache")) return entry.path().string();
    return "";
  }
  PluginRecord Last() { return At(loader_->records().size() - 1); }
  PluginRecord At(size_t i) {
    auto all = loader_->records();
    EXPECT_LT(i, all.size());
    return i < all.size() ? all[i] : PluginRecord();
  }

  std::string folder_;
  std::vector<std::string> lines_;  // messages of plugins in this process
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<PluginLoader> loader_;

 private:
  struct Table {
    tw_host c;
    std::vector<std::string>* lines;
    tw_run_api run;
  };
};

}  // namespace thalweg::testing_support
