// Hash tables in checkpoints: the table's properties, then keys and values row by row. Numbers have
// 8 bytes, lowest first; a text follows its length.
#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/lookup_table.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr uint64_t kPiece = 1 << 16;  // the bytes written at once, or read before a stated length is trusted

class Writer {
 public:
  explicit Writer(tw_sink* to) : to_(to) {}
  void Number(uint64_t n) {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = char(n >> 8 * i);
    Raw({bytes, 8});
  }
  void Text(std::string_view s) {
    Number(s.size());
    Raw(s);
  }
  void Dims(const std::vector<int64_t>& dims) {
    Number(dims.size());
    for (int64_t d : dims) Number(uint64_t(d));
  }
  void Raw(std::string_view s) {
    bytes_ += s;
    if (bytes_.size() >= kPiece) Flush();
  }
  void Flush() {
    if (!bytes_.empty()) tw::check(to_->put(to_, bytes_.data(), bytes_.size()));
    bytes_.clear();
  }

 private:
  tw_sink* to_;
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(tw_source* from) : from_(from) {}
  uint64_t Number(uint64_t most = UINT64_MAX) {
    const std::string bytes = Raw(8);
    uint64_t n = 0;
    for (int i = 0; i < 8; ++i) n |= uint64_t(static_cast<unsigned char>(bytes[size_t(i)])) << 8 * i;
    if (n > most) Damaged();
    return n;
  }
  std::string Text() { return Raw(Number()); }
  std::vector<int64_t> Dims() {
    std::vector<int64_t> dims(Number(kMaxRank));
    uint64_t count = 1;
    for (int64_t& d : dims) {
      d = int64_t(Number(INT32_MAX));
      if (d > 0 && count > uint64_t{INT32_MAX} / uint64_t(d)) Damaged();
      count *= uint64_t(d);
    }
    return dims;
  }
  // Memory grows with the bytes read, not with the stated length.
  std::string Raw(uint64_t n) {
    std::string bytes;
    while (bytes.size() < n) {
      const size_t at = bytes.size(), want = size_t(std::min(kPiece, n - at));
      bytes.resize(at + want);
      uint64_t got = 0;
      tw::check(from_->get(from_, bytes.data() + at, want, &got));
      if (got == 0) Damaged();
      bytes.resize(at + got);
    }
    return bytes;
  }
  void WantEnd() {
    char byte;
    uint64_t got = 0;
    tw::check(from_->get(from_, &byte, 1, &got));
    if (got != 0) Damaged();
  }
  [[noreturn]] static void Damaged() { throw tw::Error{TW_DATA_LOSS, "these bytes are no hash table"}; }

 private:
  tw_source* from_;
};

tw_status* Save(const tw_host* h, const void* object, tw_sink* to) {
  return tw::guard(h, [&] {
    const LookupTable& table = *static_cast<const LookupTable*>(object);
    const LookupTable::About& about = table.about();
    Writer w(to);
    w.Text(about.kind);
    w.Number(about.key_dtype);
    w.Number(about.value_dtype);
    w.Dims(about.key_shape);
    w.Dims(about.value_shape);
    w.Number(about.initializable);
    w.Number(table.initialized);
    w.Number(about.reserved.size());
    for (const std::string& key : about.reserved) w.Text(key);
    w.Number(table.size());
    for (size_t k = 0; k < table.size(); ++k) {
      w.Text(table.key(k));
      for (uint64_t i = 0; i < table.values().texts(); ++i) w.Text(table.values().text(k, i));
      w.Raw(table.values().bytes(k));
    }
    w.Flush();
  });
}

LookupTable::About ReadAbout(Reader& r, bool* initialized) {
  LookupTable::About about;
  about.kind = r.Text();
  about.key_dtype = uint32_t(r.Number(TW_UINT2));
  about.value_dtype = uint32_t(r.Number(TW_UINT2));
  for (const uint32_t dtype : {about.key_dtype, about.value_dtype})
    if (dtype != TW_STRING && ElementBytes(dtype) == 0) Reader::Damaged();
  about.key_shape = r.Dims();
  about.value_shape = r.Dims();
  about.initializable = r.Number(1) != 0;
  *initialized = r.Number(1) != 0;
  about.reserved.resize(r.Number(2));
  for (std::string& key : about.reserved) key = r.Text();
  return about;
}

tw_status* Restore(const tw_host* h, void*, uint64_t, tw_source* from, void** out_object) {
  return tw::guard(h, [&] {
    Reader r(from);
    bool initialized = false;
    auto table = std::make_unique<LookupTable>(ReadAbout(r, &initialized));
    table->initialized = initialized;
    const uint64_t texts = table->values().texts(), width = table->values().width();
    const tw::Payer payer(h);
    for (uint64_t n = r.Number(); n > 0; --n) {
      const std::string key = r.Text();
      if (!table->IsKey(key) || table->Find(key) >= 0) Reader::Damaged();
      std::vector<std::string> row;
      uint64_t heap = Rows::HeapOf(key);
      for (uint64_t i = 0; i < texts; ++i) heap += Rows::HeapOf(row.emplace_back(r.Text()));
      table->Reserve(payer, 1, heap);
      table->Append(key, r.Raw(width), std::move(row));
    }
    table->Settle(payer);
    r.WantEnd();
    *out_object = table.release();
  });
}

}  // namespace

void register_lookup_saved(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kLookupTable), 1, nullptr,
              [](const tw_host*, void* object) { delete static_cast<LookupTable*>(object); }, Save, Restore});
}

}  // namespace thalweg::cpu
