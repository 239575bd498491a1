// What a plugin loader can be told.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace thalweg {

// What to do with a plugin that was never looked at, where the helper that would look cannot run.
enum class PluginProbe {
  kRefuse,     // it is not loaded
  kTrust,      // it is loaded at once
  kInProcess,  // it is looked at in this process, which ends with it if it crashes
};

struct PluginLoading {
  bool trust_folders = false;  // load also what others may write to (see plugin_writers.h)
  PluginProbe without_helper = PluginProbe::kTrust;
  std::string helper;                           // the program that looks at plugins; empty: none
  std::chrono::milliseconds patience{5000};     // how long a plugin may take there, in all
  std::string cache_folder;                     // of what is known of plugins; empty: none
  std::vector<std::string> preferred;           // ids that win where two plugins bring the same, the first of the list first
  std::map<std::string, std::string> settings;  // "plugin.<id>.<key>", for the helper's host table
  std::function<void(const std::string& text)> warn = [](const std::string&) {};
};

}  // namespace thalweg
