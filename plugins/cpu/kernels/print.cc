// PrintV2: writes a text to a stream of the process, to the log, or to the end of a file.
#include <cstdio>
#include <cstring>
#include <mutex>

#include "kernels/common/element.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void ToStream(FILE* stream, const char* name, const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stream) != text.size() || std::fflush(stream) != 0)
    throw tw::Error{TW_UNAVAILABLE, std::string("cannot write to ") + name + "; " + std::strerror(errno)};
}

// A file behind the host's file set, which may confine the node to a folder. It can be written only
// as a whole.
class File {
 public:
  File(const tw_frame* f, std::string_view path)
      : h_(f->host), payer_(f), path_(path), api_(static_cast<const tw_files_api*>(h_->query(h_, TW_S(TW_FILES_SET), 1))) {
    if (!api_) throw tw::Error{TW_UNIMPLEMENTED, "this runtime offers no files"};
  }
  void Append(const std::string& text) {
    // Serialises the read and write of nodes that print to one file. Other processes are not
    // covered.
    static std::mutex one_at_a_time;
    std::lock_guard lock(one_at_a_time);
    tw::Charge charge(payer_);
    const std::string whole = Contents(&charge) + text;
    tw::check(api_->write(h_, path_.data(), path_.size(), whole.data(), whole.size()));
  }

 private:
  std::string Contents(tw::Charge* charge) {
    tw_file* file = nullptr;
    if (tw_status* s = api_->open(h_, path_.data(), path_.size(), &file)) {
      if (h_->status->code(s) != TW_NOT_FOUND) throw tw::Raised{s};
      h_->status->release(s);
      return "";
    }
    std::string contents;
    try {
      charge->add(2 * api_->bytes(file));
      contents.resize(api_->bytes(file));
    } catch (...) {
      api_->close(file);
      throw;
    }
    tw_status* s = api_->read(file, 0, contents.data(), contents.size());
    api_->close(file);
    tw::check(s);
    return contents;
  }

  const tw_host* h_;
  const tw::Payer payer_;
  std::string_view path_;
  const tw_files_api* api_;
};

class Print {
 public:
  explicit Print(const tw::Node& n) : stream_(n.s("output_stream")), end_(n.s("end")) {}
  void operator()(tw::Frame f, tw::In<tw_string> input) const {
    const tw::Charge charge(f, 3 * input[0].size);
    const std::string text(input[0].data, input[0].size);
    const tw_host* h = f.f->host;
    if (stream_ == "stdout") return ToStream(stdout, "stdout", text + end_);
    if (stream_ == "stderr") return ToStream(stderr, "stderr", text + end_);
    if (stream_.rfind("file://", 0) == 0) return File(f.f, std::string_view(stream_).substr(7)).Append(text + end_);
    const uint32_t level = stream_ == "log(info)" ? 1 : stream_ == "log(warning)" ? 2 : 3;
    h->run->log(h, level, text.data(), text.size());  // the log ends lines by itself
  }

 private:
  std::string stream_, end_;
};

}  // namespace

void register_print(tw::Plugin& p) { p.kernel<Print>("PrintV2 @CPU; may_block"); }

}  // namespace thalweg::cpu
