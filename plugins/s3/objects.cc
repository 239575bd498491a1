#include "objects.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "answers.h"
#include "digest.h"
#include "fail.h"

namespace thalweg::s3 {
namespace {

constexpr const char* kMark = "x-amz-meta-thalweg-upload";
constexpr uint64_t kMostPages = 100'000;
constexpr uint64_t kMostListing = 16 << 20;  // 1000 keys of 1024 bytes, each of them percent-encoded, and what stands beside them

std::string RangeOf(uint64_t offset, uint64_t n) { return "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + n - 1); }

bool TakeNumber(std::string_view* text, uint64_t* to) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *to);
  if (error != std::errc()) return false;
  text->remove_prefix(size_t(end - text->data()));
  return true;
}

struct ContentRange {
  uint64_t first = 0, last = 0, size = 0;
};
// Parses "bytes 0-99/1234", or "bytes */1234" with an empty range.
bool ParseContentRange(std::string_view text, ContentRange* r) {
  const auto take = [&](std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
  };
  if (!take("bytes ")) return false;
  if (!take("*")) {
    if (!TakeNumber(&text, &r->first) || !take("-") || !TakeNumber(&text, &r->last) || r->last < r->first) return false;
  }
  return take("/") && TakeNumber(&text, &r->size) && text.empty();
}

// Returns what is wrong with an answer that should hold bytes [offset, offset + n), or those up to
// the end of the object if that comes first; empty if nothing is.
std::string DamageOf(const Answer& a, uint64_t offset, uint64_t n, const char* bytes) {
  if (a.status != 200 && a.status != 206) return "the answer to a GET has the status " + std::to_string(a.status);
  ContentRange range;
  uint64_t want = a.received;
  if (a.status == 206) {
    if (!ParseContentRange(a.Header("content-range"), &range)) return "the answer has no valid Content-Range";
    const uint64_t last = std::min(offset + n - 1, range.size - 1);
    if (range.size <= offset || range.first != offset || range.last != last) return "the answer has another range than was asked for";
    want = last - offset + 1;
  } else if (offset != 0) {
    return "the store ignores the header Range";
  } else if (a.Header("content-length").empty() && a.Header("transfer-encoding").empty()) {
    return "the answer does not say how long it is";  // it may have been cut off
  }
  if (a.received != want) return "the answer has " + std::to_string(a.received) + " bytes instead of " + std::to_string(want);
  const bool whole = a.status == 200 || (offset == 0 && want == range.size);
  // The checksum of a multipart upload is one of the parts' checksums, with their number behind a '-'.
  const std::string_view sum = a.Header("x-amz-checksum-sha256");
  const bool checkable = whole && !sum.empty() && sum.find('-') == sum.npos;
  if (checkable && Base64(Sha256({bytes, want})) != sum) return "the bytes do not have the object's checksum";
  return {};
}

std::string SourceOf(const Address& from) { return "/" + from.bucket + "/" + UriEncode(from.key, true); }

std::string PartTag(const Answer& a) {
  const std::string tag(a.Header("etag"));
  if (tag.empty() || tag.size() > 256) Fail(TW_DATA_LOSS, "the store takes a part and sends no valid ETag");
  return tag;
}

// Returns a Call::damage for an answer that `parse` reads, which throws DATA_LOSS.
template <class F>
std::function<std::string(const Answer&)> ReadBy(F parse) {
  return [parse](const Answer& a) -> std::string {
    try {
      parse(a);
    } catch (const tw::Error& e) {
      return e.text;
    }
    return {};
  };
}

}  // namespace

std::string NewMark() {
  std::random_device random;
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes += char(random() & 255);
  return Hex(bytes);
}

bool Objects::Look(const Address& at, uint64_t head, Seen* seen) {
  std::string room(head, '\0');
  Call c;
  c.method = "GET";
  c.address = at;
  c.headers = {{"range", RangeOf(0, head)}, {"x-amz-checksum-mode", "ENABLED"}};
  c.accepts = {404, 416};
  c.to = room.data();
  c.room = room.size();
  c.damage = [&](const Answer& a) { return DamageOf(a, 0, head, room.data()); };
  const Answer a = client_.Send(c);
  if (a.status == 404) return false;
  *seen = {};
  if (a.status == 416) return LookAtEmpty(at, seen);  // an empty object has no first byte
  ContentRange range;
  seen->size = a.status == 206 && ParseContentRange(a.Header("content-range"), &range) ? range.size : a.received;
  seen->tag = a.Header("etag");
  seen->version = a.Header("x-amz-version-id");
  if (seen->version == "null") seen->version = "";
  seen->mark = a.Header(kMark);
  room.resize(a.received);
  seen->head = std::move(room);
  return true;
}

bool Objects::LookAtEmpty(const Address& at, Seen* seen) {
  Call c;
  c.method = "HEAD";
  c.address = at;
  c.accepts = {404};
  const Answer a = client_.Send(c);
  if (a.status == 404) return false;
  if (a.Header("content-length") != "0") {
    Fail(TW_DATA_LOSS, at.text() + ": the store sends no first byte of an object that is not empty");
  }
  seen->tag = a.Header("etag");
  seen->mark = a.Header(kMark);
  return true;
}

bool Objects::TryRead(const Address& at, const Seen& seen, bool by_version, uint64_t offset, void* to, uint64_t n) {
  char* const bytes = static_cast<char*>(to);
  Call c;
  c.method = "GET";
  c.address = at;
  c.headers = {{"range", RangeOf(offset, n)}};
  if (by_version) c.query = {{"versionId", seen.version}};
  if (!by_version && !seen.tag.empty()) c.headers.emplace_back("if-match", seen.tag);
  c.accepts = {404, 412, 416};
  c.to = bytes;
  c.room = n;
  c.damage = [&](const Answer& a) { return DamageOf(a, offset, n, bytes); };
  const Answer a = client_.Send(c);
  // A store that ignores If-Match sends the new object.
  return a.ok() && a.Header("etag") == seen.tag && a.received == n;
}

void Objects::Read(const Address& at, const Seen& seen, uint64_t offset, void* to, uint64_t n) {
  if (TryRead(at, seen, false, offset, to, n)) return;
  if (!seen.version.empty() && TryRead(at, seen, true, offset, to, n)) return;
  Fail(TW_DATA_LOSS, at.text() + ": the object was replaced or removed since it was opened; open it again");
}

bool Objects::IsMine(const Address& at, const std::string& mark, std::string* tag) {
  Seen there;
  const bool mine = Look(at, 1, &there) && there.mark == mark;
  if (mine) *tag = there.tag;
  return mine;
}

void Objects::Put(const Address& at, std::string_view bytes, const std::string& mark, bool fresh) {
  Call c;
  c.method = "PUT";
  c.address = at;
  c.headers = {{kMark, mark}, {"x-amz-checksum-sha256", Base64(Sha256(bytes))}};
  if (fresh) c.headers.emplace_back("if-none-match", "*");
  c.body = bytes;
  if (fresh) c.accepts = {412};
  // 412 may also mean that an earlier attempt arrived and its answer was lost.
  std::string tag;
  if (client_.Send(c).status == 412 && !IsMine(at, mark, &tag)) Fail(TW_ALREADY_EXISTS, at.text() + ": there is an object of that name");
}

void Objects::Remove(const Address& at) {
  Call c;
  c.method = "DELETE";
  c.address = at;
  c.accepts = {404};
  client_.Send(c);
}

void Objects::Copy(const Address& from, const Seen& seen, const Address& to) {
  Call c;
  c.method = "PUT";
  c.address = to;
  c.headers = {{"x-amz-copy-source", SourceOf(from)}};
  if (!seen.tag.empty()) c.headers.emplace_back("x-amz-copy-source-if-match", seen.tag);
  c.may_fail_late = true;
  c.doubt_after_loss = true;
  c.damage = ReadBy([](const Answer& a) { ParseCopiedTag(a.body); });
  client_.Send(c);
}

void Objects::List(const Address& folder,
                   const std::function<void(const std::vector<std::string>&, const std::vector<std::string>&)>& page) {
  std::string token;
  for (uint64_t pages = 0;; ++pages) {
    Call c;
    c.method = "GET";
    c.address = {folder.bucket, ""};
    c.query = {{"list-type", "2"}, {"prefix", folder.key}, {"delimiter", "/"}, {"encoding-type", "url"}};
    if (!token.empty()) c.query.emplace_back("continuation-token", token);
    c.most_bytes = kMostListing;
    Page p;
    c.damage = ReadBy([&](const Answer& a) { p = ParsePage(a.body); });
    client_.Send(c);
    page(p.keys, p.prefixes);
    if (!p.truncated) return;
    if (p.next == token || pages == kMostPages) Fail(TW_DATA_LOSS, folder.text() + ": the store's listing does not end");
    token = p.next;
  }
}

std::string Objects::Begin(const Address& at, const std::string& mark) {
  Call c;
  c.method = "POST";
  c.address = at;
  c.query = {{"uploads", ""}};
  c.headers = {{kMark, mark}};
  std::string id;
  c.damage = ReadBy([&](const Answer& a) { id = ParseUploadId(a.body); });
  client_.Send(c);
  return id;
}

std::string Objects::UploadPart(const Address& at, const std::string& upload, uint32_t number, std::string_view bytes) {
  Call c;
  c.method = "PUT";
  c.address = at;
  c.query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}};
  c.body = bytes;
  std::string tag;
  c.damage = ReadBy([&](const Answer& a) { tag = PartTag(a); });
  client_.Send(c);
  return tag;
}

std::string Objects::CopyPart(const Address& at, const std::string& upload, uint32_t number, const Address& from, const Seen& seen,
                              uint64_t offset, uint64_t n) {
  Call c;
  c.method = "PUT";
  c.address = at;
  c.query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}};
  c.headers = {{"x-amz-copy-source", SourceOf(from)}, {"x-amz-copy-source-range", RangeOf(offset, n)}};
  if (!seen.tag.empty()) c.headers.emplace_back("x-amz-copy-source-if-match", seen.tag);
  c.may_fail_late = true;
  std::string tag;
  c.damage = ReadBy([&](const Answer& a) { tag = ParseCopiedTag(a.body); });
  client_.Send(c);
  return tag;
}

std::string Objects::Complete(const Address& at, const std::string& upload, const std::vector<std::string>& tags, const std::string& mark,
                              bool fresh) {
  const std::string xml = CompletionXml(tags);
  Call c;
  c.method = "POST";
  c.address = at;
  c.query = {{"uploadId", upload}};
  if (fresh) c.headers.emplace_back("if-none-match", "*");
  c.body = xml;
  c.may_fail_late = true;
  c.doubt_after_loss = true;
  c.accepts = {404, 412};
  std::string tag;
  c.damage = ReadBy([&](const Answer& a) { tag = ParseCopiedTag(a.body); });
  const Answer a = client_.Send(c);
  if (a.ok()) return tag;
  // An earlier attempt may have arrived, and its answer was lost.
  if (IsMine(at, mark, &tag)) return tag;
  if (a.status == 412) Fail(TW_ALREADY_EXISTS, at.text() + ": there is an object of that name");
  Fail(TW_ABORTED, at.text() + ": somebody has aborted the upload; write the file again");
}

void Objects::Abort(const Address& at, const std::string& upload) {
  Call c;
  c.method = "DELETE";
  c.address = at;
  c.query = {{"uploadId", upload}};
  c.accepts = {404};
  c.patience = std::chrono::seconds(5);
  client_.Send(c);
}

}  // namespace thalweg::s3
