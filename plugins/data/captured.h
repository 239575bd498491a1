// CapturedFunction: a function of the graph with the values that it captured.
#ifndef THALWEG_PLUGINS_DATA_CAPTURED_H_
#define THALWEG_PLUGINS_DATA_CAPTURED_H_

#include <memory>
#include <string>
#include <utility>

#include "dataset.h"

namespace thalweg::data {

struct CapturedFunction {
  std::string name;
  Element captured;

  Element operator()(Call& c, const Element& e) const { return c.Run(c.Find(name), e, captured); }
  // As above, for a function of one scalar bool.
  bool Holds(Call& c, const Element& e) const;
};
using Captured = std::shared_ptr<const CapturedFunction>;

// Throws unless a function's results have these types.
void CheckResults(const std::string& function, const Element& results, const std::vector<uint32_t>& types);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_CAPTURED_H_
