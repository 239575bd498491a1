// Parses the XML in a store's answers with Expat. What a store sends is not trusted: document types
// and entities are refused, and the tree has limits. Threads: any.
#ifndef THALWEG_PLUGINS_S3_XML_H_
#define THALWEG_PLUGINS_S3_XML_H_

#include <string>
#include <string_view>
#include <vector>

namespace thalweg::s3 {

struct Element {
  std::string name;  // without a prefix of a namespace
  std::string text;  // the text directly inside
  std::vector<Element> inside;

  // Returns the text of the first element of that name directly inside; empty if there is none.
  std::string_view Text(std::string_view child) const;
};

// Returns the outermost element. Throws DATA_LOSS, with the reason and the line, for text that is
// no XML, that declares a document type, that is nested more than 8 deep, or that has more than
// 20,000 elements.
Element ParseXml(std::string_view text);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_XML_H_
