#include "xml.h"

#include <expat.h>

#include <algorithm>
#include <exception>
#include <memory>

#include "fail.h"

namespace thalweg::s3 {
namespace {

constexpr size_t kDeepest = 8, kMostElements = 20'000;

// Expat is written in C: nothing may be thrown through it.
struct Building {
  XML_Parser parser = nullptr;
  Element root;  // holds the outermost element
  std::vector<Element*> open = {&root};
  size_t elements = 0;
  const char* refused = nullptr;
  bool no_memory = false;

  void Refuse(const char* why) {
    if (!refused) refused = why;
    XML_StopParser(parser, XML_FALSE);
  }
  template <class F>
  void Guard(F&& body) {
    if (refused || no_memory) return;
    try {
      body();
    } catch (const std::exception&) {
      no_memory = true;
      XML_StopParser(parser, XML_FALSE);
    }
  }
};

void Start(void* user, const XML_Char* name, const XML_Char**) {
  auto& b = *static_cast<Building*>(user);
  b.Guard([&] {
    if (b.open.size() > kDeepest) return b.Refuse("it is nested too deeply");
    if (++b.elements > kMostElements) return b.Refuse("it has too many elements");
    std::string_view local(name);
    local.remove_prefix(local.rfind(':') + 1);
    // Siblings of the open elements get no new ones before they are closed, so the pointers stay.
    b.open.back()->inside.push_back({std::string(local), {}, {}});
    b.open.push_back(&b.open.back()->inside.back());
  });
}

void End(void* user, const XML_Char*) {
  auto& b = *static_cast<Building*>(user);
  if (!b.refused && !b.no_memory) b.open.pop_back();
}

void Characters(void* user, const XML_Char* text, int n) {
  auto& b = *static_cast<Building*>(user);
  b.Guard([&] { b.open.back()->text.append(text, size_t(n)); });
}

void DocumentType(void* user, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  static_cast<Building*>(user)->Refuse("it declares a document type");
}

}  // namespace

std::string_view Element::Text(std::string_view child) const {
  for (const Element& e : inside) {
    if (e.name == child) return e.text;
  }
  return {};
}

Element ParseXml(std::string_view text) {
  // A store that works on a request for long sends blanks before its answer, where XML allows none.
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreate("UTF-8"), XML_ParserFree);
  if (!parser) throw std::bad_alloc();
  Building b;
  b.parser = parser.get();
  XML_SetUserData(parser.get(), &b);
  XML_SetElementHandler(parser.get(), Start, End);
  XML_SetCharacterDataHandler(parser.get(), Characters);
  XML_SetStartDoctypeDeclHandler(parser.get(), DocumentType);
  const bool whole = text.size() <= (64u << 20) && XML_Parse(parser.get(), text.data(), int(text.size()), 1) == XML_STATUS_OK;
  if (b.no_memory) throw std::bad_alloc();
  if (whole && !b.refused) return std::move(b.root.inside.front());
  const XML_Error error = XML_GetErrorCode(parser.get());
  if (error == XML_ERROR_NO_MEMORY) throw std::bad_alloc();
  const std::string why = b.refused ? b.refused : error == XML_ERROR_NONE ? "it is too long" : XML_ErrorString(error);
  Fail(TW_DATA_LOSS, "the store's XML is refused at line " + std::to_string(XML_GetCurrentLineNumber(parser.get())) + ": " + why);
}

}  // namespace thalweg::s3
