// thalweg-conformance: checks whether a plugin keeps the rules of the ABI. See README.md.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "tools/conformance/case_file.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/report.h"
#include "tools/conformance/rules.h"

namespace thalweg::conformance {
namespace {

constexpr const char* kHelp = R"(usage: thalweg-conformance FILE.so [--level N] [--rule N]... [--full] [--at PLACE] [--limit SECONDS]
                            [--setting KEY=VALUE]... [--cases FILE] [--allow-skips] [--json | --junit]
       thalweg-conformance --list

Says whether a plugin keeps the rules of the ABI, by loading it into processes of its own and playing hosts of all kinds to it.

  --level N         up to this level: 0 loads and describes, 1 memory and copies, 2 kernels, 3 asynchrony and failures, 4 graph
                    compilers, 5 transports, file systems, collectives, membership,
                    importers (default 5)
  --rule N          this rule alone; may be given several times
  --full            more cases, larger sizes, more cycles
  --at PLACE        where a file system (scheme://folder) or a membership service (an address) may be tried, or a model
                    that an importer can load
  --setting K=V     a setting of the plugin, as the runtime option plugin.ID.K=V; may be given several times
  --cases FILE      cases and sample graphs of the author's, for what schemas cannot say; where this is not said, the file beside
                    the plugin whose name ends in .cases.json in place of .so. README.md of the kit has the form of it
  --limit SECONDS   that one check may take (default 20, with --full 200)
  --allow-skips     a level counts as kept although some of its checks were skipped
  --json            the report as JSON
  --junit           the report as XML in the form of JUnit
  --list            prints the rules

A level is kept if no rule of it is broken and each check of it ran on all that its rule speaks of.

Exit status: 0 all levels kept, 1 some level not kept, 2 the checks could not be made.
)";

bool json_wanted = false;

[[noreturn]] void Refuse(const std::string& why) {
  std::fprintf(stderr, "thalweg-conformance: %s\n", why.c_str());
  if (json_wanted) std::fputs(JsonError(why).c_str(), stdout);
  std::exit(2);
}

template <class T>
T Number(const std::string& option, const char* text) {
  T value{};
  const char* end = text ? text + std::strlen(text) : nullptr;
  if (!text || std::from_chars(text, end, value).ptr != end || value < 0) {
    Refuse(StrCat("option ", option, " takes a number, not '", text ? text : "", "'"));
  }
  return value;
}

Options Parse(int argc, char** argv) {
  Options o;
  std::optional<double> limit;
  json_wanted = std::any_of(argv + 1, argv + argc, [](const char* arg) { return std::strcmp(arg, "--json") == 0; });
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (arg == "--help" || arg == "-h") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    } else if (arg == "--list") {
      std::fputs(RuleList().c_str(), stdout);
      std::exit(0);
    } else if (arg == "--json") {
      o.json = true;
    } else if (arg == "--junit") {
      o.junit = true;
    } else if (arg == "--allow-skips") {
      o.allow_skips = true;
    } else if (arg == "--full") {
      o.full = true;
    } else if (arg == "--level") {
      o.level = Number<int>(arg, value);
      if (o.level > kHighestLevel) Refuse(StrCat("there is no level ", o.level, "; the highest is ", kHighestLevel));
      ++i;
    } else if (arg == "--rule") {
      o.rules.push_back(Number<int>(arg, value));
      if (!FindRule(o.rules.back())) Refuse(StrCat("there is no rule ", o.rules.back(), "; --list prints them all"));
      ++i;
    } else if (arg == "--at") {
      if (!value) Refuse("option --at takes a place");
      o.at = value;
      ++i;
    } else if (arg == "--setting") {
      const char* sign = value ? std::strchr(value, '=') : nullptr;
      if (!sign || sign == value) Refuse("option --setting takes KEY=VALUE");
      o.settings.emplace_back(std::string(value, sign), sign + 1);
      ++i;
    } else if (arg == "--cases") {
      if (!value) Refuse("option --cases takes a file");
      o.cases = value;
      ++i;
    } else if (arg == "--limit") {
      limit = Number<double>(arg, value);
      ++i;
    } else if (arg[0] == '-') {
      Refuse(StrCat("unknown option '", arg, "'; --help lists them"));
    } else if (o.file.empty()) {
      o.file = arg;
    } else {
      Refuse(StrCat("one file at a time: '", o.file, "' or '", arg, "'?"));
    }
  }
  if (o.file.empty()) Refuse("which file? --help says more");
  std::error_code wrong;
  if (access(o.file.c_str(), R_OK) != 0) Refuse(StrCat("cannot read '", o.file, "': ", std::strerror(errno)));
  if (!std::filesystem::is_regular_file(o.file, wrong)) Refuse(StrCat("'", o.file, "' is no file; name the plugin's shared library"));
  o.path = std::filesystem::absolute(o.file).string();
  if (std::filesystem::exists(o.at, wrong)) o.at = std::filesystem::absolute(o.at).string();
  const bool named = !o.cases.empty();
  if (!named) o.cases = CaseFile::Beside(o.file);
  if (named || std::filesystem::exists(o.cases, wrong)) {
    auto read = CaseFile::Read(o.cases);
    if (!read.ok()) Refuse(std::string(Message(read.status())));
    o.case_file = *std::move(read);
  }
  o.limit = limit.value_or(o.full ? 200 : 20);
  return o;
}

Play Named(const std::string& name) {
  Play p;
  p.name = name;
  return p;
}

// Returns the plays under which levels 1 and up run, the real host first.
std::vector<Play> Plays() {
  std::vector<Play> plays = {Play(), Named("newer"), Named("older"), Named("hasty"), Named("bare")};
  plays[1].newer = true;
  plays[2].older = true;
  plays[3].hasty = true;
  plays[4].stripped = kAllSets;
  const std::pair<const char*, uint32_t> sets[] = {
      {"without streams", kStreams},       {"without pinned", kPinned},   {"without peer", kPeer},       {"without events", kEvents},
      {"without statistics", kStatistics}, {"without capture", kCapture}, {"without profile", kProfile}, {"without dlpack", kDlpack}};
  for (const auto& [name, bit] : sets) {
    plays.push_back(Named(name));
    plays.back().stripped = bit;
  }
  return plays;
}

void CheckUnder(Run& run, const Play& play) {
  auto library = Library::Open(run.options().path);
  if (!library.ok()) return run.Check(1, "", [&] { return Outcome(library.status()); });
  if (play.newer && (*library)->Descriptor()->target > TW_MINOR) return;  // see rule 12
  Play with_settings = play;
  with_settings.settings = run.options().settings;
  auto world = World::Make(**library, with_settings);
  if (!world.ok()) return run.Check(7, "", [&] { return Outcome(world.status()); });
  // If the plugin has none of the sets to strip, the play equals the real host. If it has no others, the
  // play equals the one that strips all.
  if (play.stripped && !(SetsBrought() & play.stripped)) return;
  if (play.stripped && play.stripped != kAllSets && SetsBrought() == play.stripped) return;
  CheckMemory(run, **world);
  CheckFirstCalls(run, **world);
  CheckCases(run, **world);
  CheckKernels(run, **world);
  CheckKernelMemory(run, **world);
  CheckState(run, **world);
  CheckOps(run, **world);
  CheckStreams(run, **world);
  CheckKernelEnds(run, **world);
  CheckSets(run, **world);
  CheckCompilers(run, **world);
  CheckRewriters(run, **world);
  CheckFileSystems(run, **world);
  CheckTransports(run, **world);
  CheckCollectives(run, **world);
  CheckMemberships(run, **world);
  CheckImporters(run, **world);
  CheckProfilers(run, **world);
}

class Printer {
 public:
  explicit Printer(const Options& options) : options_(options) {}
  void Add(std::vector<Result> results) {
    for (Result& r : results) {
      if (!options_.json && !options_.junit) std::fputs(TextLine(r).c_str(), stdout);
      all_.push_back(std::move(r));
    }
    std::fflush(stdout);
  }
  bool Failed() const { return AnyFailed(all_); }
  bool Kept() const { return KeepsAll(options_, all_); }
  void End() const {
    const std::string text = options_.json    ? JsonText(options_, all_)
                             : options_.junit ? JunitText(options_, all_)
                                              : Summary(options_, all_);
    std::fputs(text.c_str(), stdout);
  }

 private:
  const Options& options_;
  std::vector<Result> all_;
};

// A temporary folder, which the destructor removes.
class Scratch {
 public:
  Scratch() {
    std::error_code none;
    std::string name = (std::filesystem::temp_directory_path(none) / "thalweg-conformance-XXXXXX").string();
    if (mkdtemp(name.data())) name_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!name_.empty()) std::filesystem::remove_all(name_, ignored);
  }
  Scratch(const Scratch&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

int Main(int argc, char** argv) {
  Options options = Parse(argc, argv);
  const Scratch scratch;
  if (scratch.name().empty())
    Refuse(StrCat("cannot make a temporary folder: ", std::strerror(errno), "; set TMPDIR to a place that can be written to"));
  options.folder = scratch.name();
  Printer printer(options);
  // If the plugin cannot be loaded or initialised, no other check can run.
  printer.Add(RunChildren(options, "", true, CheckLoads));
  if (!printer.Failed()) {
    printer.Add(RunChildren(options, "", true, [](Run& run) {
      CheckFile(run);
      CheckInit(run);
    }));
  }
  const bool sound = !printer.Failed();
  for (const Play& play : Plays()) {
    if (sound && options.level > 0) printer.Add(RunChildren(options, play.name, false, [&](Run& run) { CheckUnder(run, play); }));
  }
  printer.End();
  return printer.Kept() ? 0 : 1;
}

}  // namespace
}  // namespace thalweg::conformance

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--serve-peer") == 0) return thalweg::conformance::ServePeer(argv[2], argv[3]);
  return thalweg::conformance::Main(argc, argv);
}
