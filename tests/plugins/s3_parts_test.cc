// Parts of plugins/s3 that need no store: signatures, addresses, profiles, and what answers say.
#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "plugins/s3/address.h"
#include "plugins/s3/answers.h"
#include "plugins/s3/credentials.h"
#include "plugins/s3/digest.h"
#include "plugins/s3/fail.h"
#include "plugins/s3/http.h"
#include "plugins/s3/profile.h"
#include "plugins/s3/refusal.h"
#include "plugins/s3/sign.h"
#include "plugins/s3/workers.h"
#include "plugins/s3/xml.h"

namespace thalweg::s3 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns the text of the error that f throws, with its code before it.
template <class F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const tw::Error& e) {
    return std::to_string(e.code) + " " + e.text;
  }
  return "no error";
}

// ---- Digests ----

TEST(S3DigestTest, GivesTheResultsOfTheStandards) {
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2, B.1
  // RFC 4231, cases 2, 1 and 6: a short key, and one that is longer than a block.
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\x0b'), "Hi There")), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  // RFC 4648, section 10.
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

// ---- Signatures: the examples of "Authenticating Requests: Using the Authorization Header", Amazon S3 API Reference ----

const Key kKey = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr time_t kNow = 1369353600;  // 2013-05-24 00:00:00 UTC

std::string Header(const Pairs& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

std::string SignatureOf(const std::string& method, const std::string& path, const std::string& query, const Pairs& headers,
                        std::string_view body) {
  const Unsigned request = {method, "examplebucket.s3.amazonaws.com", path, query, headers, Hex(Sha256(body))};
  const std::string text = Header(Sign(request, kKey, "us-east-1", kNow), "authorization");
  return text.substr(text.rfind('=') + 1);
}

TEST(S3SignTest, GivesTheSignaturesOfAmazonsExamples) {
  EXPECT_EQ(SignatureOf("GET", "/test.txt", "", {{"range", "bytes=0-9"}}, ""),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(
      SignatureOf("PUT", "/" + UriEncode("test$file.text", true), "",
                  {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}, "Welcome to Amazon S3."),
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(SignatureOf("GET", "/", CanonicalQuery({{"lifecycle", ""}}), {}, ""),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(SignatureOf("GET", "/", CanonicalQuery({{"prefix", "J"}, {"max-keys", "2"}}), {}, ""),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(S3SignTest, NamesWhatItSigns) {
  Key temporary = kKey;
  temporary.token = "token";
  const Unsigned request = {"GET", "h", "/", "", {{"range", "bytes=0-9"}}, Hex(Sha256(""))};
  const Pairs headers = Sign(request, temporary, "eu-west-1", kNow);
  EXPECT_EQ(Header(headers, "x-amz-security-token"), "token");
  EXPECT_EQ(Header(headers, "x-amz-date"), "20130524T000000Z");
  EXPECT_THAT(Header(headers, "authorization"),
              HasSubstr("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/eu-west-1/s3/aws4_request, "
                        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature="));
}

TEST(S3SignTest, EncodesEveryByteThatIsNoPlainCharacter) {
  EXPECT_EQ(UriEncode("a-Z_0.9~", false), "a-Z_0.9~");
  EXPECT_EQ(UriEncode("a/b c+%\xc3\xbc", true), "a/b%20c%2B%25%C3%BC");
  EXPECT_EQ(UriEncode("a/b", false), "a%2Fb");
  EXPECT_EQ(CanonicalQuery({{"uploadId", "a/b="}, {"partNumber", "1"}}), "partNumber=1&uploadId=a%2Fb%3D");
}

// ---- Addresses ----

TEST(S3AddressTest, ParsesPaths) {
  const Address a = ParseFile("s3://my.bucket-1//deep///key with blanks");
  EXPECT_EQ(a.bucket, "my.bucket-1");
  EXPECT_EQ(a.key, "deep/key with blanks");
  EXPECT_EQ(ParseFolder("s3://bucket").key, "");
  EXPECT_EQ(ParseFolder("s3://bucket/a/b").key, "a/b/");
  EXPECT_EQ(ParseFolder("s3://bucket/a/b//").key, "a/b/");
  for (const char* path : {"s3://bucket/a/../b", "s3://bucket/..", "s3://bucket/./a", "s3://bu/x", "s3:///x", "s3://a..b/x",
                           "s3://-bucket/x", "s3://bucket", "s3://bucket/a/", "s4://bucket/a", "s3://evil@host/x", "s3://bucket:80/x"}) {
    EXPECT_THAT(ErrorOf([&] { ParseFile(path); }), HasSubstr("3 '")) << path;
  }
}

TEST(S3AddressTest, ParsesEndpoints) {
  const Endpoint e = ParseEndpoint("http://localhost:9000/store/", "endpoint");
  EXPECT_EQ(e.text(), "http://localhost:9000/store");
  EXPECT_TRUE(e.loopback());
  EXPECT_FALSE(e.tls);
  EXPECT_EQ(ParseEndpoint("https://s3.example.org:443", "endpoint").host, "s3.example.org");
  EXPECT_TRUE(ParseEndpoint("http://[::1]:80", "endpoint").loopback());
  EXPECT_EQ(ParseEndpoint("http://[::1]:80", "endpoint").host, "[::1]");
  EXPECT_TRUE(ParseEndpoint("http://127.9.9.9", "endpoint").loopback());
  for (const char* far : {"http://10.0.0.1", "http://127.0.0.1.example.org", "http://localhost.example.org", "http://[::2]"}) {
    EXPECT_FALSE(ParseEndpoint(far, "endpoint").loopback()) << far;
  }
  for (const char* text : {"", "host", "ftp://host", "https://", "https://:80", "https://a b", "https://host/a?b", "http://[::1"}) {
    EXPECT_THAT(ErrorOf([&] { ParseEndpoint(text, "endpoint"); }), HasSubstr("3 endpoint")) << text;
  }
  EXPECT_THAT(ErrorOf([] { ParseEndpoint("https://user:hidden@host", "endpoint"); }), testing::Not(HasSubstr("hidden")));
}

TEST(S3AddressTest, PutsTheBucketWhereTheStoreWantsIt) {
  const Endpoint e = ParseEndpoint("https://s3.eu-west-1.amazonaws.com", "endpoint");
  EXPECT_EQ(TargetOf(e, {"bucket", "a b/c"}, true).host, "bucket.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(TargetOf(e, {"bucket", "a b/c"}, true).path, "/a%20b/c");
  EXPECT_EQ(TargetOf(e, {"bucket", "a b/c"}, false).path, "/bucket/a%20b/c");
}

// ---- Files of credentials ----

TEST(S3ProfileTest, ReadsTheSectionThatIsAskedFor) {
  const std::string text =
      "# a comment\n[default]\naws_access_key_id = A\n\n[ team ]\r\naws_access_key_id=B\r\naws_secret_access_key = c=d/e+ \r\n"
      "aws_session_token =t\nregion = eu-north-1\ns3 =\n    endpoint_url = nested\nnonsense\n[other]\nregion = x\n";
  const Profile p = ParseProfile(text, "team");
  EXPECT_TRUE(p.found);
  EXPECT_EQ(p.key.id, "B");
  EXPECT_EQ(p.key.secret, "c=d/e+");
  EXPECT_EQ(p.key.token, "t");
  EXPECT_EQ(p.region, "eu-north-1");
  EXPECT_EQ(p.endpoint, "");
  EXPECT_FALSE(ParseProfile(text, "nobody").found);
  EXPECT_TRUE(ParseProfile("[", "").found);  // half a line is no fault in memory
}

TEST(S3CredentialsTest, ReadsTheAnswerOfAContainer) {
  const Credential c = ParseContainerAnswer(
      R"({"AccessKeyId": "A", "SecretAccessKey": "s", "Token": "t", "Expiration": "1970-01-02T00:00:01Z", "RoleArn": 1})");
  EXPECT_EQ(c.key.id + c.key.secret + c.key.token, "Ast");
  EXPECT_EQ(c.expires, 86401);
  for (const char* text : {"", "[]", "{", "{\"AccessKeyId\": 1}", R"({"AccessKeyId": "A", "SecretAccessKey": "s", "Expiration": "soon"})",
                           R"({"AccessKeyId": "A\r\nx: y", "SecretAccessKey": "s"})"}) {
    EXPECT_THAT(ErrorOf([&] { ParseContainerAnswer(text); }), HasSubstr("16 ")) << text;
  }
}

// ---- Answers ----

TEST(S3AnswersTest, ReadsPages) {
  const Page p = ParsePage(
      "  <?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken><Contents><Key>a+b%2Bc%C3%BC</Key>"
      "<Owner><ID>1</ID></Owner></Contents><CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes></ListBucketResult>");
  EXPECT_THAT(p.keys, ElementsAre("a b+c\xc3\xbc"));
  EXPECT_THAT(p.prefixes, ElementsAre("d/"));
  EXPECT_TRUE(p.truncated);
  EXPECT_EQ(p.next, "a&b");
}

TEST(S3AnswersTest, RefusesHostileXml) {
  const auto said = [](const std::string& xml) { return ErrorOf([&] { ParseXml(xml); }); };
  EXPECT_THAT(said("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"), HasSubstr("declares a document type"));
  EXPECT_THAT(said("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>"), HasSubstr("declares a document type"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_THAT(said(deep), HasSubstr("nested too deeply"));
  std::string wide = "<a>";
  for (int i = 0; i < 30'000; ++i) wide += "<b/>";
  EXPECT_THAT(said(wide + "</a>"), HasSubstr("too many elements"));
  for (const char* xml : {"", "   ", "x", "<a>", "<a></b>", "<a/><b/>", "<a>&nothing;</a>", "<a>\xff</a>", "<a b=c/>"}) {
    EXPECT_THAT(said(xml), HasSubstr("15 the store's XML is refused at line")) << xml;
  }
}

TEST(S3AnswersTest, CompletesAnUpload) {
  EXPECT_EQ(CompletionXml({"\"a&<\""}),
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><PartNumber>1</PartNumber>"
            "<ETag>&quot;a&amp;&lt;&quot;</ETag></Part></CompleteMultipartUpload>");
}

TEST(S3RefusalTest, SaysWhatToDo) {
  const Address at = {"bucket", "key"};
  const auto code = [&](int status, const char* name) { return Explain(status, {name, "", ""}, at, "", "the environment").code; };
  EXPECT_EQ(code(404, "NoSuchKey"), uint32_t(TW_NOT_FOUND));
  EXPECT_EQ(code(403, "AccessDenied"), uint32_t(TW_PERMISSION_DENIED));
  EXPECT_EQ(code(403, ""), uint32_t(TW_PERMISSION_DENIED));
  EXPECT_EQ(code(403, "SignatureDoesNotMatch"), uint32_t(TW_UNAUTHENTICATED));
  EXPECT_EQ(code(507, ""), uint32_t(TW_RESOURCE_EXHAUSTED));
  EXPECT_EQ(code(599, "Strange"), uint32_t(TW_UNAVAILABLE));
  EXPECT_EQ(code(400, "Strange"), uint32_t(TW_INVALID_ARGUMENT));
  for (int status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(Explain(status, {}, at, "", "").again) << status;
  EXPECT_THAT(Explain(404, {"NoSuchBucket", "", ""}, at, "", "").text, HasSubstr("no bucket 'bucket'"));
  EXPECT_THAT(Explain(301, {"PermanentRedirect", "", "eu-west-1"}, at, "", "").text, HasSubstr("in the region 'eu-west-1'; set"));
  EXPECT_THAT(Explain(403, {"RequestTimeTooSkewed", "", ""}, at, "Fri", "").text, HasSubstr("set it (the store's: Fri)"));
  const std::string shown = Explain(400, {"Strange", std::string("a\nb\x1b[31m") + std::string(10'000, 'x'), ""}, at, "", "").text;
  EXPECT_LT(shown.size(), 400u);
  EXPECT_EQ(shown.find_first_of("\n\x1b"), shown.npos);
}

// ---- Requests and threads ----

TEST(S3HttpTest, RefusesHeadersThatWouldBeSeveral) {
  Http http("", std::chrono::seconds(1), 1);
  for (const std::string& tag : {std::string("a\r\nx: y"), std::string("a\rx"), std::string("a\nx"), std::string("a\0x", 3)}) {
    Request r;
    r.method = "GET";
    r.url = "http://127.0.0.1:1/";
    r.headers = {{"if-match", tag}};
    EXPECT_THAT(ErrorOf([&] { http.Send(r); }), HasSubstr("15 a value for the header 'if-match' has a line end"));
  }
}

TEST(S3WorkersTest, DoAllAndReportTheFirstFailure) {
  Workers workers(3);
  std::vector<int> done(100);
  workers.ForAll(done.size(), [&](uint64_t i) { ++done[i]; });
  EXPECT_EQ(done, std::vector<int>(100, 1));
  EXPECT_EQ(ErrorOf([&] { workers.ForAll(100, [](uint64_t) { throw tw::Error{TW_ABORTED, "so"}; }); }), "10 so");
  workers.ForAll(0, [](uint64_t) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace thalweg::s3
