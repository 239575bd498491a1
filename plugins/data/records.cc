// TFRecordDataset: the records of files. A record is its length (8 bytes, lowest first), the masked
// CRC-32C of these, the bytes, and the masked CRC-32C of the bytes.
#include <cstring>

#include "crc32c.h"
#include "file.h"
#include "register.h"

namespace thalweg::data {
namespace {

constexpr uint64_t kHead = 12, kFoot = 4;

uint64_t NumberAt(const char* p, int bytes) {
  uint64_t n = 0;
  for (int i = 0; i < bytes; ++i) n |= uint64_t(static_cast<unsigned char>(p[i])) << 8 * i;
  return n;
}

class Records final : public Format {
 public:
  bool Read(FileReader& in, const FileFacts*, Call& c, Element* out) const override {
    const uint64_t start = in.offset();
    const std::string_view head = in.Peek(kHead);
    if (head.empty()) return false;
    if (head.size() < kHead) Truncated(in, start, "its head");
    if (NumberAt(head.data() + 8, 4) != Masked(Crc32c(head.data(), 8))) {
      Fail(TW_DATA_LOSS, in.Where(start) + "the checksum of a record's length is wrong; the file is damaged or holds no records");
    }
    const uint64_t n = NumberAt(head.data(), 8);
    if (n > UINT64_MAX - kHead - kFoot || !in.Has(kHead + n + kFoot)) Truncated(in, start, "its " + std::to_string(n) + " bytes");
    const char* record = in.Read(kHead + n + kFoot).data() + kHead;
    if (NumberAt(record + n, 4) != Masked(Crc32c(record, n))) {
      Fail(TW_DATA_LOSS, in.Where(start) + "the checksum of a record of " + std::to_string(n) + " bytes is wrong; the file is damaged");
    }
    *out = {c.MakeString({record, n})};
    return true;
  }
  void Describe(std::string* to) const override { *to += "TFRecord"; }

 private:
  [[noreturn]] static void Truncated(const FileReader& in, uint64_t start, const std::string& what) {
    Fail(TW_DATA_LOSS,
         in.Where(start) + "the file ends within a record, before " + what + " end; it was cut off, or is still being written");
  }
};

struct RecordsMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    return FilesOf(in.Texts(0), std::make_shared<Records>(), in.Text(1, "compression_type"), in.Int(2, "buffer_size"));
  }
};

}  // namespace

void register_records(tw::Plugin& p) { AddDataset<RecordsMaker>(p, "TFRecordDataset(string, string, int64 -> variant) @CPU"); }

}  // namespace thalweg::data
