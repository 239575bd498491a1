// Draws the pictures that a run was fed in the terminal, and beside each the values of all other
// feeds and fetches for it.
#pragma once
#include <string>

#include "model.h"

namespace thalweg::cli {

// Throws UsageError if the signature has no feed named `name`.
void CheckDrawn(const Signature& signature, const std::string& name);
void DrawFeed(const tw::Runtime& runtime, const Signature& signature, const std::string& name);

}  // namespace thalweg::cli
