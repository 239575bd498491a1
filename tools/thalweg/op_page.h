// What there is to say about ops: what the registry knows, joined to what the manual says; on a terminal or as Markdown.
#pragma once
#include <string>
#include <vector>

#include "json_value.h"
#include "manual.h"

namespace thalweg::cli {

// The registry's facts about an op: an object of tw_ops_json.
using OpFacts = JsonValue;

// One op for a terminal. entry, page: NULL where the manual has none. Kernels are named with their plugins.
std::string OpText(const OpFacts& op, const ManualEntry* entry, const ManualPage* page);

// Where the manual and the registry disagree, a line each: an op without an entry, an op, argument or attribute that only one of them
// knows, an entry without meaning, shapes, errors, or an example of each of its ops.
std::vector<std::string> Disagreements(const std::vector<ManualPage>& pages, const std::vector<OpFacts>& ops);

// A page of the manual, its ops in full. REQUIRES: no disagreements.
std::string PageMarkdown(const ManualPage& page, const std::vector<OpFacts>& ops);

// The page in front of them: every op with a link and a line.
std::string IndexMarkdown(const std::vector<ManualPage>& pages, const std::vector<OpFacts>& ops);

// What examples begin with, in Python.
extern const char kExamplesBegin[];

}  // namespace thalweg::cli
