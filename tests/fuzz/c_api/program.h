// A fuzz input as a program of C API calls: one call per line, the function's name and its
// arguments.
//
//     tw_graph_create 0
//     tw_scope_create 1 "head"
//     tw_scope_placeholder 1 "x" 1 ( -1 3 ) 2
//     tw_scope_op2 1 "Add" v1 v1
//
// A handle is a number: 0 is NULL, n is the n-th live handle of its kind, modulo their number; `v2`
// is the second value that a call returned. Lists are in parentheses, texts in quotes, `-` is NULL
// for lists and outputs; missing arguments are 0. A list has eight valid entries whatever the
// program says, and a length is limited to that, since wrong lengths violate the contract. So do
// uses of destroyed objects; therefore the program records which objects belong to which graph, and
// ends them together.
// Threads: one; the runtime's threads call `Waiting`.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/fuzz/broken.h"
#include "thalweg/thalweg.h"

namespace thalweg::fuzz {

// Every kind of handle that is created and ended: the function that ends it, and whether it must
// not outlive its graph or session.
#define FUZZ_HANDLES(X)                                  \
  X(tw_runtime, tw_runtime_release, false)               \
  X(tw_graph, tw_graph_destroy, false)                   \
  X(tw_scope, EndScope, true)                            \
  X(tw_op, tw_op_destroy, true)                          \
  X(tw_block, tw_block_destroy, true)                    \
  X(tw_session, tw_session_destroy, false)               \
  X(tw_server, tw_server_destroy, false)                 \
  X(tw_callable, tw_callable_destroy, true)              \
  X(tw_partial_run, tw_partial_run_destroy, true)        \
  X(tw_cancel_token, tw_cancel_token_destroy, false)     \
  X(tw_tensor, tw_tensor_release, false)                 \
  X(tw_buffer, tw_buffer_release, false)                 \
  X(tw_status, tw_status_release, false)                 \
  X(tw_ops, tw_ops_destroy, false)                       \
  X(tw_devices, tw_devices_destroy, false)               \
  X(tw_plugins, tw_plugins_destroy, false)               \
  X(tw_variables, tw_variables_destroy, true)            \
  X(tw_checkpoint, tw_checkpoint_close, false)           \
  X(tw_checkpointer, tw_checkpointer_destroy, true)      \
  X(tw_saver, tw_saver_destroy, true)                    \
  X(tw_iterator, tw_iterator_destroy, false)             \
  X(tw_model, tw_model_destroy, false)                   \
  X(tw_record_writer, tw_record_writer_destroy, false)   \
  X(tw_summary_writer, tw_summary_writer_destroy, false) \
  X(tw_lbfgs, tw_lbfgs_destroy, true)                    \
  X(tw_step_stats, tw_step_stats_destroy, false)         \
  X(tw_restore_report, tw_restore_report_destroy, false) \
  X(tw_spread, tw_spread_destroy, false)                 \
  X(tw_sync, tw_sync_destroy, false)                     \
  X(tw_tape, tw_tape_destroy, false)                     \
  X(tw_trainer, tw_trainer_destroy, true)                \
  X(tw_host_call, EndHostCall, false)                    \
  X(tw_eager, tw_eager_destroy, false)

inline void EndScope(tw_scope* scope) { tw_status_release(tw_scope_finish(scope)); }
inline void EndHostCall(tw_host_call* call) { tw_host_call_fail(call, TW_CANCELLED, "the program has ended", 0); }
#define X(type, end, owned) \
  inline void End(type* handle) { end(handle); }
FUZZ_HANDLES(X)
#undef X

// The live handles of one kind, each with the graph or session that it must not outlive.
template <class T>
struct Pool {
  struct Entry {
    T* handle = nullptr;
    const void* owner = nullptr;
  };
  std::vector<Entry> all;
  static constexpr size_t kMost = 12;

  Entry Get(uint64_t n) const { return n == 0 || all.empty() ? Entry{} : all[size_t((n - 1) % all.size())]; }
  void Forget(const T* handle) {
    std::erase_if(all, [&](const Entry& e) { return e.handle == handle; });
  }
};

// Asynchronous runs in progress; their callbacks count them down.
struct Waiting {
  static void Started();
  static void Ended(void* user, tw_status* status, tw_tensor** fetches);
  static void ForAll();
};

class Program {
 public:
  explicit Program(std::string folder) : folder_(std::move(folder)) {}
  ~Program();
  Program(const Program&) = delete;
  // Runs one line; ignores a line that names no function.
  void Line(std::string_view line);

  // ---- Arguments, in the order of the line ----
  uint64_t Number();
  double Real();
  tw_string String();  // NULL for 0
  const char* Text() { return String().data; }
  const char* Path();                      // in the program's folder
  const char* Cluster();                   // JSON with ' for "; addresses `unix:NAME` are this process's own
  const char* Target(const char* option);  // the same, for an option that may be `target=unix:NAME`
  bool Null();                             // true if the next word is `-`; consumes it
  const tw_operation* Operation();
  template <class T>
  T* Handle();
  // Reads the elements of a list with `draw`, and pads it with zeros. NULL for `-` and for anything
  // but a list.
  template <class T, class F>
  T* List(F&& draw);
  const void* Bytes();  // of a text, or of buffer n
  const tw_signature* Signature();
  const tw_function_spec* FunctionSpec();
  const tw_run_options* RunOptions();
  const tw_import_options* ImportOptions();
  // A record of `size` bytes: zeros, or the numbers of the line.
  const void* Options(uint32_t size, bool numbers);
  uint32_t Size(uint32_t real);  // 0 means `real`
  // Draws an argument of type T.
  template <class T>
  T Draw();

  // ---- Results ----
  void Note(tw_status* status);
  void NoteScope(uint32_t code) { failed_ = failed_ || code != TW_OK; }  // scopes keep their failures
  void Read(const char* text);
  void Read(const void* bytes, uint64_t n);
  void Keep(uint64_t value);
  void Keep(const tw_operation* operation, const void* graph);
  template <class T>
  void Keep(T* handle);
  template <class T>
  T* Taken(T* handle);  // forgets the handle without ending it
  template <class T>
  void Finish(T* handle);  // ends it after all handles that must not outlive it
  bool failed() const { return failed_; }
  const void* owner() const { return owner_; }
  template <class T>
  Pool<T>& pool() {
    return std::get<Pool<T>>(pools_);
  }

  // Memory that a call may write to or borrow until the program ends.
  template <class T>
  T* Memory(size_t n = 1) {
    memory_.emplace_back(n * sizeof(T) + 16);
    return reinterpret_cast<T*>(memory_.back().data());
  }

  static constexpr size_t kList = 8;
  static constexpr uint64_t kBytes = 4096;  // size of every `const void*` argument

 private:
  struct Word {
    std::string text;
    bool quoted = false;
  };
  void Split(std::string_view line);
  const Word* Peek() const { return at_ < words_.size() ? &words_[at_] : nullptr; }
  void EndOwned(const void* owner);
  const char* Own(std::string text);  // replaces its addresses by addresses below the folder
  uint64_t Limited(uint64_t n);

#define X(type, end, owned) Pool<type>,
  std::tuple<FUZZ_HANDLES(X) int> pools_;
#undef X
  std::vector<std::pair<const tw_operation*, const void*>> operations_;
  std::vector<uint64_t> values_;
  const std::string folder_;
  std::vector<Word> words_;
  size_t at_ = 0;
  std::deque<std::vector<unsigned char>> memory_;
  const void* owner_ = nullptr;  // owner of the objects that this line makes
  uint64_t limit_ = UINT64_MAX;  // limit of the length that may follow
  bool after_text_ = false;
  bool failed_ = false;
};

// The numbers of calls and of successful calls by all programs so far, by function.
struct Count {
  uint64_t made = 0, succeeded = 0;
};
std::map<std::string_view, Count>& Counts();

using Function = void (*)(Program& p);
// Returns every exported function, by name.
const std::map<std::string_view, Function>& Functions();

}  // namespace thalweg::fuzz
