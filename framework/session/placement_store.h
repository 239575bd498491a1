// PlacementStore: a session's knowledge of where to run its nodes: measured costs, and the places
// found for each signature. An optional file keeps both for sessions on the same devices. Threads:
// any.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/planner/placement/cost_model.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg {

class PlacementStore {
 public:
  // Reads the file. A file that cannot be read, is torn, or describes other devices is ignored,
  // with a line in the log.
  PlacementStore(const SessionOptions& options, Runtime* runtime);

  std::shared_ptr<CostModel> costs() const { return costs_; }
  // Returns NULL if no places are known for the signature yet.
  std::shared_ptr<const Places> Find(const std::string& signature) const;
  void Keep(const std::string& signature, std::shared_ptr<const Places> places);
  // Replaces the file, if there is one, with the current state. If that fails, it logs a line.
  void SaveOrSay() const;

 private:
  Status Load();
  Status Take(std::string_view text);
  std::string Text() const;
  Status Save() const;

  Runtime* const runtime_;
  std::string path_;  // "": no file
  const std::shared_ptr<CostModel> costs_ = std::make_shared<CostModel>();
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<const Places>> places_;
};

}  // namespace thalweg
