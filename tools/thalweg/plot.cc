// thalweg plot: draws measurements of training runs as an SVG chart.
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "chart.h"
#include "command.h"
#include "handles.h"
#include "json.h"
#include "series.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

bool Fits(const std::vector<std::string>& patterns, const std::string& name) {
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return fnmatch(p.c_str(), name.c_str(), 0) == 0; });
}

void KeepChosen(const Args& args, const std::string& path, SeriesSet* set) {
  if (set->series.empty()) throw std::runtime_error("'" + path + "' has no numbers over time");
  std::string tags;
  for (const Series& s : set->series) {
    if (tags.size() < 200 && (tags.empty() || !tags.ends_with(s.tag))) tags += (tags.empty() ? "" : ", ") + s.tag;
  }
  std::erase_if(set->series, [&](const Series& s) { return !Fits(args.all("--tag"), s.tag) || !Fits(args.all("--run"), s.run); });
  if (set->series.empty()) throw std::runtime_error("nothing in '" + path + "' fits --tag and --run; its tags are " + OneLine(tags));
}

// Replaces the steps by the seconds since the earliest measurement of all series.
void UseTime(SeriesSet* set) {
  double first = INFINITY;
  for (const Series& s : set->series) {
    for (const Measurement& m : s.points) first = std::min(first, m.time);
  }
  for (Series& s : set->series) {
    for (Measurement& m : s.points) m.step = m.time - first;
  }
  SortSeries(set);
}

void PrintJson(const SeriesSet& set) {
  Json json;
  json.Array();
  for (const Series& s : set.series) {
    json.Object().Text("run", s.run).Text("tag", s.tag).Array("points");
    for (const Measurement& m : s.points) json.Array().Real("", m.step).Real("", m.value).End();
    json.End().End();
  }
  std::fputs(json.End().text().c_str(), stdout);
}

int Run(const Args& args) {
  ChartStyle style;
  style.smoothing = args.number("--smooth", 0, 0);
  if (style.smoothing >= 1) throw UsageError{"--smooth takes a number from 0 to below 1, not '" + args.get("--smooth") + "'"};
  style.log_y = args.has("--log");
  style.columns = size_t(args.integer("--columns", 0, 1));
  const std::string x = args.get("--x");
  std::string path = args.positional()[0];
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const bool folder = std::filesystem::is_directory(path);
  if (folder && !x.empty() && x != "step" && x != "time") throw UsageError{"--x is step or time for a folder, not '" + x + "'"};
  SeriesSet set = folder ? ReadEventFolder(path) : ReadSeriesTable(path, x);
  KeepChosen(args, path, &set);
  if (folder && x == "time") UseTime(&set);
  for (const std::string& note : set.notes) std::fprintf(stderr, "thalweg plot: note: %s\n", OneLine(note).c_str());
  style.x_label = folder && x == "time" ? "seconds" : x.empty() ? "step" : OneLine(x);
  style.title = path.substr(path.rfind('/') + 1);
  args.has("--json") ? PrintJson(set) : WriteOutput(args.get("-o"), MakeChart(set, style));
  if (set.damaged) throw std::runtime_error(std::to_string(set.damaged) + (set.damaged == 1 ? " record is" : " records are") + " damaged");
  return kGood;
}

}  // namespace

const Command& PlotCommand() {
  static const Command command = {
      "plot",
      "LOGDIR|CSV",
      "Draws measurements of training runs as SVG: a panel for each tag, a line for each run.",
      "LOGDIR is a folder with event files as TensorBoard reads them; each folder in it is a run. CSV is a file with a line of\n"
      "column names; its steps are the column `step` or, without one, the numbers of the rows.\n"
      "Example: thalweg plot logs --tag 'loss*' --smooth 0.6 -o loss.svg\n",
      {{"-o", "FILE", "write to this file instead of standard output"},
       {"--tag", "PATTERN", "only tags (or columns) that fit, such as 'loss*'; may be repeated"},
       {"--run", "PATTERN", "only runs that fit; may be repeated"},
       {"--smooth", "PART", "draw a moving average: of each value, how much comes from those before it, 0 to below 1"},
       {"--log", nullptr, "values on a logarithmic axis"},
       {"--x", "NAME", "what lies on the other axis: step or time (seconds) or, for a CSV, a column"},
       {"--columns", "N", "panels side by side"},
       {"--json", nullptr, "print the numbers as JSON instead: [step, value] by run and tag"}},
      1,
      1,
      Run};
  return command;
}

}  // namespace thalweg::cli
