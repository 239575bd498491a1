// PlacementStore: what a session knows of where to run its nodes: costs that were measured, and places that were found for a signature.
// Kept in a file, if there is one, for sessions of the same devices. Threads: any.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/plan/cost_model.h"
#include "framework/plan/plan.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg {

class PlacementStore {
 public:
  // Reads the file; one that cannot be read, is torn, or tells of other devices counts for nothing, and the log says so.
  PlacementStore(const SessionOptions& options, Runtime* runtime);

  std::shared_ptr<CostModel> costs() const { return costs_; }
  // NULL: nothing was found for it yet.
  std::shared_ptr<const Places> Find(const std::string& signature) const;
  void Keep(const std::string& signature, std::shared_ptr<const Places> places);
  // Replaces the file by what is known now, if there is one; where that fails, a line in the log.
  void SaveOrSay() const;

 private:
  Status Load();
  Status Take(std::string_view text);
  std::string Text() const;
  Status Save() const;

  Runtime* const runtime_;
  std::string path_;  // "": none
  const std::shared_ptr<CostModel> costs_ = std::make_shared<CostModel>();
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<const Places>> places_;
};

}  // namespace thalweg
