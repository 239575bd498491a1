// Texts that the schemas of dataset ops share.
#pragma once
#include <string>

#include "ops/register.h"

namespace thalweg::ops {

inline const std::string kElements = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; ";
inline const std::string kNoDataGradient = "no_gradient \"a dataset is no number\"; ";

// Adds a dataset op. inputs, attrs: of the schema; more: further clauses, each ended by "; ".
inline void AddDataset(tw::Plugin& p, const std::string& name, const std::string& inputs, const std::string& attrs, const std::string& doc,
                       const std::string& more = "") {
  p.op(name + "(" + inputs + ") -> (handle: variant[]); " + attrs + "metadata: string = \"\"; " + more + kNoDataGradient + "doc \"" + doc +
       "\"");
}

}  // namespace thalweg::ops
