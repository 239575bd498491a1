#include "file.h"

#include <algorithm>
#include <cstring>

#include "crc32c.h"
#include "thalweg/cpp/trace.hpp"

namespace thalweg::data {
namespace {

constexpr uint64_t kPiece = 256 << 10, kLeastPiece = 4 << 10, kMostPiece = 64 << 20;
constexpr uint64_t kMarked = 4 << 10;  // bytes at each end of a file that its mark covers

const tw_files_api& FilesApi(const tw_host* h) {
  auto* api = static_cast<const tw_files_api*>(h->query(h, TW_S(TW_FILES_SET), 1));
  if (!api) Fail(TW_UNIMPLEMENTED, "this runtime offers no files");
  return *api;
}

}  // namespace

FileReader::FileReader(const Call& c, const std::string& path, uint64_t piece, Compression compression, const FilePart* part)
    : api_(FilesApi(c.host())),
      path_(path),
      file_(nullptr, api_.close),
      piece_(piece),
      unpacked_(part ? part->unpacked : 0),
      crc_(part ? part->crc : 0),
      summed_(part != nullptr),
      compression_(compression) {
  if (compression != Compression::kNone) inflate_ = std::make_unique<Inflate>(compression);
  tw_file* opened = nullptr;
  tw::check(api_.open(c.host(), path.data(), path.size(), &opened));
  file_.reset(opened);
  file_bytes_ = size_ = api_.bytes(opened);
  if (!part) return;
  if (part->from > size_ || part->bytes > size_ - part->from) Fail(TW_INTERNAL, Where(part->from) + "a part lies outside of the file");
  base_ = part->from;
  size_ = part->bytes;
}

uint32_t FileReader::MarkOf(uint64_t bytes) const {
  const uint64_t n = std::min(bytes, kMarked);
  if (n == 0) return 0;
  std::string ends(2 * n, '\0');
  tw::check(api_.read(file_.get(), 0, ends.data(), n));
  tw::check(api_.read(file_.get(), bytes - n, ends.data() + n, n));
  return Crc32c(ends.data(), ends.size());
}

FileMark FileReader::Mark() const {
  if (!marked_) mark_ = {file_bytes_, MarkOf(file_bytes_)};
  marked_ = true;
  return mark_;
}

void FileReader::Check(const FileMark& mark) const {
  const auto other = [&](const std::string& how) {
    Fail(TW_DATA_LOSS,
         "'" + path_ + "': the file is not that of the saved position: " + how + "; bring the file back, or start the epoch again");
  };
  if (mark.bytes > file_bytes_) {
    other("it has " + std::to_string(file_bytes_) + " bytes, and had " + std::to_string(mark.bytes) + " when the position was saved");
  }
  if (MarkOf(mark.bytes) != mark.crc)
    other("its first or last bytes, of the " + std::to_string(mark.bytes) + " when the position was saved, are others now");
}

void FileReader::Pass(const char* bytes, uint64_t n) {
  if (summed_ && at_ <= sum_.bytes && at_ + n > sum_.bytes) {
    const uint64_t known = sum_.bytes - at_;
    sum_ = {at_ + n, Crc32(sum_.crc, bytes + known, n - known)};
  }
  at_ += n;
}

void FileReader::CheckWhole(const std::string& what) {
  if (!summed_) return;
  while (at_ <= unpacked_ && !Read(piece_).empty()) {
  }
  if (at_ != unpacked_) {
    Fail(TW_DATA_LOSS, what + "there are " + (at_ > unpacked_ ? "more than " : "") + std::to_string(std::min(at_, unpacked_)) +
                           " bytes, and the directory of the archive says " + std::to_string(unpacked_) + "; the file is damaged");
  }
  if (sum_.bytes == at_ && sum_.crc != crc_)
    Fail(TW_DATA_LOSS,
         what + "the checksum of its " + std::to_string(at_) + " bytes is wrong; the file is damaged, and its rows were given already");
}

void FileReader::Seek(uint64_t offset) {
  const auto too_far = [&](uint64_t size) {
    Fail(TW_DATA_LOSS, Where(offset) + "the file has only " + std::to_string(size) + " bytes; it is not the file of the saved position");
  };
  if (!packed()) {
    if (offset > size_) too_far(size_);
    at_ = offset;
    return;
  }
  if (offset >= from_ && offset <= from_ + filled_) {
    if (offset >= at_) {
      Pass(buffer_.data() + (at_ - from_), offset - at_);
    } else {
      at_ = offset;  // it is in the buffer
    }
    return;
  }
  if (offset < at_) {
    inflate_ = std::make_unique<Inflate>(compression_);
    at_ = from_ = filled_ = packed_at_ = packed_from_ = packed_filled_ = 0;
  }
  while (at_ < offset) {
    if (Read(std::min(piece_, offset - at_)).empty()) too_far(at_);
  }
}

// Unpacks until the buffer has the next n bytes, or all that are left.
void FileReader::Unpack(uint64_t n) {
  constexpr uint64_t kMostUnpacked = uint64_t{1} << 30;
  if (n > kMostUnpacked) {
    Fail(TW_RESOURCE_EXHAUSTED,
         Where(at_) + "an element of " + std::to_string(n) + " bytes in a compressed file; at most 1 GiB is unpacked at once");
  }
  if (counts_lines_) CountTo(at_);
  filled_ -= at_ - from_;
  if (filled_ > 0) std::memmove(buffer_.data(), buffer_.data() + (at_ - from_), filled_);
  from_ = at_;
  while (filled_ < n) {
    // The buffer grows with what was unpacked, not with what a record claims.
    if (filled_ == buffer_.size()) buffer_.resize(std::max(piece_, 2 * filled_));
    if (packed_at_ == packed_from_ + packed_filled_) {
      packed_from_ = packed_at_;
      packed_filled_ = std::min(piece_, size_ - packed_at_);
      packed_.resize(packed_filled_);
      if (packed_filled_ > 0) tw::check(api_.read(file_.get(), base_ + packed_at_, packed_.data(), packed_filled_));
      fetched_ += packed_filled_;
    }
    const uint64_t used = packed_at_ - packed_from_;
    const std::string_view in(packed_.data() + used, packed_filled_ - used);
    if (in.empty()) {
      if (!inflate_->whole()) Fail(TW_DATA_LOSS, Where(base_ + packed_at_) + "the compressed data are cut off, or are still being written");
      return;
    }
    const Inflate::Step step = inflate_->Run(in, buffer_.data() + filled_, buffer_.size() - filled_);
    packed_at_ += step.read;
    filled_ += step.written;
    if (step.failed) Fail(TW_DATA_LOSS, Where(base_ + packed_at_) + "the compressed data are damaged: " + step.failed);
  }
}

std::string_view FileReader::Peek(uint64_t n) {
  if (packed()) {
    if (n > from_ + filled_ - at_) Unpack(n);
    return {buffer_.data() + (at_ - from_), std::min(n, from_ + filled_ - at_)};
  }
  n = std::min(n, size_ - at_);
  if (at_ < from_ || at_ + n > from_ + filled_) {
    // Keep what is there already, and read a whole piece behind it.
    uint64_t kept = 0;
    if (at_ > from_ + filled_)
      counts_lines_ = false;  // the bytes between are not read
    else if (counts_lines_ && at_ >= from_)
      CountTo(at_);
    if (at_ >= from_ && at_ < from_ + filled_) {
      kept = from_ + filled_ - at_;
      std::memmove(buffer_.data(), buffer_.data() + (at_ - from_), kept);
    }
    const uint64_t want = std::min(std::max(n, piece_), size_ - at_);
    if (buffer_.size() < want) buffer_.resize(want);
    from_ = at_;
    filled_ = kept;
    tw_status* s = api_.read(file_.get(), base_ + at_ + kept, buffer_.data() + kept, want - kept);
    tw::check(s);
    fetched_ += want - kept;
    filled_ = want;
  }
  return {buffer_.data() + (at_ - from_), n};
}

std::string_view FileReader::Read(uint64_t n) {
  const std::string_view bytes = Peek(n);
  Pass(bytes.data(), bytes.size());
  return bytes;
}

uint64_t FileReader::ReadTo(char* to, uint64_t n) {
  uint64_t done = 0;
  if (packed()) {
    while (done < n) {
      const std::string_view bytes = Read(std::min(piece_, n - done));
      if (bytes.empty()) break;
      std::memcpy(to + done, bytes.data(), bytes.size());
      done += bytes.size();
    }
    return done;
  }
  n = std::min(n, size_ - at_);
  while (done < n) {
    const bool buffered = at_ >= from_ && at_ < from_ + filled_;
    if (!buffered && n - done >= piece_) {
      tw::check(api_.read(file_.get(), base_ + at_, to + done, n - done));
      fetched_ += n - done;
      Pass(to + done, n - done);
      return n;
    }
    const std::string_view bytes = Read(buffered ? std::min(n - done, from_ + filled_ - at_) : n - done);
    std::memcpy(to + done, bytes.data(), bytes.size());
    done += bytes.size();
  }
  return done;
}

void FileReader::CountTo(uint64_t offset) {
  if (offset <= counted_) return;
  const char* const begin = buffer_.data() - from_;
  lines_ += uint64_t(std::count(begin + counted_, begin + offset, '\n'));
  counted_ = offset;
}

uint64_t FileReader::LinesBefore(uint64_t offset) {
  constexpr uint64_t kStep = 64 << 10;
  if (offset < counted_) {
    counted_ = lines_ = 0;
    counts_lines_ = false;
  }
  if (counts_lines_ && offset <= from_ + filled_) {
    CountTo(offset);
    return lines_;
  }
  const uint64_t back = at_;
  counts_lines_ = false;
  Seek(counted_);
  while (at_ < offset) {
    const std::string_view bytes = Read(std::min(kStep, offset - at_));
    if (bytes.empty()) break;
    lines_ += uint64_t(std::count(bytes.begin(), bytes.end(), '\n'));
  }
  counted_ = at_;
  const uint64_t found = lines_;
  counts_lines_ = true;  // on the way back, too
  Seek(back);
  return found;
}

std::string WhereLine(FileReader& in, uint64_t offset) {
  return "'" + in.path() + "' line " + std::to_string(in.LinesBefore(offset) + 1) + ": ";
}

namespace {

class Files final : public Dataset {
 public:
  Files(std::vector<std::string> files, std::shared_ptr<const Format> format, uint64_t piece, Compression compression)
      : Dataset("Files", format->types),
        files_(std::make_shared<std::vector<std::string>>(std::move(files))),
        format_(std::move(format)),
        piece_(piece),
        compression_(compression) {}
  std::unique_ptr<Iterator> Begin(Call&, uint64_t) const override { return std::make_unique<Walk>(files_, format_, piece_, compression_); }
  void Describe(std::string* to) const override {
    format_->Describe(to);
    *to += "(" + std::to_string(files_->size()) + " files)";
  }

 private:
  using Names = std::shared_ptr<const std::vector<std::string>>;
  class Walk final : public Iterator {
   public:
    Walk(Names files, std::shared_ptr<const Format> format, uint64_t piece, Compression compression)
        : files_(std::move(files)), format_(std::move(format)), piece_(piece), compression_(compression) {}
    bool Next(Call& c, Element* out) override {
      for (; file_ < files_->size(); c.CheckCancelled()) {
        bool more = false;
        const uint64_t at = reader_ ? reader_->offset() : 0;
        tw_status* failed = tw::guard(c.host(), [&] { more = Read(c, out); });
        if (!failed && more) return true;
        const bool stays = reader_ && reader_->offset() > at;  // behind the element that failed
        if (!failed || (c.skips_failures && !stays && MaySkip(c.host()->status->code(failed)))) {
          reader_.reset();
          ++file_;
        }
        tw::check(failed);
      }
      return false;
    }
    void Save(StateWriter& w) const override {
      w.Number(file_);
      w.Number(reader_ ? kMarkedFile : kNoFile);
      if (!reader_) return;
      w.Text((*files_)[file_]);
      WriteMark(w, reader_->Mark());
      w.Number(reader_->offset());
    }
    void Restore(Call& c, StateReader& r) override {
      file_ = r.Number(files_->size());
      reader_.reset();
      const uint64_t open = r.Number(kMarkedFile);
      if (open == kNoFile) return;
      const std::string_view name = r.Text();
      if (file_ == files_->size()) StateReader::Damaged();
      if (name != (*files_)[file_])
        Invalid("the restored position is in the file '" + std::string(name) + "', and file " + std::to_string(file_) + " is '" +
                (*files_)[file_] + "'; use the list of files that was saved");
      FileMark mark = {};
      if (open == kMarkedFile) mark = ReadMark(r);
      Open(c, open == kMarkedFile ? &mark : nullptr);
      reader_->Seek(r.Number());
    }

   private:
    bool Read(Call& c, Element* out) {
      if (!reader_) Open(c);
      const uint64_t before = reader_->fetched();
      const bool more = format_->Read(*reader_, facts_.get(), c, out);
      if (const uint64_t n = reader_->fetched() - before; n > 0) tw::count(c.f, "bytes read from files", int64_t(fetched_ += n));
      return more;
    }
    // mark: of the file of a saved position; may be NULL.
    void Open(Call& c, const FileMark* mark = nullptr) {
      const tw::Span opening(c.f, "open file");
      auto reader = std::make_unique<FileReader>(c, (*files_)[file_], piece_, compression_);
      if (mark) reader->Check(*mark);
      facts_ = format_->Start(*reader, c);
      reader_ = std::move(reader);
    }
    const Names files_;
    const std::shared_ptr<const Format> format_;
    const uint64_t piece_;
    const Compression compression_;
    size_t file_ = 0;
    uint64_t fetched_ = 0;  // from all files of this pass
    std::unique_ptr<FileReader> reader_;
    std::unique_ptr<FileFacts> facts_;  // of its file
  };

  const Names files_;
  const std::shared_ptr<const Format> format_;
  const uint64_t piece_;
  const Compression compression_;
};

}  // namespace

DatasetPtr FilesOf(std::vector<std::string> files, std::shared_ptr<const Format> format, std::string_view compression, int64_t buffer) {
  if (buffer < 0) Invalid("'buffer_size' is " + tw::text(buffer) + "; it must be at least 0, which means the default");
  const uint64_t piece = buffer == 0 ? kPiece : std::clamp(uint64_t(buffer), kLeastPiece, kMostPiece);
  return std::make_shared<Files>(std::move(files), std::move(format), piece, CompressionOf(compression));
}

}  // namespace thalweg::data
