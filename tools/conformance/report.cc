#include "tools/conformance/report.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "framework/json/json.h"
#include "framework/json/utf8.h"
#include "tools/conformance/rules.h"

namespace thalweg::conformance {
namespace {

constexpr const char* kWords[] = {"pass", "none", "skip", "fail"};

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

// Returns a text such as ", ran 3 of 5 kernels"; empty for a check on one subject.
std::string Ran(const Outcome& o) { return o.of ? StrCat(", ran ", o.ran, " of ", o.of, " ", o.unit) : std::string(); }

// Quotes a value of an XML attribute, in one line.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : OneLine(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out + "\"";
}

// Returns the templates of cases that checks requested, by op.
std::map<std::string, std::string> Wanted(const std::vector<Result>& results) {
  std::map<std::string, std::string> all;
  for (const Result& r : results) all.insert(r.wanted.begin(), r.wanted.end());
  return all;
}

// Returns the text of a case file with these templates.
std::string WantedText(const Options& options, const std::map<std::string, std::string>& wanted) {
  constexpr size_t kShown = 12;
  std::string text = StrCat("No case could be made up for ", wanted.size(), wanted.size() == 1 ? " op" : " ops", ". Write values that ",
                            wanted.size() == 1 ? "it takes" : "they take", " and put this into '", options.cases, "':\n{\"ops\": {\n");
  size_t n = 0;
  for (const auto& [op, json] : wanted) {
    text += StrCat("  ", JsonQuote(op), ": [", json, "]");
    if (++n == std::min(kShown, wanted.size())) break;
    text += ",\n";
  }
  text += "\n}}\n";
  if (wanted.size() > kShown) text += StrCat("and ", wanted.size() - kShown, " ops more, which --json lists.\n");
  return text;
}

}  // namespace

std::string TextLine(const Result& r) {
  const Outcome& o = r.outcome;
  std::string line = StrCat(kWords[o.kind], " ", Number(r.rule), " ");
  if (!r.host.empty()) line += StrCat("[", r.host, "] ");
  if (!r.subject.empty()) line += StrCat(r.subject, ": ");
  line += StrCat(RuleText(r.rule), Ran(o));
  if (!o.why.empty()) line += StrCat(o.of ? "; " : ": ", OneLine(o.why));
  return line + "\n";
}

bool Keeps(const Options& options, const std::vector<Result>& results, int level) {
  return std::none_of(results.begin(), results.end(), [&](const Result& r) {
    const Outcome::Kind kind = r.outcome.kind;
    return r.rule / 100 == level && (kind == Outcome::kFail || (kind == Outcome::kSkip && !options.allow_skips));
  });
}

bool KeepsAll(const Options& options, const std::vector<Result>& results) {
  for (int level = 0; level <= options.level; ++level) {
    if (!Keeps(options, results, level)) return false;
  }
  return true;
}

std::string Summary(const Options& options, const std::vector<Result>& results) {
  const int64_t skipped = Count(results, Outcome::kSkip);
  const std::map<std::string, std::string> wanted = Wanted(results);
  std::string text = wanted.empty() ? std::string() : WantedText(options, wanted);
  text += StrCat(Count(results, Outcome::kPass), " passed, ", Count(results, Outcome::kNone), " with nothing to check, ", skipped,
                 " skipped, ", Count(results, Outcome::kFail), " failed: '", options.file);
  if (KeepsAll(options, results)) {
    text += StrCat("' keeps the rules of level ", options.level);
    if (skipped) text += ", as far as they were checked: --allow-skips";
    return text + "\n";
  }
  text += StrCat(AnyFailed(results) ? "' breaks the rules of level " : "' is not known to keep the rules of level ", options.level);
  std::string lost;
  for (int level = 0; level <= options.level; ++level) {
    if (!Keeps(options, results, level)) lost += StrCat(lost.empty() ? "" : ", ", level);
  }
  text += StrCat("; levels not kept: ", lost, "\n");
  if (skipped) {
    text += StrCat(skipped, skipped == 1 ? " check did" : " checks did",
                   " not run on all that its rule speaks of, see the lines that begin with 'skip';",
                   " supply what they ask for, or say --allow-skips\n");
  }
  return text;
}

std::string JsonText(const Options& options, const std::vector<Result>& results) {
  Json json;
  json.Object().Text("file", options.file).Number("level", options.level).Bool("kept", KeepsAll(options, results));
  json.Number("passed", Count(results, Outcome::kPass)).Number("none", Count(results, Outcome::kNone));
  json.Number("skipped", Count(results, Outcome::kSkip)).Number("failed", Count(results, Outcome::kFail)).Array("levels");
  for (int level = 0; level <= options.level; ++level)
    json.Object().Number("level", level).Bool("kept", Keeps(options, results, level)).End();
  json.End().Array("results");
  for (const Result& r : results) {
    const Outcome& o = r.outcome;
    json.Object().Number("rule", r.rule).Text("text", RuleText(r.rule)).Text("host", r.host).Text("subject", r.subject);
    json.Text("result", kWords[o.kind]).Text("why", o.why);
    if (o.of) {
      json.Number("ran", o.ran).Number("of", o.of).Text("unit", o.unit).Array("missed");
      for (const Missed& m : o.missed) json.Object().Text("what", m.what).Text("why", m.why).End();
      json.End();
    }
    json.End();
  }
  json.End().Text("cases", options.cases).Object("wanted");
  for (const auto& [op, template_case] : Wanted(results)) json.Array(op).Raw("", template_case).End();
  json.End().End();
  return json.text();
}

std::string JunitText(const Options& options, const std::vector<Result>& results) {
  const bool skips_fail = !options.allow_skips;
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=" + Quoted(options.file) + ">\n";
  for (int level = 0; level <= options.level; ++level) {
    std::string cases;
    int64_t tests = 0, failures = 0, skips = 0;
    for (const Result& r : results) {
      if (r.rule / 100 != level) continue;
      const Outcome& o = r.outcome;
      const std::string name = StrCat(Number(r.rule), r.host.empty() ? "" : " [" + r.host + "]", r.subject.empty() ? "" : " " + r.subject);
      cases += StrCat("    <testcase classname=", Quoted(StrCat("level", level, ".rule", Number(r.rule))), " name=", Quoted(name), ">");
      const std::string why = Quoted(StrCat(RuleText(r.rule), Ran(o), ": ", o.why));
      const bool failed = o.kind == Outcome::kFail || (o.kind == Outcome::kSkip && skips_fail);
      if (failed) cases += StrCat("<failure type=\"", o.kind == Outcome::kFail ? "broken" : "skipped", "\" message=", why, "/>");
      const bool skipped = !failed && !o.passed();
      if (skipped) cases += StrCat("<skipped message=", why, "/>");
      cases += "</testcase>\n";
      ++tests;
      failures += failed;
      skips += skipped;
    }
    text += StrCat("  <testsuite name=\"level ", level, "\" tests=\"", tests, "\" failures=\"", failures, "\" errors=\"0\" skipped=\"",
                   skips, "\">\n", cases, "  </testsuite>\n");
  }
  return text + "</testsuites>\n";
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
