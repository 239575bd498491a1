// Draws a graph as an SVG picture.
#pragma once
#include <string>

#include "boxes.h"

namespace thalweg::cli {

// A graph with more boxes makes a picture that is unreadable and slow to draw.
constexpr size_t kMostDrawn = 1000;

std::string MakeGraphSvg(const Boxes& boxes, const std::string& title);

}  // namespace thalweg::cli
