// The pictures that a run was fed, drawn in the terminal with what all other feeds and fetches say about each.
#pragma once
#include <string>

#include "model.h"

namespace thalweg::cli {

// Throws UsageError if no feed is called so.
void CheckDrawn(const Signature& signature, const std::string& name);
void DrawFeed(const tw::Runtime& runtime, const Signature& signature, const std::string& name);

}  // namespace thalweg::cli
