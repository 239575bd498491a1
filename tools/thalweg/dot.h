// A graph in the language of Graphviz: https://graphviz.org/doc/info/lang.html
#pragma once
#include <string>

#include "boxes.h"

namespace thalweg::cli {

std::string MakeDot(const Boxes& boxes, const std::string& title);

}  // namespace thalweg::cli
