#include "answers.h"

#include "fail.h"
#include "xml.h"

namespace thalweg::s3 {
namespace {

Element Expect(std::string_view xml, std::string_view name) {
  Element root = ParseXml(xml);
  if (root.name != name)
    Fail(TW_DATA_LOSS, "the store answers with <" + root.name.substr(0, 60) + "> where <" + std::string(name) + "> belongs");
  return root;
}

int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Decodes a key of a listing with encoding-type=url. A '+' is a blank there.
std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? Digit(text[i + 1]) : -1, low = i + 2 < text.size() ? Digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) Fail(TW_DATA_LOSS, "the store lists a key that is not percent-encoded as was asked for");
      out += char(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

// Quotes text for XML. ETags have quotation marks.
std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

ErrorText ParseError(std::string_view xml) {
  try {
    const Element root = ParseXml(xml);
    return {std::string(root.Text("Code")), std::string(root.Text("Message")), std::string(root.Text("Region"))};
  } catch (const tw::Error&) {
    return {};
  }
}

bool IsError(std::string_view xml) { return ParseXml(xml).name == "Error"; }

Page ParsePage(std::string_view xml) {
  const Element root = Expect(xml, "ListBucketResult");
  const bool encoded = root.Text("EncodingType") == "url";
  const auto key = [&](std::string_view text) { return encoded ? Decoded(text) : std::string(text); };
  Page page;
  for (const Element& e : root.inside) {
    if (e.name == "Contents") page.keys.push_back(key(e.Text("Key")));
    if (e.name == "CommonPrefixes") page.prefixes.push_back(key(e.Text("Prefix")));
  }
  page.truncated = root.Text("IsTruncated") == "true";
  page.next = root.Text("NextContinuationToken");
  if (page.truncated && page.next.empty()) Fail(TW_DATA_LOSS, "the store cuts a listing off and names no next page");
  return page;
}

std::string ParseUploadId(std::string_view xml) {
  const Element root = Expect(xml, "InitiateMultipartUploadResult");
  const std::string id(root.Text("UploadId"));
  if (id.empty()) Fail(TW_DATA_LOSS, "the store begins an upload and does not name it");
  return id;
}

std::string ParseCopiedTag(std::string_view xml) {
  const Element root = ParseXml(xml);  // CopyObjectResult or CopyPartResult
  const std::string tag(root.Text("ETag"));
  if (tag.empty()) Fail(TW_DATA_LOSS, "the store copies an object and sends no ETag");
  return tag;
}

std::string CompletionXml(const std::vector<std::string>& tags) {
  std::string out = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < tags.size(); ++i) {
    out += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + Escaped(tags[i]) + "</ETag></Part>";
  }
  return out + "</CompleteMultipartUpload>";
}

}  // namespace thalweg::s3
