// Functions: the functions that one kernel has called, by name. A dataset knows its function by
// name only, because the graph that has the function is that of the node that runs the iterator.
// Threads: any.
#ifndef THALWEG_PLUGINS_DATA_FUNCTIONS_H_
#define THALWEG_PLUGINS_DATA_FUNCTIONS_H_

#include <map>
#include <mutex>
#include <string>

#include "thalweg/cpp/function.hpp"

namespace thalweg::data {

class Functions {
 public:
  // The result lives as long as this object.
  const tw::Function& Find(const std::string& name) {
    std::lock_guard lock(mu_);
    return all_.try_emplace(name, name).first->second;
  }

 private:
  std::mutex mu_;  // guards all_
  std::map<std::string, tw::Function> all_;
};

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_FUNCTIONS_H_
