// What the kernels share: the host's set "summary", and arguments. Threads: any.
#ifndef THALWEG_PLUGINS_SUMMARY_API_H_
#define THALWEG_PLUGINS_SUMMARY_API_H_

#include <string>
#include <string_view>

#include "thalweg/cpp/plugin.hpp"
#include "thalweg/plugin/summary.h"

namespace thalweg::summary {

[[noreturn]] inline void Invalid(std::string text) { throw tw::Error{TW_INVALID_ARGUMENT, std::move(text)}; }

inline const tw_summary_api& Api(const tw_host* h) {
  auto* api = static_cast<const tw_summary_api*>(h->query(h, TW_S(TW_SUMMARY_SET), 1));
  if (!api) throw tw::Error{TW_UNIMPLEMENTED, "this runtime writes no summaries"};
  return *api;
}

// A sink that collects a message.
struct Message : tw_sink {
  Message() : tw_sink{TW_SIZED(tw_sink), this, Put} {}
  Message(const Message&) = delete;
  std::string bytes;

 private:
  static tw_status* Put(tw_sink* s, const void* data, uint64_t n) {
    static_cast<Message*>(s->user)->bytes.append(static_cast<const char*>(data), n);
    return nullptr;
  }
};

inline std::string_view TextOf(const tw_string& s) { return {s.data, size_t(s.size)}; }

// The only element of an input.
template <class T>
const T& One(const tw::In<T>& in, const char* what) {
  if (in.size() != 1) Invalid("'" + std::string(what) + "' is " + tw::text(in.v->dims, in.v->rank) + "; it must be a scalar");
  return in[0];
}
inline std::string_view Tag(const tw::In<tw_string>& in) { return TextOf(One(in, "tag")); }

}  // namespace thalweg::summary

#endif  // THALWEG_PLUGINS_SUMMARY_API_H_
