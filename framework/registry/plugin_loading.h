// The settings of a plugin loader. Threads: a value.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace thalweg {

// The treatment of a new plugin if the helper cannot run.
enum class PluginProbe {
  kRefuse,     // do not load it
  kTrust,      // load it at once
  kInProcess,  // examine it in this process, which ends if the plugin crashes
};

struct PluginLoading {
  bool trust_folders = false;  // also load files that others may write to (see plugin_writers.h)
  PluginProbe without_helper = PluginProbe::kTrust;
  std::string helper;                        // the program that examines plugins; empty: none
  std::chrono::milliseconds patience{5000};  // time limit for examining a plugin
  // A plugin that exceeded the limit is examined again after this time, doubled for each further
  // time in a row.
  std::chrono::seconds retry_after{60}, retry_after_at_most{24 * 60 * 60};
  std::function<std::chrono::system_clock::time_point()> now = [] { return std::chrono::system_clock::now(); };
  std::string cache_folder;                     // for knowledge about plugins; empty: none
  std::vector<std::string> preferred;           // ids that win if two plugins provide the same, in order of preference
  std::map<std::string, std::string> settings;  // "plugin.<id>.<key>", for the helper's host table
  std::function<void(const std::string& text)> warn = [](const std::string&) {};
};

}  // namespace thalweg
