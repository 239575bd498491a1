#include "framework/runtime/state/saved_resource.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/registry/registrar.h"
#include "framework/tensor/memory_budget.h"
#include "tests/framework/support/fakes.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::FakeHost;
using testing_support::Text;

int alive = 0;  // number of objects
int tried = 0;  // number of bytes that Save tried to write, one by one

// A box holds a text and is saved as its format, then the text; "broken" cannot be restored, and
// "nothing" restores no object.
struct Box {
  explicit Box(std::string t) : text(std::move(t)) { ++alive; }
  ~Box() { --alive; }
  std::string text;
};
void Destroy(const tw_host*, void* object) { delete static_cast<Box*>(object); }
tw_status* Save(const tw_host*, const void* object, tw_sink* to) {
  const std::string& text = static_cast<const Box*>(object)->text;
  if (text == "unsaved") return ToC(Internal("the box is stuck"));
  for (char c : text) {
    ++tried;
    if (tw_status* s = to->put(to, &c, 1)) return s;
  }
  return nullptr;
}
tw_status* Restore(const tw_host*, void*, uint64_t format, tw_source* from, void** out_object) {
  std::string text = std::to_string(format) + " ";
  char part[4];
  for (uint64_t n = 1; n > 0; text.append(part, n)) {
    if (tw_status* s = from->get(from, part, sizeof part, &n)) return s;
  }
  if (text.ends_with("broken")) {
    *out_object = &text;  // must be ignored, since the call fails
    return ToC(DataLoss("this is no box"));
  }
  if (!text.ends_with("nothing")) *out_object = new Box(text);
  return nullptr;
}

class SavedResourceTest : public ::testing::Test {
 protected:
  SavedResourceTest() {
    Registration r;
    Registrar registrar(&host_.c, "org.test", &r);
    const tw_resource_def types[] = {{TW_SIZED(tw_resource_def), TW_S("org.test.box"), 3, nullptr, Destroy, Save, Restore},
                                     {TW_SIZED(tw_resource_def), TW_S("org.test.lid"), 3, nullptr, Destroy, Save, Restore},
                                     {TW_SIZED(tw_resource_def), TW_S("org.test.queue"), 1, nullptr, Destroy, nullptr, nullptr}};
    for (const tw_resource_def& d : types) EXPECT_EQ(tw_add_resource(registrar.c(), &d), nullptr);
    EXPECT_TRUE(registry_.Commit(std::move(r)).ok());
  }
  ~SavedResourceTest() override {
    for (Resource* r : opened_) r->Release();
    store_.reset();
    EXPECT_EQ(alive, 0);
  }
  // Opens a resource with a box in it, unless text is NULL.
  Resource* Open(std::string_view name, const char* text, std::string_view type = "org.test.box") {
    opened_.push_back(*store_->Open("c", type, name));
    if (text) opened_.back()->set_object(new Box(text));
    return opened_.back();
  }
  static std::string In(const Resource* r) { return static_cast<Box*>(r->object())->text; }
  static Tensor Strings(const std::vector<std::string>& texts) {
    const int64_t n = int64_t(texts.size());
    Tensor t = *Tensor::Make(TW_STRING, &n, 1);
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_TRUE(t.SetString(i, texts[i]).ok());
    return t;
  }
  static Status Restored(Resource* r, const Tensor& saved) { return RestoreResources({r}, {&saved.view()}); }

  FakeHost host_;
  Registry registry_;
  std::unique_ptr<ResourceStore> store_ = std::make_unique<ResourceStore>(&registry_);
  std::vector<Resource*> opened_;
};

TEST_F(SavedResourceTest, TypeFormatAndBytesAreSaved) {
  auto saved = SaveResource(Open("a", "paper"), nullptr);
  ASSERT_TRUE(saved.ok()) << saved.status();
  ASSERT_EQ(saved->count(), 3u);
  EXPECT_EQ(saved->str(0), "org.test.box");
  EXPECT_EQ(saved->str(1), "3");
  EXPECT_EQ(saved->str(2), "paper");
}

TEST_F(SavedResourceTest, WhatWasSavedComesBackAndTheOldObjectGoes) {
  Resource* a = Open("a", "paper");
  const Tensor saved = *SaveResource(a, nullptr);
  a->set_object(new Box("other"));
  ASSERT_TRUE(Restored(a, saved).ok());
  EXPECT_EQ(In(a), "3 paper");
  EXPECT_EQ(alive, 1);
}

TEST_F(SavedResourceTest, ResourcesWithoutAnObjectGetOne) {
  Resource* a = Open("a", nullptr);
  EXPECT_THAT(Text(SaveResource(a, nullptr).status()), HasSubstr("org.test.box 'a' of plugin 'org.test' has no contents"));
  ASSERT_TRUE(Restored(a, Strings({"org.test.box", "3", "new"})).ok());
  EXPECT_EQ(In(a), "3 new");
  EXPECT_TRUE(a->exists());
}

TEST_F(SavedResourceTest, OlderFormatsReachThePluginAndNewerOnesDoNot) {
  Resource* a = Open("a", "kept");
  ASSERT_TRUE(Restored(a, Strings({"org.test.box", "1", "old"})).ok());
  EXPECT_EQ(In(a), "1 old");
  const Status newer = Restored(a, Strings({"org.test.box", "4", "new"}));
  EXPECT_EQ(newer.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Text(newer), HasSubstr("org.test.box 'a' of plugin 'org.test' was saved in format 4, and the plugin reads up to 3"));
  EXPECT_EQ(In(a), "1 old");
}

TEST_F(SavedResourceTest, AnotherTypeIsRefusedWithBothNames) {
  const Status s = Restored(Open("a", "kept"), Strings({"org.test.lid", "2", "x"}));
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(s), HasSubstr("org.test.box 'a' of plugin 'org.test' cannot become what was saved, a org.test.lid of format 2"));
}

TEST_F(SavedResourceTest, AllAreRestoredOrNone) {
  Resource *a = Open("a", "one"), *b = Open("b", "two");
  const Tensor good = Strings({"org.test.box", "3", "new"}), bad = Strings({"org.test.box", "3", "broken"});
  const Status s = RestoreResources({a, b}, {&good.view(), &bad.view()});
  EXPECT_EQ(s.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(s), HasSubstr("org.test.box 'b' of plugin 'org.test': this is no box"));
  EXPECT_EQ(In(a) + In(b), "onetwo");
  EXPECT_EQ(alive, 2);
  ASSERT_TRUE(RestoreResources({a, b}, {&good.view(), &good.view()}).ok());
  EXPECT_EQ(In(a) + In(b), "3 new3 new");
}

TEST_F(SavedResourceTest, AnEmptyVectorLeavesItsResource) {
  Resource *a = Open("a", "one"), *b = Open("b", "two");
  const Tensor none = Strings({}), good = Strings({"org.test.box", "3", "new"});
  ASSERT_TRUE(RestoreResources({a, b}, {&none.view(), &good.view()}).ok());
  EXPECT_EQ(In(a) + In(b), "one3 new");
}

TEST_F(SavedResourceTest, WhatIsNoSavedResourceIsRefused) {
  Resource* a = Open("a", "kept");
  for (const std::vector<std::string>& texts :
       std::vector<std::vector<std::string>>{{"org.test.box"}, {"org.test.box", "3"}, {"org.test.box", "3", "x", "y"}}) {
    EXPECT_EQ(Restored(a, Strings(texts)).code(), absl::StatusCode::kDataLoss) << texts.size();
  }
  for (const char* format : {"", "x", "-1", "3 ", "99999999999999999999"}) {
    EXPECT_THAT(Text(Restored(a, Strings({"org.test.box", format, "x"}))), HasSubstr("which is no number")) << format;
  }
  EXPECT_THAT(Text(Restored(a, *Tensor::Vector<float>(TW_FLOAT, {1, 2, 3}))), HasSubstr("what was saved is float, not string"));
  EXPECT_EQ(Restored(a, Strings({"org.test.box", "3", "nothing"})).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(In(a), "kept");
}

TEST_F(SavedResourceTest, WhatCannotBeSavedSaysWhy) {
  EXPECT_THAT(Text(SaveResource(Open("q", "x", "org.test.queue"), nullptr).status()),
              HasSubstr("org.test.queue 'q' of plugin 'org.test': this type of resource cannot be saved"));
  EXPECT_THAT(Text(SaveResource(Open("u", "unsaved"), nullptr).status()), HasSubstr("the box is stuck"));
  Resource* v = Open("v", nullptr, TW_VARIABLE_TYPE);
  EXPECT_THAT(Text(SaveResource(v, nullptr).status()), HasSubstr("'v' is a variable"));
  EXPECT_THAT(Text(Restored(v, Strings({}))), HasSubstr("'v' is a variable"));
  Resource* a = Open("a", "kept");
  const Tensor good = Strings({"org.test.box", "3", "new"});
  EXPECT_THAT(Text(RestoreResources({a, a}, {&good.view(), &good.view()})), HasSubstr("is to be restored twice"));
  EXPECT_EQ(In(a), "kept");
}

TEST_F(SavedResourceTest, WhatIsSavedCountsWhileItGrows) {
  Resource* a = Open("a", std::string(10000, 'x').c_str());
  MemoryBudget* budget = MemoryBudget::Create(1000);
  tried = 0;
  Status s = SaveResource(a, budget).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(s), HasSubstr("of its memory_limit"));
  EXPECT_EQ(tried, 1001);
  EXPECT_EQ(budget->used(), 0u);
  budget->Release();
}

TEST_F(SavedResourceTest, LocksAreFreeAfterwards) {
  Resource* a = Open("a", "unsaved");
  EXPECT_FALSE(SaveResource(a, nullptr).ok());
  EXPECT_TRUE(a->TryUpdate());
  a->UnlockUpdate();
  EXPECT_FALSE(Restored(a, Strings({"org.test.box", "3", "broken"})).ok());
  ASSERT_TRUE(Restored(a, Strings({"org.test.box", "3", "new"})).ok());
  EXPECT_TRUE(a->TryUpdate());
  a->UnlockUpdate();
}

}  // namespace
}  // namespace thalweg
