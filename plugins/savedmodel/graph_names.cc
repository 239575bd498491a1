#include "graph_names.h"

#include <charconv>

namespace thalweg::savedmodel {

std::string_view NodeOf(std::string_view input) {
  if (input.starts_with('^')) input.remove_prefix(1);
  return input.substr(0, input.find(':'));
}

int PortOf(std::string_view input) {
  const size_t colon = input.rfind(':');
  int port = 0;
  if (colon != input.npos) std::from_chars(input.data() + colon + 1, input.data() + input.size(), port);
  return port;
}

void FunctionsOf(const proto::NodeDef& node, std::vector<std::string_view>* names) {
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func()) names->push_back(value.func().name());
    if (!value.has_list()) continue;
    for (const proto::NameAttrList& f : value.list().func()) names->push_back(f.name());
  }
}

}  // namespace thalweg::savedmodel
