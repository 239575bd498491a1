// What the XML in answers of S3 says. Source: Amazon S3 API Reference, 2006-03-01. Threads: any.
// Errors of all functions: DATA_LOSS if the text is no XML, or not the XML that is expected.
#ifndef THALWEG_PLUGINS_S3_ANSWERS_H_
#define THALWEG_PLUGINS_S3_ANSWERS_H_

#include <string>
#include <string_view>
#include <vector>

namespace thalweg::s3 {

// An error of the store; empty texts for what it does not say. Never throws DATA_LOSS: proxies answer
// with pages of their own.
struct ErrorText {
  std::string code, message, region;
};
ErrorText ParseError(std::string_view xml);
// Returns true if the outermost element is Error: copying and completing may fail after the status 200.
bool IsError(std::string_view xml);

// A page of a listing.
struct Page {
  std::vector<std::string> keys, prefixes;
  bool truncated = false;
  std::string next;  // the token of the next page
};
Page ParsePage(std::string_view xml);

// The id of a multipart upload that was begun.
std::string ParseUploadId(std::string_view xml);
// The ETag of a copy.
std::string ParseCopiedTag(std::string_view xml);

// The body that completes an upload from its parts, numbered from 1.
std::string CompletionXml(const std::vector<std::string>& tags);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_ANSWERS_H_
