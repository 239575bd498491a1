#include "framework/io/checkpoint_state.h"

#include <charconv>

#include "absl/strings/escaping.h"

#include "framework/files/whole_file.h"

namespace thalweg {
namespace {

constexpr uint64_t kMostBytes = 16u << 20;
constexpr std::string_view kMetric = " metric ", kRemoved = " removed ", kPreserved = " preserved ";

std::string Path(const std::string& folder) { return StrCat(folder, "/checkpoint"); }

void PutNumber(double v, std::string* to) {
  char text[32];
  to->append(text, std::to_chars(text, text + sizeof(text), v).ptr);
}

void PutText(std::string_view field, std::string_view value, std::string* to) {
  to->append(StrCat(field, ": \"", absl::CEscape(AbslView(value)), "\""));
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsWord(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// A parser for Protocol Buffers' text format, restricted to a message of texts and numbers.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  StatusOr<CheckpointState> Run() {
    std::vector<double> times;
    for (SkipSpace(); !rest_.empty(); SkipSpace()) {
      const std::string_view field = Word(&IsWord);
      SkipSpace();
      if (field.empty() || !Take(':')) return Damage();
      SkipSpace();
      RETURN_IF_ERROR(Value(field, &times));
      if (!Take(',')) Take(';');
    }
    for (size_t i = 0; i < times.size() && i < state_.all.size(); ++i) state_.all[i].time = times[i];
    return std::move(state_);
  }

 private:
  Status Damage() const { return DataLoss("line ", line_, " is no field of a CheckpointState"); }
  void Drop(size_t n) {
    for (char c : rest_.substr(0, n)) line_ += c == '\n';
    rest_.remove_prefix(n);
  }
  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    Drop(1);
    return true;
  }
  std::string_view Word(bool (*belongs)(char)) {
    size_t n = 0;
    while (n < rest_.size() && belongs(rest_[n])) ++n;
    const std::string_view word = rest_.substr(0, n);
    Drop(n);
    return word;
  }
  void SkipBlanks() {
    while (!rest_.empty() && IsSpace(rest_[0])) Drop(1);
  }
  // A metric follows the name that it belongs to.
  void Comment(std::string_view comment) {
    double metric;
    std::string path;
    if (comment.starts_with(kMetric) && !state_.all.empty() && Number(comment.substr(kMetric.size()), &metric)) {
      state_.all.back().metric = metric;
    } else if (comment.starts_with(kRemoved) && absl::CUnescape(AbslView(comment.substr(kRemoved.size())), &path)) {
      state_.removed.push_back(path);
    } else if (comment.starts_with(kPreserved)) {
      Preserved(comment.substr(kPreserved.size()));
    }
  }
  // Parses a time and a name.
  void Preserved(std::string_view text) {
    const size_t space = text.find(' ');
    double time;
    std::string name;
    if (space == text.npos || !Number(text.substr(0, space), &time)) return;
    if (absl::CUnescape(AbslView(text.substr(space + 1)), &name)) state_.preserved[name] = time;
  }
  void SkipSpace() {
    for (;;) {
      SkipBlanks();
      if (rest_.empty() || rest_[0] != '#') return;
      const std::string_view comment = rest_.substr(1, rest_.find('\n') - 1);
      Comment(comment);
      Drop(std::min(comment.size() + 1, rest_.size()));
    }
  }
  static bool Number(std::string_view text, double* out) {
    return !text.empty() && std::from_chars(text.data(), text.data() + text.size(), *out).ptr == text.data() + text.size();
  }
  Status Value(std::string_view field, std::vector<double>* times) {
    const bool quoted = !rest_.empty() && (rest_[0] == '"' || rest_[0] == '\'');
    std::string text;
    double number = 0;
    if (quoted) {
      RETURN_IF_ERROR(Text(&text));
    } else if (!Number(Word([](char c) { return IsWord(c) || c == '.' || c == '+' || c == '-'; }), &number)) {
      return Damage();
    }
    if (field == "model_checkpoint_path" && quoted) state_.latest = text;
    if (field == "all_model_checkpoint_paths" && quoted) state_.all.push_back({text, 0, {}});
    if (field == "all_model_checkpoint_timestamps" && !quoted) times->push_back(number);
    if (field == "last_preserved_timestamp" && !quoted) state_.last_preserved = number;
    return Status();  // fields of later versions are ignored
  }
  // Adjacent texts form one text. A comment after them is parsed once they are stored.
  Status Text(std::string* out) {
    for (; !rest_.empty() && (rest_[0] == '"' || rest_[0] == '\''); SkipBlanks()) {
      size_t n = 1;
      while (n < rest_.size() && rest_[n] != rest_[0] && rest_[n] != '\n') n += rest_[n] == '\\' ? 2 : 1;
      std::string part;
      if (n >= rest_.size() || rest_[n] != rest_[0] || !absl::CUnescape(AbslView(rest_.substr(1, n - 1)), &part)) return Damage();
      out->append(part);
      Drop(n + 1);
    }
    return Status();
  }

  std::string_view rest_;
  int line_ = 1;
  CheckpointState state_;
};

}  // namespace

std::string CheckpointStateText(const CheckpointState& state) {
  std::string text;
  PutText("model_checkpoint_path", state.latest, &text);
  text += '\n';
  for (const SavedCheckpoint& c : state.all) {
    PutText("all_model_checkpoint_paths", c.path, &text);
    if (c.metric) {
      text += StrCat("  #", kMetric);
      PutNumber(*c.metric, &text);
    }
    text += '\n';
  }
  for (const SavedCheckpoint& c : state.all) {
    text += "all_model_checkpoint_timestamps: ";
    PutNumber(c.time, &text);
    text += '\n';
  }
  if (state.last_preserved != 0) {
    text += "last_preserved_timestamp: ";
    PutNumber(state.last_preserved, &text);
    text += '\n';
  }
  for (const auto& [name, time] : state.preserved) {
    text += StrCat("#", kPreserved);
    PutNumber(time, &text);
    text += StrCat(" ", absl::CEscape(AbslView(name)), "\n");
  }
  for (const std::string& path : state.removed) text += StrCat("#", kRemoved, absl::CEscape(AbslView(path)), "\n");
  return text;
}

StatusOr<CheckpointState> ParseCheckpointState(std::string_view text) { return Parser(text).Run(); }

StatusOr<CheckpointState> ReadCheckpointState(const std::string& folder, FileSystem& files) {
  const std::string path = Path(folder);
  ASSIGN_OR_RETURN(const auto file, files.Open(path));
  if (file->size() > kMostBytes) return DataLoss("'", path, "' has ", file->size(), " bytes; no list of checkpoints is that long");
  std::string text(file->size(), '\0');
  RETURN_IF_ERROR(file->ReadAt(0, text.data(), text.size()));
  auto state = ParseCheckpointState(text);
  if (state.ok() && state->latest.empty()) return DataLoss("'", path, "' names no checkpoint; it is torn");
  return state.ok() ? std::move(state) : Prefix(state.status(), StrCat("'", path, "':"));
}

Status WriteCheckpointState(const CheckpointState& state, const std::string& folder, FileSystem& files) {
  const std::string path = Path(folder);
  return ReplaceFile(path, TemporaryName(path, "state"), CheckpointStateText(state), files);
}

}  // namespace thalweg
