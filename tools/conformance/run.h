// Run: a child process that runs checks one after the other, and reports each to the parent before
// it begins and after it ends. On the parent's side, starts a new child after a check that failed,
// crashed or hung.
// Threads: the parent has none. In a child, checks run on its first thread.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/conformance/outcome.h"

namespace thalweg::conformance {

class CaseFile;

struct Options {
  std::string file;    // as the user wrote it
  std::string path;    // the same, absolute
  std::string folder;  // the working folder of checks; removed at the end with any files of plugins
  int level = 5;
  std::vector<int> rules;  // only these; empty: all of the level and below
  std::string at;          // where file systems and memberships are checked; empty: a default place of the plugin
  double limit = 20;       // seconds a check may take
  bool full = false;       // more cases, larger sizes, more cycles
  bool json = false, junit = false;
  bool allow_skips = false;                   // a level may count as kept although checks of it were skipped
  std::string cases;                          // the name of the file with the author's cases; the file may not exist
  std::shared_ptr<const CaseFile> case_file;  // NULL: there is none
  // Settings of the plugin: key and value.
  std::vector<std::pair<std::string, std::string>> settings;
};

struct Result {
  int rule = 0;
  std::string host;     // the host that was played; empty: the real one
  std::string subject;  // a device, an op, a role; may be empty
  Outcome outcome;
  std::map<std::string, std::string> wanted;  // templates of cases that the author may supply, as JSON, by op
};

class Run {
 public:
  using Body = std::function<Outcome()>;
  // Runs the check `body` of a rule. subject: the part of the plugin that it checks; empty: all of it. A
  // check that fails ends the child.
  void Check(int rule, const std::string& subject, const Body& body);
  // Returns true if the options select the rule.
  bool Wants(int rule) const;
  // Ends the child after all checks.
  [[noreturn]] void End() const;
  const Options& options() const { return options_; }

 private:
  friend std::vector<Result> RunChildren(const Options& options, const std::string& host, bool one_each,
                                         const std::function<void(Run&)>& checks);
  Run(const Options& options, int pipe, int from, bool one_each);
  // Ends this process if it is a copy that a function of the plugin forked.
  void EndCopies() const;
  void Tell(char what, const std::string& a, const std::string& b) const;
  const Options& options_;
  const int pipe_, from_, process_;
  const bool one_each_;
  int next_ = 0;
};

// Sets the current position of the check, which is part of the message if the plugin crashes or
// hangs there.
void At(const std::string& what);

// Requests a case of the op that the current check cannot generate. json: its template, see
// case_template.h.
void WantCase(const std::string& op, const std::string& json);

// Runs `checks` in children. `checks` must make the same checks in the same order each time. one_each: a
// new child for every check.
std::vector<Result> RunChildren(const Options& options, const std::string& host, bool one_each, const std::function<void(Run&)>& checks);

}  // namespace thalweg::conformance
