#include "cluster_view.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "handles.h"

namespace thalweg::cli {
namespace {

std::string Whole(double v) { return std::to_string(int64_t(v)); }

std::string Seconds(double s) {
  char text[32];
  if (s < 120) {
    std::snprintf(text, sizeof text, "%.1f s", s);
  } else if (s < 7200) {
    std::snprintf(text, sizeof text, "%.0f min", s / 60);
  } else {
    std::snprintf(text, sizeof text, "%.1f h", s / 3600);
  }
  return text;
}

std::string Rate(double v) {
  char text[32];
  std::snprintf(text, sizeof text, v < 100 ? "%.1f" : "%.0f", v);
  return text;
}

bool Answers(const JsonValue& task) { return task["error"].text().empty(); }

std::string DevicesText(const JsonValue& task) {
  std::string text;
  for (const JsonValue& d : task["devices"].items()) {
    const auto used = uint64_t(d["used_bytes"].number()), limit = uint64_t(d["limit_bytes"].number());
    const std::string& name = d["name"].text();
    const size_t at = name.find("device:");
    text += (text.empty() ? "" : ", ") + (at == name.npos ? name : name.substr(at + 7)) + " " + BytesText(used);
    if (limit) text += " of " + BytesText(limit);
  }
  return text;
}

const JsonValue* Find(const JsonValue& tasks, const std::string& name) {
  for (const JsonValue& t : tasks["tasks"].items()) {
    if (ShortName(t) == name) return &t;
  }
  return nullptr;
}

const JsonValue* FindRun(const JsonValue& task, const JsonValue& like) {
  for (const JsonValue& r : task["running"].items()) {
    if (r["session"].text() == like["session"].text() && r["step"].number() == like["step"].number()) return &r;
  }
  return nullptr;
}

// Follows the chain of waiting tasks from `task` to its end: "worker:0 waits for worker:1 waits for
// ps:0".
std::string Line(const JsonValue& tasks, const JsonValue& task, const JsonValue& run) {
  std::string text = ShortName(task);
  std::set<std::string> seen = {text};
  for (const JsonValue* r = &run; r && !(*r)["waits_for"].items().empty();) {
    const std::string next = ShortName((*r)["waits_for"].items()[0]["from"].text());
    text += " waits for " + next;
    if (!seen.insert(next).second) return text + ": they wait for each other";
    const JsonValue* t = Find(tasks, next);
    if (t && !Answers(*t)) return text + ", which does not answer";
    r = t ? FindRun(*t, run) : nullptr;
    if (!r) return text + ", which does not run the step";
  }
  return text + ", which is in its operations";
}

}  // namespace

std::string ShortName(const JsonValue& task) { return task["job"].text() + ":" + Whole(task["task"].number()); }

std::string ShortName(const std::string& title) {
  const size_t job = title.find("/job:"), task = title.find("/task:"), end = title.find(' ', task);
  if (job == title.npos || task == title.npos) return title;
  return title.substr(job + 5, task - job - 5) + ":" + title.substr(task + 6, end == title.npos ? end : end - task - 6);
}

std::string StatusText(const JsonValue& tasks) {
  std::vector<std::vector<std::string>> rows = {{"TASK", "ADDRESS", "INCARNATION", "UP", "STEPS", "SESSIONS", "MEMORY", "DEVICES"}};
  std::vector<std::vector<std::string>> moved = {{"TO", "FROM", "VALUES", "BYTES"}};
  std::string waits, confined;
  for (const JsonValue& t : tasks["tasks"].items()) {
    if (!Answers(t)) {
      rows.push_back({Coloured(kRed, ShortName(t)), t["address"].text(), Coloured(kRed, t["error"].text())});
      continue;
    }
    rows.push_back({Coloured(kBold, ShortName(t)), t["address"].text(), t["incarnation"].text(), Seconds(t["age_s"].number()),
                    Whole(t["steps"].number()), Whole(t["sessions"].number()), BytesText(uint64_t(t["memory_bytes"].number())),
                    DevicesText(t)});
    if (const std::string& by = t["sandbox"].text(); !by.empty()) confined += ShortName(t) + " has its clients in sandboxes: " + by + "\n";
    for (const JsonValue& p : t["received"].items()) {
      moved.push_back({ShortName(t), ShortName(p["from"].text()), Whole(p["values"].number()), BytesText(uint64_t(p["bytes"].number()))});
    }
    for (const JsonValue& r : t["running"].items()) {
      waits += "step " + Whole(r["step"].number()) + ", " + Seconds(r["age_s"].number()) + " old, still for " +
               Seconds(r["idle_s"].number()) + ": " + Line(tasks, t, r) + "\n";
    }
  }
  std::string text = Table(rows);
  if (moved.size() > 1) text += "\n" + Table(moved);
  if (!waits.empty()) text += "\n" + waits;
  if (!confined.empty()) text += "\n" + confined;
  return text;
}

std::string RatesText(const JsonValue& before, const JsonValue& now, double seconds) {
  std::vector<std::vector<std::string>> rows = {{"TASK", "STEPS/S", "RUNNING", "MEMORY", "RECEIVED/S"}};
  for (const JsonValue& t : now["tasks"].items()) {
    const JsonValue* old = Find(before, ShortName(t));
    const bool same = old && Answers(*old) && (*old)["incarnation"].text() == t["incarnation"].text();
    if (!Answers(t)) {
      rows.push_back({Coloured(kRed, ShortName(t)), Coloured(kRed, t["error"].text())});
      continue;
    }
    std::map<std::string, double> had;
    for (const JsonValue& p : same ? (*old)["received"].items() : std::vector<JsonValue>()) had[p["from"].text()] = p["bytes"].number();
    std::string from;
    for (const JsonValue& p : t["received"].items()) {
      const double rate = (p["bytes"].number() - had[p["from"].text()]) / seconds;
      if (rate > 0) from += (from.empty() ? "" : ", ") + BytesText(uint64_t(rate)) + " from " + ShortName(p["from"].text());
    }
    const double steps = t["steps"].number() - (same ? (*old)["steps"].number() : 0);
    rows.push_back({Coloured(kBold, ShortName(t)), Rate(steps / seconds), std::to_string(t["running"].items().size()),
                    BytesText(uint64_t(t["memory_bytes"].number())), from});
  }
  return Table(rows);
}

std::vector<std::string> Ailments(const JsonValue& tasks, double stuck) {
  std::vector<std::string> all;
  std::map<std::string, std::string> versions;
  for (const JsonValue& t : tasks["tasks"].items()) {
    const std::string name = ShortName(t);
    if (!Answers(t)) {
      all.push_back(t["error"].text());
      continue;
    }
    versions[t["version"].text()] += (versions[t["version"].text()].empty() ? "" : ", ") + name;
    for (const JsonValue& r : t["running"].items()) {
      if (r["idle_s"].number() < stuck) continue;
      all.push_back("step " + Whole(r["step"].number()) + " has come no further for " + Seconds(r["idle_s"].number()) + ": " +
                    Line(tasks, t, r));
    }
  }
  if (versions.size() > 1) {
    std::string text;
    for (const auto& [version, names] : versions) text += (text.empty() ? "" : "; ") + version + " at " + names;
    all.push_back("the tasks run different versions: " + text + "; use one");
  }
  return all;
}

}  // namespace thalweg::cli
