// ArrayFilesDataset: the rows of arrays in .npy, .npz and IDX files, one file after the other. Rows
// are read as they are taken, so the files may be larger than the memory.
#include <algorithm>

#include "array_file.h"
#include "feature_tensors.h"
#include "register.h"

namespace thalweg::data {
namespace {

constexpr uint64_t kPiece = 256 << 10, kLeastPiece = 4 << 10, kMostPiece = 64 << 20;

enum class Kind { kNpy, kNpz, kIdx };

struct Source {
  std::vector<std::string> files;
  Kind kind;
  std::vector<std::string> arrays;  // of an archive
  Compression compression;
  uint64_t piece;
  std::vector<std::vector<int64_t>> shapes;  // of the components; -1: any size
  std::vector<bool> ranked;                  // whether the shape has a known rank
  std::vector<uint32_t> types;

  // mark: what the file must have; NULL: any.
  std::vector<StoredArray> Open(const Call& c, const std::string& path, const FileMark* mark) const {
    if (mark) FileReader(c, path, piece).Check(*mark);
    std::vector<StoredArray> all;
    if (kind == Kind::kNpz)
      all = OpenNpz(c, path, piece, arrays);
    else
      all.push_back(kind == Kind::kNpy ? OpenNpy(c, path, piece, compression) : OpenIdx(c, path, piece, compression));
    for (size_t k = 0; k < all.size(); ++k) {
      const StoredArray& a = all[k];
      if (a.dtype != types[k])
        Invalid(a.what + "the array is " + tw::dtype_text(a.dtype) + "; the component is " + tw::dtype_text(types[k]));
      bool fits = !ranked[k] || a.dims.size() == shapes[k].size();
      for (size_t d = 0; fits && ranked[k] && d < a.dims.size(); ++d) fits = shapes[k][d] < 0 || shapes[k][d] == a.dims[d];
      if (!fits)
        Invalid(a.what + "a row of the array is " + tw::text(a.dims.data(), int32_t(a.dims.size())) + "; the component is " +
                tw::text(shapes[k].data(), int32_t(shapes[k].size())));
    }
    return all;
  }
};

class ArrayRows final : public Dataset {
 public:
  explicit ArrayRows(std::shared_ptr<const Source> source) : Dataset("ArrayFiles", source->types), source_(std::move(source)) {}
  std::unique_ptr<Iterator> Begin(Call&, uint64_t) const override { return std::make_unique<Walk>(source_); }
  void Describe(std::string* to) const override {
    *to += source_->kind == Kind::kNpy ? "Npy(" : source_->kind == Kind::kNpz ? "Npz(" : "Idx(";
    for (const std::string& array : source_->arrays) *to += "'" + array + "', ";
    *to += std::to_string(source_->files.size()) + " files)";
  }

 private:
  class Walk final : public Iterator {
   public:
    explicit Walk(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
    bool Next(Call& c, Element* out) override {
      for (; file_ < source_->files.size(); c.CheckCancelled()) {
        if (arrays_.empty()) OpenNext(c);
        if (row_ < arrays_[0].rows) {
          TakeRow(c, out);
          return true;
        }
        std::vector<StoredArray> done = std::move(arrays_);
        arrays_.clear();
        ++file_;
        if (apart_) continue;  // a row could not be read, which was told
        for (StoredArray& a : done) a.CheckWhole();
      }
      return false;
    }
    void Save(StateWriter& w) const override {
      w.Number(file_);
      w.Number(arrays_.empty() ? kNoFile : kMarkedFile);
      if (arrays_.empty()) return;
      w.Text(source_->files[file_]);
      WriteMark(w, arrays_[0].in->Mark());
      w.Number(row_);
      for (const StoredArray& a : arrays_) {
        w.Number(a.in->sum().bytes);
        w.Number(a.in->sum().crc);
      }
    }
    void Restore(Call& c, StateReader& r) override {
      file_ = r.Number(source_->files.size());
      arrays_.clear();
      const uint64_t open = r.Number(kMarkedFile);
      if (open == kNoFile) return;
      const std::string_view name = r.Text();
      if (file_ == source_->files.size()) StateReader::Damaged();
      if (name != source_->files[file_])
        Invalid("the restored position is in the file '" + std::string(name) + "', and file " + std::to_string(file_) + " is '" +
                source_->files[file_] + "'; use the list of files that was saved");
      FileMark mark = {};
      if (open == kMarkedFile) mark = ReadMark(r);
      Open(c, r.Number(), open == kMarkedFile ? &mark : nullptr);
      for (StoredArray& a : arrays_) {
        FileSum sum;  // that of an older position has a gap
        if (open == kMarkedFile) sum = {r.Number(), uint32_t(r.Number(UINT32_MAX))};
        a.in->set_sum(sum);
      }
    }

   private:
    void TakeRow(Call& c, Element* out) {
      out->clear();
      if (apart_)
        for (StoredArray& a : arrays_) a.Seek(row_);
      apart_ = true;
      const uint64_t row = row_++;  // a row for which there is no memory is lost
      for (StoredArray& a : arrays_) out->push_back(c.Make(a.dtype, a.dims));
      row_ = arrays_[0].rows;  // a row that cannot be read ends its file, because those behind it cannot be read either
      for (size_t k = 0; k < arrays_.size(); ++k) arrays_[k].Take((*out)[k]);
      row_ = row + 1;
      apart_ = false;
    }
    void OpenNext(Call& c) {
      tw_status* failed = tw::guard(c.host(), [&] { Open(c, 0); });
      if (failed && c.skips_failures && MaySkip(c.host()->status->code(failed))) ++file_;
      tw::check(failed);
    }
    // mark: of the file of a saved position; may be NULL.
    void Open(Call& c, uint64_t row, const FileMark* mark = nullptr) {
      std::vector<StoredArray> all = source_->Open(c, source_->files[file_], mark);
      if (row > all[0].rows)
        Fail(TW_DATA_LOSS,
             all[0].what + "the array has only " + std::to_string(all[0].rows) + " rows; it is not that of the saved position");
      for (StoredArray& a : all) a.Seek(row);
      arrays_ = std::move(all);
      apart_ = false;
      row_ = row;
    }
    const std::shared_ptr<const Source> source_;
    size_t file_ = 0;
    uint64_t row_ = 0;                 // the next one
    std::vector<StoredArray> arrays_;  // of the file; empty before it is opened
    bool apart_ = false;               // a row was not taken from all arrays, so their readers may be at different rows
  };

  const std::shared_ptr<const Source> source_;
};

struct ArrayFilesMaker : Maker {
  explicit ArrayFilesMaker(const tw::Node& n) : Maker(n) {
    const std::string_view format = n.s("format");
    source.kind = format == "npy" ? Kind::kNpy : format == "npz" ? Kind::kNpz : Kind::kIdx;
    source.types = types;
    const tw_attr &arrays = n.at("arrays"), &shapes = n.at("output_shapes");
    for (uint32_t k = 0; k < arrays.count; ++k) source.arrays.emplace_back(View(static_cast<const tw_string*>(arrays.data)[k]));
    const size_t components = source.kind == Kind::kNpz ? source.arrays.size() : 1;
    if (types.size() != components || shapes.count != components || (source.kind != Kind::kNpz && !source.arrays.empty()))
      Invalid("there are " + std::to_string(types.size()) + " output_types, " + std::to_string(shapes.count) + " output_shapes and " +
              std::to_string(source.arrays.size()) +
              " arrays; an archive has one of each for each component, another file one array without a name");
    for (uint32_t k = 0; k < shapes.count; ++k) {
      const tw_shape& s = static_cast<const tw_shape*>(shapes.data)[k];
      source.ranked.push_back(s.rank >= 0);
      source.shapes.emplace_back();
      if (s.rank > 0) source.shapes.back().assign(s.dims, s.dims + s.rank);
    }
  }
  DatasetPtr Make(const Inputs& in) const {
    auto all = std::make_shared<Source>(source);
    all->files = in.Texts(0);
    all->compression = CompressionOf(in.Text(1, "compression_type"));
    if (all->kind == Kind::kNpz && all->compression != Compression::kNone)
      Invalid("'compression_type' is '" + std::string(in.Text(1, "compression_type")) + "'; an archive has its own, so it must be empty");
    const int64_t buffer = in.Least(2, "buffer_size", 0);
    all->piece = buffer == 0 ? kPiece : std::clamp(uint64_t(buffer), kLeastPiece, kMostPiece);
    return std::make_shared<ArrayRows>(std::move(all));
  }
  Source source;
};

}  // namespace

void register_array_rows(tw::Plugin& p) { AddDataset<ArrayFilesMaker>(p, "ArrayFilesDataset(string, string, int64 -> variant) @CPU"); }

}  // namespace thalweg::data
