// Pages about ops: the registry's facts joined with the manual's text, for a terminal or as
// Markdown.
#pragma once
#include <string>
#include <vector>

#include "json_value.h"
#include "manual.h"

namespace thalweg::cli {

// The registry's facts about an op: an object of tw_ops_json.
using OpFacts = JsonValue;

// Formats one op for a terminal. entry, page: NULL if the manual has none. Names the plugin of each
// kernel.
std::string OpText(const OpFacts& op, const ManualEntry* entry, const ManualPage* page);

// Returns a line for each disagreement between manual and registry: an op without an entry; an op,
// argument or attribute that only one of them has; an entry without a meaning, shapes, errors, or
// an example for each of its ops.
std::vector<std::string> Disagreements(const std::vector<ManualPage>& pages, const std::vector<OpFacts>& ops);

// Formats a page of the manual with its ops in full. REQUIRES: no disagreements.
std::string PageMarkdown(const ManualPage& page, const std::vector<OpFacts>& ops);

// Formats the index page: every op with a link and a one-line summary.
std::string IndexMarkdown(const std::vector<ManualPage>& pages, const std::vector<OpFacts>& ops);

// The Python lines with which examples begin.
extern const char kExamplesBegin[];

}  // namespace thalweg::cli
