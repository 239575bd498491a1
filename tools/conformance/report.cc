#include "tools/conformance/report.h"

#include <algorithm>
#include <cstdio>

#include "framework/json/json.h"
#include "framework/json/utf8.h"
#include "tools/conformance/rules.h"

namespace thalweg::conformance {
namespace {

constexpr const char* kWords[] = {"pass", "skip", "fail"};

int64_t Count(const std::vector<Result>& results, Outcome::Kind kind) {
  return std::count_if(results.begin(), results.end(), [&](const Result& r) { return r.outcome.kind == kind; });
}

std::string Number(int rule) {
  char text[16];
  std::snprintf(text, sizeof text, "%03d", rule);
  return text;
}

std::string_view RuleText(int number) {
  const Rule* rule = FindRule(number);
  return rule ? rule->text : std::string_view();
}

}  // namespace

std::string TextLine(const Result& r) {
  std::string line = StrCat(kWords[r.outcome.kind], " ", Number(r.rule), " ");
  if (!r.host.empty()) line += StrCat("[", r.host, "] ");
  if (!r.subject.empty()) line += StrCat(r.subject, ": ");
  line += RuleText(r.rule);
  if (!r.outcome.why.empty()) line += StrCat(": ", OneLine(r.outcome.why));
  return line + "\n";
}

std::string Summary(const Options& options, const std::vector<Result>& results) {
  return StrCat(Count(results, Outcome::kPass), " passed, ", Count(results, Outcome::kSkip), " skipped, ", Count(results, Outcome::kFail),
                " failed: '", options.file, AnyFailed(results) ? "' breaks the rules" : "' keeps the rules", " of level ", options.level,
                "\n");
}

std::string JsonText(const Options& options, const std::vector<Result>& results) {
  Json json;
  json.Object().Text("file", options.file).Number("level", options.level);
  json.Number("passed", Count(results, Outcome::kPass)).Number("skipped", Count(results, Outcome::kSkip));
  json.Number("failed", Count(results, Outcome::kFail)).Array("results");
  for (const Result& r : results) {
    json.Object().Number("rule", r.rule).Text("text", RuleText(r.rule)).Text("host", r.host).Text("subject", r.subject);
    json.Text("result", kWords[r.outcome.kind]).Text("why", r.outcome.why).End();
  }
  json.End().End();
  return json.text();
}

std::string JsonError(const std::string& why) {
  Json json;
  json.Object().Text("error", why).End();
  return json.text();
}

std::string RuleList() {
  std::string text;
  for (const Rule& r : Rules()) text += StrCat(Number(r.number), " ", r.text, " (thalweg/plugin/", r.source, ")\n");
  return text;
}

bool AnyFailed(const std::vector<Result>& results) { return Count(results, Outcome::kFail) > 0; }

}  // namespace thalweg::conformance
