// A sub-command: its table of options, from which the parser and --help are made, and what it does. One file per sub-command.
//
// Exit status, the same for all: 0 done and good; 1 it failed, or found what it looks for (a damaged checkpoint, an ailing machine);
// 2 wrong arguments. Errors go to standard error as "thalweg NAME: what was wrong".
#pragma once
#include <map>
#include <string>
#include <vector>

namespace thalweg::cli {

enum Exit { kGood = 0, kFailed = 1, kUsage = 2 };

struct Option {
  const char* name;   // "--feed"
  const char* value;  // what the value is called in --help, of which completion makes what to offer; NULL: a flag
  const char* help;
};

class Args {
 public:
  bool has(const std::string& option) const { return values_.count(option) > 0; }
  // All values of an option, in order; none if it was not given.
  const std::vector<std::string>& all(const std::string& option) const;
  // The last value, or `other`.
  std::string get(const std::string& option, const std::string& other = "") const;
  // The last value as a number of at least `least`, or `other`. Throw UsageError naming the option.
  int64_t integer(const std::string& option, int64_t other, int64_t least) const;
  double number(const std::string& option, double other, double least) const;
  // The same with one more value of an option.
  Args with(const std::string& option, const std::string& value) const;
  const std::vector<std::string>& positional() const { return positional_; }

 private:
  friend struct Command;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
};

// Wrong arguments: main prints the text and where to find help, and exits with kUsage.
struct UsageError {
  std::string text;
};

struct Command {
  const char* name;
  const char* positional;  // "GRAPH", "verify|list PREFIX"; "" for none
  const char* summary;     // one line
  const char* details;     // below the options in --help; may be ""
  std::vector<Option> options;
  size_t min_positional, max_positional;
  int (*run)(const Args& args);

  // Throws UsageError.
  Args Parse(const std::vector<std::string>& words) const;
  std::string Help() const;
};

// All of them, in the order of --help.
const std::vector<const Command*>& Commands();

const Command& RunCommand();
const Command& BenchCommand();
const Command& InspectCommand();
const Command& PlotCommand();
const Command& TraceCommand();
const Command& OpsCommand();
const Command& PluginsCommand();
const Command& NewCommand();
const Command& DevicesCommand();
const Command& CkptCommand();
const Command& DoctorCommand();
const Command& CompletionCommand();
const Command& WorkerCommand();
const Command& LaunchCommand();
const Command& ClusterCommand();

}  // namespace thalweg::cli
