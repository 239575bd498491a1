// Comparison of results with stored ones, for `thalweg run --check`.
#pragma once
#include "command.h"
#include "model.h"

namespace thalweg::cli {

// Compares fetches with the arrays of the archive --check that have their names, and prints a line
// for each array. Numbers may differ by --atol + --rtol * |expected|; everything else must be equal.
// Without --check it compares nothing. Returns whether all agree. Throws UsageError for an array
// that no fetch has the name of, and for a tolerance without --check.
bool CheckReference(const Args& args, const tw::Runtime& runtime, const Signature& signature);

std::vector<Option> ReferenceOptions();

}  // namespace thalweg::cli
