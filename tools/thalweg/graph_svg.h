// A graph as a picture.
#pragma once
#include <string>

#include "boxes.h"

namespace thalweg::cli {

// More boxes than these make no picture that anybody could read, nor a quick one.
constexpr size_t kMostDrawn = 1000;

std::string MakeGraphSvg(const Boxes& boxes, const std::string& title);

}  // namespace thalweg::cli
