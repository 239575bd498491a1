// TextLineDataset: the lines of files, without their ends. FixedLengthRecordDatasetV2: pieces of
// one size.
#include <cstring>

#include "file.h"
#include "register.h"

namespace thalweg::data {
namespace {

class Lines final : public Format {
 public:
  // A line ends with \n, or with \r\n; the last one may have no end.
  bool Read(FileReader& in, const FileFacts*, Call& c, Element* out) const override {
    if (in.Peek(1).empty()) return false;
    uint64_t n = 0, seen = 0;
    std::string_view bytes;
    for (uint64_t want = kLook;; want *= 2) {
      bytes = in.Peek(want);
      const void* end = std::memchr(bytes.data() + seen, '\n', bytes.size() - seen);
      n = end ? uint64_t(static_cast<const char*>(end) - bytes.data()) : bytes.size();
      if (end || bytes.size() < want) break;
      seen = bytes.size();
    }
    const bool ended = n < bytes.size();
    std::string_view line = bytes.substr(0, n);
    if (ended && !line.empty() && line.back() == '\r') line.remove_suffix(1);
    *out = {c.MakeString(line)};
    in.Read(n + ended);
    return true;
  }
  void Describe(std::string* to) const override { *to += "TextLine"; }

 private:
  static constexpr uint64_t kLook = 512;
};

struct LinesMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    return FilesOf(in.Texts(0), std::make_shared<Lines>(), in.Text(1, "compression_type"), in.Int(2, "buffer_size"));
  }
};

class Pieces final : public Format {
 public:
  Pieces(uint64_t header, uint64_t record, uint64_t footer) : header_(header), record_(record), footer_(footer) {}
  std::unique_ptr<FileFacts> Start(FileReader& in, Call&) const override {
    if (in.packed()) {
      if (in.Read(header_).size() < header_)
        Fail(TW_DATA_LOSS, in.Where(0) + "the contents are shorter than a head of " + std::to_string(header_) + " bytes");
      return nullptr;
    }
    if (in.size() < header_ || in.size() - header_ < footer_ || (in.size() - header_ - footer_) % record_ != 0) {
      Fail(TW_DATA_LOSS, in.Where(0) + "the file has " + std::to_string(in.size()) + " bytes, which are not a head of " +
                             std::to_string(header_) + ", a foot of " + std::to_string(footer_) + " and whole records of " +
                             std::to_string(record_));
    }
    in.Seek(header_);
    return nullptr;
  }
  bool Read(FileReader& in, const FileFacts*, Call& c, Element* out) const override {
    if (!in.Has(record_ + footer_)) {
      if (in.packed() && in.Peek(record_ + footer_).size() != footer_) {
        Fail(TW_DATA_LOSS, in.Where(in.offset()) + "the contents end with " + std::to_string(in.Peek(record_ + footer_).size()) +
                               " bytes that are neither a record of " + std::to_string(record_) + " nor a foot of " +
                               std::to_string(footer_));
      }
      return false;
    }
    *out = {c.MakeString(in.Read(record_))};
    return true;
  }
  void Describe(std::string* to) const override { *to += "FixedLength(" + std::to_string(record_) + ")"; }

 private:
  const uint64_t header_, record_, footer_;
};

struct PiecesMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    const auto size = [&](uint32_t a, const char* what, int64_t least) {
      const int64_t n = in.Least(a, what, least);
      if (n > int64_t{1} << 40) Invalid("'" + std::string(what) + "' is " + tw::text(n) + ", which is more than 2^40");
      return uint64_t(n);
    };
    auto pieces = std::make_shared<Pieces>(size(1, "header_bytes", 0), size(2, "record_bytes", 1), size(3, "footer_bytes", 0));
    return FilesOf(in.Texts(0), std::move(pieces), in.Text(5, "compression_type"), in.Int(4, "buffer_size"));
  }
};

}  // namespace

void register_lines(tw::Plugin& p) {
  AddDataset<LinesMaker>(p, "TextLineDataset(string, string, int64 -> variant) @CPU");
  AddDataset<PiecesMaker>(p, "FixedLengthRecordDatasetV2(string, int64, int64, int64, int64, string -> variant) @CPU");
}

}  // namespace thalweg::data
