#include "tests/fuzz/c_api/program.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "tests/fuzz/c_api/draw.h"

namespace thalweg::fuzz {
namespace {

std::mutex waiting_mu;
std::condition_variable waiting_over;
int waiting = 0;

const bool shown = std::getenv("SHOW_CALLS") != nullptr;  // helps to debug one input

volatile unsigned sum;  // uses the bytes that are read

}  // namespace

std::map<std::string_view, Count>& Counts() {
  static std::map<std::string_view, Count> counts;
  return counts;
}

// ---- Runs without waiting ----

void Waiting::Started() {
  std::lock_guard lock(waiting_mu);
  ++waiting;
}

void Waiting::Ended(void* user, tw_status* status, tw_tensor** fetches) {
  const auto n = reinterpret_cast<uintptr_t>(user);
  for (uintptr_t i = 0; i < n; ++i) {
    if ((fetches[i] != nullptr) != (status == nullptr)) Broken("a run and its fetches disagree about its success");
    tw_tensor_release(fetches[i]);
  }
  tw_status_release(status);
  std::lock_guard lock(waiting_mu);
  --waiting;
  waiting_over.notify_all();
}

void Waiting::ForAll() {
  std::unique_lock lock(waiting_mu);
  waiting_over.wait(lock, [] { return waiting == 0; });
}

// ---- Lines ----

Program::~Program() {
  Waiting::ForAll();
  while (!pool<tw_graph>().all.empty()) Finish(pool<tw_graph>().all.back().handle);
#define X(type, end, owned) \
  for (auto& e : pool<type>().all) End(e.handle);
  FUZZ_HANDLES(X)
#undef X
}

void Program::Split(std::string_view line) {
  words_.clear();
  at_ = 0;
  for (size_t i = 0; i < line.size() && words_.size() < 64;) {
    if (line[i] == ' ') {
      ++i;
      continue;
    }
    const bool quoted = line[i] == '"';
    const size_t begin = i + (quoted ? 1 : 0), end = std::min(line.find(quoted ? '"' : ' ', begin), line.size());
    words_.push_back({std::string(line.substr(begin, end - begin)), quoted});
    i = end + 1;
  }
}

void Program::Line(std::string_view line) {
  Split(line);
  if (words_.empty()) return;
  const auto it = Functions().find(words_[at_++].text);
  if (it == Functions().end()) return;
  owner_ = nullptr;
  limit_ = UINT64_MAX;
  after_text_ = false;
  failed_ = false;
  it->second(*this);
  if (shown)
    std::fprintf(stderr, "%s  %.*s -> %zu values, %zu operations\n", failed_ ? "failed" : "ok    ", int(line.size()), line.data(),
                 values_.size(), operations_.size());
  Count& count = Counts()[it->first];
  ++count.made;
  if (!failed_) ++count.succeeded;
}

// ---- Arguments ----

uint64_t Program::Number() {
  const Word* word = Peek();
  if (!word || word->text == ")") return 0;
  ++at_;
  const char* text = word->text.c_str();
  if (text[0] != 'v') return text[0] == '-' ? uint64_t(std::strtoll(text, nullptr, 10)) : std::strtoull(text, nullptr, 10);
  const uint64_t n = std::strtoull(text + 1, nullptr, 10);
  return n == 0 || values_.empty() ? 0 : values_[size_t((n - 1) % values_.size())];
}

uint64_t Program::Limited(uint64_t n) {
  // A graph's value after a name is not a length.
  const bool value = after_text_ && at_ > 0 && at_ <= words_.size() && words_[at_ - 1].text[0] == 'v';
  const uint64_t limit = std::exchange(limit_, UINT64_MAX);
  after_text_ = false;
  return value ? n : std::min(n, limit);
}

double Program::Real() {
  const Word* word = Peek();
  if (!word || word->text == ")") return 0;
  ++at_;
  return std::strtod(word->text.c_str(), nullptr);
}

tw_string Program::String() {
  const Word* word = Peek();
  if (!word || !word->quoted) {
    Number();
    return {nullptr, 0};
  }
  ++at_;
  char* copy = Memory<char>(word->text.size() + 1);
  std::memcpy(copy, word->text.data(), word->text.size());
  return {copy, word->text.size()};
}

const char* Program::Path() {
  const tw_string name = String();
  if (!name.data) return nullptr;
  // Only paths inside the folder, or paths that cannot be written at all.
  std::string path(name.data, name.size);
  if (path.find("..") != path.npos || path.find('/') != path.npos) path = "/dev/null/" + path;
  path = path.empty() || path[0] == '/' ? path : folder_ + "/" + path;
  char* copy = Memory<char>(path.size() + 1);
  std::memcpy(copy, path.data(), path.size());
  return copy;
}

const char* Program::Cluster() {
  const tw_string json = String();
  if (!json.data) return nullptr;
  std::string text(json.data, json.size);
  std::replace(text.begin(), text.end(), '\'', '"');
  return Own(std::move(text));
}

const char* Program::Target(const char* option) { return option && std::string_view(option).starts_with("target=") ? Own(option) : option; }

const char* Program::Own(std::string text) {
  constexpr std::string_view kScheme = "unix:";
  for (size_t at = text.find(kScheme); at != text.npos; at = text.find(kScheme, at + kScheme.size())) {
    text.insert(at + kScheme.size(), folder_ + "/");
  }
  char* copy = Memory<char>(text.size() + 1);
  std::memcpy(copy, text.data(), text.size());
  return copy;
}

const void* Program::Bytes() {
  tw_string bytes{nullptr, 0};
  if (Peek() && Peek()->quoted) {
    bytes = String();
  } else if (const tw_buffer* buffer = Handle<tw_buffer>()) {
    bytes = {tw_buffer_data(buffer), std::min(tw_buffer_bytes(buffer), kBytes)};
  }
  if (!bytes.data) return nullptr;
  auto* copy = Memory<char>(kBytes);
  std::memcpy(copy, bytes.data, bytes.size);
  limit_ = bytes.size;
  after_text_ = false;
  return copy;
}

bool Program::Null() {
  const Word* word = Peek();
  if (!word || word->text != "-") return false;
  ++at_;
  return true;
}

const tw_operation* Program::Operation() {
  const uint64_t n = Number();
  if (n == 0 || operations_.empty()) return nullptr;
  const auto& [operation, graph] = operations_[size_t((n - 1) % operations_.size())];
  if (!owner_) owner_ = graph;
  return operation;
}

uint32_t Program::Size(uint32_t real) {
  const uint64_t n = Number();
  return n == 0 ? real : uint32_t(n);
}

const tw_signature* Program::Signature() {
  if (Null()) return nullptr;
  // Larger than the record, so that a program may set a larger size.
  auto* s = reinterpret_cast<tw_signature*>(Memory<unsigned char>(4 * sizeof(tw_signature)));
  s->size = Size(sizeof *s);
  s->feeds = Draw<const tw_output*>();
  s->n_feeds = Draw<uint32_t>();
  s->fetches = Draw<const tw_output*>();
  s->n_fetches = Draw<uint32_t>();
  s->targets = Draw<const tw_operation* const*>();
  s->n_targets = Draw<uint32_t>();
  s->flags = uint32_t(Number());
  return s;
}

const tw_function_spec* Program::FunctionSpec() {
  if (Null()) return nullptr;
  auto* s = reinterpret_cast<tw_function_spec*>(Memory<unsigned char>(4 * sizeof(tw_function_spec)));
  s->size = Size(sizeof *s);
  s->name = Draw<const char*>();
  s->args = Draw<const tw_output*>();
  s->n_args = Draw<uint32_t>();
  s->results = Draw<const tw_output*>();
  s->n_results = Draw<uint32_t>();
  s->targets = Draw<const tw_operation* const*>();
  s->n_targets = Draw<uint32_t>();
  s->make_unique = uint32_t(Number());
  s->flags = uint32_t(Number());
  return s;
}

const tw_run_options* Program::RunOptions() {
  auto* o = reinterpret_cast<tw_run_options*>(Memory<unsigned char>(4 * sizeof(tw_run_options)));
  const bool null = Null();
  if (!null) {
    o->size = Size(sizeof *o);
    o->timeout_ns = int64_t(Number());
    o->cancel = Handle<tw_cancel_token>();
    o->flags = uint32_t(Number());
    o->stats = Handle<tw_step_stats>();
  } else {
    o->size = sizeof *o;
  }
  if (o->timeout_ns == 0 || o->timeout_ns > 1'000'000'000) o->timeout_ns = 1'000'000'000;  // every input ends soon
  return o;
}

const tw_import_options* Program::ImportOptions() {
  if (Null()) return nullptr;
  auto* o = reinterpret_cast<tw_import_options*>(Memory<unsigned char>(4 * sizeof(tw_import_options)));
  o->size = Size(sizeof *o);
  o->prefix = Text();
  o->device = Text();
  o->flags = uint32_t(Number());
  return o;
}

const void* Program::Options(uint32_t size, bool numbers) {
  if (Null()) return nullptr;
  auto* record = Memory<unsigned char>(4 * size);
  const uint32_t said = Size(size);
  std::memcpy(record, &said, sizeof said);
  for (uint32_t at = 8; numbers && at < size && Peek(); at += 8) {
    const bool real = Peek()->text.find('.') != std::string::npos;
    const uint64_t cell = real ? std::bit_cast<uint64_t>(Real()) : Number();
    std::memcpy(record + at, &cell, sizeof cell);
  }
  return record;
}

// ---- Results ----

void Program::Note(tw_status* status) {
  failed_ = status != nullptr;
  if (!status) return;
  if (shown) std::fprintf(stderr, "%s: ", tw_status_message(status));
  const uint32_t code = tw_status_code(status);
  if (code == TW_OK || code > TW_UNAUTHENTICATED) Broken("a failure has code " + std::to_string(code));
  const std::string text = tw_status_message(status);
  if (text.empty() || text.find('\n') != text.npos) Broken("a failure's message is not one line: '" + text + "'");
  if (code == TW_INTERNAL) Broken("an invariant of the runtime broke: " + text);
  Read(tw_status_operation(status));
  Keep(status);
}

void Program::Read(const char* text) {
  if (text) sum = sum + unsigned(std::strlen(text));
}

void Program::Read(const void* bytes, uint64_t n) {
  for (uint64_t i = 0; bytes && i < n; ++i) sum = sum + static_cast<const unsigned char*>(bytes)[i];
}

void Program::Keep(uint64_t value) {
  if (value && values_.size() < 256) values_.push_back(value);
}

void Program::Keep(const tw_operation* operation, const void* graph) {
  if (operation && operations_.size() < 256) operations_.emplace_back(operation, graph);
}

void Program::EndOwned(const void* owner) {
  std::erase_if(operations_, [&](const auto& o) { return o.second == owner; });
#define X(type, end, owned)                                      \
  for (size_t i = pool<type>().all.size(); i-- > 0;) {           \
    if (i >= pool<type>().all.size()) continue;                  \
    const auto& e = pool<type>().all[i];                         \
    if (e.owner == owner && e.handle != owner) Finish(e.handle); \
  }
  FUZZ_HANDLES(X)
#undef X
}

}  // namespace thalweg::fuzz
