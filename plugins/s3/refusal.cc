#include "refusal.h"

#include <iterator>

#include "thalweg/plugin/plugin.h"

namespace thalweg::s3 {
namespace {

struct Row {
  std::string_view code;  // of the store
  uint32_t status;        // of ours
  enum Kind { kFinal, kAgain, kStaleKey } kind;
  std::string_view advice;
};
constexpr Row kRows[] = {
    {"NoSuchKey", TW_NOT_FOUND, Row::kFinal, "there is no such object"},
    {"NoSuchVersion", TW_NOT_FOUND, Row::kFinal, "there is no such version of the object"},
    {"NoSuchUpload", TW_ABORTED, Row::kFinal, "somebody has completed or aborted the upload"},
    {"AccessDenied", TW_PERMISSION_DENIED, Row::kFinal,
     "the key may not do this; a key without s3:ListBucket is answered so for a missing object, too"},
    {"AllAccessDisabled", TW_PERMISSION_DENIED, Row::kFinal, "the bucket is closed"},
    {"SignatureDoesNotMatch", TW_UNAUTHENTICATED, Row::kStaleKey, "check the secret key, and proxies that change requests"},
    {"InvalidAccessKeyId", TW_UNAUTHENTICATED, Row::kStaleKey, "the store does not know the key; check it, and the endpoint"},
    {"ExpiredToken", TW_UNAUTHENTICATED, Row::kStaleKey, "the temporary key has expired; get another one"},
    {"TokenRefreshRequired", TW_UNAUTHENTICATED, Row::kStaleKey, "the temporary key has expired; get another one"},
    {"InvalidToken", TW_UNAUTHENTICATED, Row::kStaleKey, "the session token does not belong to the key; check AWS_SESSION_TOKEN"},
    {"RequestTimeTooSkewed", TW_FAILED_PRECONDITION, Row::kFinal, "the clock of this machine differs too much from the store's; set it"},
    {"PreconditionFailed", TW_ABORTED, Row::kFinal, "another writer was faster"},
    {"InvalidRange", TW_OUT_OF_RANGE, Row::kFinal, "the object ends before"},
    {"EntityTooLarge", TW_RESOURCE_EXHAUSTED, Row::kFinal, "the store takes no object of that size"},
    {"QuotaExceeded", TW_RESOURCE_EXHAUSTED, Row::kFinal, "the bucket is full"},
    {"XMinioStorageFull", TW_RESOURCE_EXHAUSTED, Row::kFinal, "the store is full"},
    {"InvalidPart", TW_DATA_LOSS, Row::kFinal, "a part of the upload did not arrive as it was sent; write the file again"},
    {"InvalidPartOrder", TW_DATA_LOSS, Row::kFinal, "write the file again"},
    {"NotImplemented", TW_UNIMPLEMENTED, Row::kFinal,
     "the store does not offer this; if it knows no conditional writes, set plugin.org.thalweg.s3.conditional=0"},
    {"XAmzContentSHA256Mismatch", TW_UNAVAILABLE, Row::kAgain, "the body was damaged on the way"},
    {"BadDigest", TW_UNAVAILABLE, Row::kAgain, "the body was damaged on the way"},
    {"IncompleteBody", TW_UNAVAILABLE, Row::kAgain, "the body was cut off on the way"},
    {"RequestTimeout", TW_UNAVAILABLE, Row::kAgain, "the body came too slowly"},
    {"SlowDown", TW_UNAVAILABLE, Row::kAgain, "there are too many requests"},
    {"InternalError", TW_UNAVAILABLE, Row::kAgain, "the store has failed"},
    {"OperationAborted", TW_UNAVAILABLE, Row::kAgain, "another request was at work on the same name"},
    {"ConditionalRequestConflict", TW_UNAVAILABLE, Row::kAgain, "another request was at work on the same name"},
};

struct StatusRow {
  int status;
  uint32_t code;
  bool again;
  std::string_view advice;
};
constexpr StatusRow kStatuses[] = {
    {401, TW_UNAUTHENTICATED, false, "the store wants a key"},
    {403, TW_PERMISSION_DENIED, false, "the key may not do this"},
    {404, TW_NOT_FOUND, false, "there is no such object"},
    {408, TW_UNAVAILABLE, true, "the request came too slowly"},
    {409, TW_ABORTED, false, "another request was at work on the same name"},
    {412, TW_ABORTED, false, "another writer was faster"},
    {416, TW_OUT_OF_RANGE, false, "the object ends before"},
    {429, TW_UNAVAILABLE, true, "there are too many requests"},
    {500, TW_UNAVAILABLE, true, "the store has failed"},
    {501, TW_UNIMPLEMENTED, false, "the store does not offer this"},
    {502, TW_UNAVAILABLE, true, "the store cannot be reached"},
    {503, TW_UNAVAILABLE, true, "the store is busy"},
    {504, TW_UNAVAILABLE, true, "the store cannot be reached"},
    {507, TW_RESOURCE_EXHAUSTED, false, "the store is full"},
};

bool IsElsewhere(int status, std::string_view code) {
  return status == 301 || status == 307 || code == "PermanentRedirect" || code == "TemporaryRedirect" ||
         code == "AuthorizationHeaderMalformed" || code == "IllegalLocationConstraintException";
}

}  // namespace

std::string Shown(std::string_view text, size_t most) {
  std::string out;
  for (char c : text.substr(0, most)) out += uint8_t(c) < ' ' || uint8_t(c) == 0x7f ? ' ' : c;
  while (!out.empty() && uint8_t(out.back()) >= 0x80 && text.size() > most) out.pop_back();  // no half character
  return text.size() > most ? out + "..." : out;
}

Refusal Explain(int status, const ErrorText& error, const Address& address, std::string_view date, std::string_view key_origin) {
  Refusal r;
  std::string said = std::to_string(status);
  if (!error.code.empty()) said += " " + Shown(error.code, 60);
  if (!error.message.empty()) said += " (" + Shown(error.message) + ")";
  const auto is = [&](uint32_t code, bool again, const std::string& advice) {
    r.code = code;
    r.again = again;
    r.text = said + ": " + advice;
    return r;
  };
  if (error.code == "NoSuchBucket") {
    return is(TW_NOT_FOUND, false, "the store has no bucket '" + address.bucket + "'; create it, or check the endpoint and the region");
  }
  if (IsElsewhere(status, error.code)) {
    const std::string where = error.region.empty() ? "another region" : "the region '" + Shown(error.region, 60) + "'";
    return is(
        TW_FAILED_PRECONDITION, false,
        "the bucket '" + address.bucket + "' is in " + where + "; set plugin.org.thalweg.s3.region or AWS_REGION, or the endpoint, to it");
  }
  for (const Row& row : kRows) {
    if (row.code != error.code) continue;
    std::string advice(row.advice);
    r.stale_key = row.kind == Row::kStaleKey;
    if (r.stale_key) advice += "; it came from " + std::string(key_origin);
    if (row.code == "RequestTimeTooSkewed" && !date.empty()) advice += " (the store's: " + Shown(date, 60) + ")";
    return is(row.status, row.kind == Row::kAgain, advice);
  }
  for (const StatusRow& row : kStatuses) {
    if (row.status == status) return is(row.code, row.again, std::string(row.advice));
  }
  if (status >= 500) return is(TW_UNAVAILABLE, true, "the store has failed");
  return is(TW_INVALID_ARGUMENT, false, "the store refuses the request");
}

}  // namespace thalweg::s3
