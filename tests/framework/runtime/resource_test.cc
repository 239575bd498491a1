#include "framework/runtime/state/resource.h"

#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/registry/registrar.h"
#include "tests/framework/support/fakes.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::FakeHost;
using testing_support::Text;

// Objects are counters of their own destruction.
void CountDestroy(const tw_host*, void* object) { ++*static_cast<int*>(object); }

class ResourceTest : public ::testing::Test {
 protected:
  ResourceTest() {
    Registration r;
    Registrar registrar(&host_.c, "org.test", &r);
    tw_resource_def d{TW_SIZED(tw_resource_def), TW_S("org.test.queue"), 1, nullptr, CountDestroy, nullptr, nullptr};
    EXPECT_EQ(tw_add_resource(registrar.c(), &d), nullptr);
    EXPECT_TRUE(registry_.Commit(std::move(r)).ok());
    store_ = std::make_unique<ResourceStore>(&registry_);
  }
  Resource* Variable(std::string_view name, std::string_view container = "c") {
    auto r = store_->Open(container, TW_VARIABLE_TYPE, name);
    EXPECT_TRUE(r.ok()) << r.status();
    return *r;
  }
  FakeHost host_;
  Registry registry_;
  std::unique_ptr<ResourceStore> store_;
};

// ---- Store ----

TEST_F(ResourceTest, OpensTheSamePlaceAgain) {
  Resource* a = Variable("w");
  Resource* b = Variable("w");
  EXPECT_EQ(a, b);
  EXPECT_TRUE(a->is_variable());
  EXPECT_EQ(a->container(), "c");
  EXPECT_EQ(a->name(), "w");
  Resource* elsewhere = Variable("w", "d");
  EXPECT_NE(a, elsewhere);
  for (Resource* r : {a, b, elsewhere}) r->Release();
}

TEST_F(ResourceTest, RefusesAnotherTypeUnderTheSameName) {
  Variable("w")->Release();
  auto r = store_->Open("c", "org.test.queue", "w");
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(r.status()), HasSubstr("resource 'w' in container 'c' is a 'variable', not a 'org.test.queue'"));
  EXPECT_EQ(store_->Open("c", "org.unknown", "x").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Find("c", "x"), nullptr);
}

TEST_F(ResourceTest, DropsTheValueAndKeepsThePlaceForHandles) {
  Resource* r = Variable("w");
  r->LockUpdate();
  r->set_value(*Tensor::Vector<float>(TW_FLOAT, {1}));
  r->UnlockUpdate();
  ASSERT_TRUE(store_->Drop("c", "w").ok());
  EXPECT_FALSE(r->exists());
  EXPECT_EQ(store_->Drop("c", "w").code(), absl::StatusCode::kNotFound);
  Resource* again = Variable("w");  // old and new handles refer to the same resource
  EXPECT_EQ(again, r);
  r->LockUpdate();
  r->set_value(*Tensor::Vector<float>(TW_FLOAT, {1}));
  r->UnlockUpdate();
  again->Release();
  r->Release();
  ASSERT_TRUE(store_->Drop("c", "w").ok());
  EXPECT_EQ(store_->Find("c", "w"), nullptr);  // nobody held a handle
  auto other = store_->Open("c", "org.test.queue", "w");
  ASSERT_TRUE(other.ok()) << other.status();
  (*other)->Release();
}

TEST_F(ResourceTest, ManyDroppedPlacesGoWithTheirLastHandles) {
  auto held = [&](int i) {
    Resource* r = Variable(std::to_string(i));
    r->LockUpdate();
    r->set_value(*Tensor::Vector<float>(TW_FLOAT, {1}));
    r->UnlockUpdate();
    EXPECT_TRUE(store_->Drop("c", r->name()).ok());
    return r;
  };
  Resource* kept = held(0);
  for (int i = 1; i < 1000; ++i) held(i)->Release();
  const std::vector<Resource*> left = store_->List("c");
  EXPECT_LE(left.size(), 32u);
  for (Resource* r : left) r->Release();
  Resource* again = Variable("0");
  EXPECT_EQ(again, kept);
  again->Release();
  kept->Release();
}

TEST_F(ResourceTest, ListsAndClearsOneContainer) {
  for (const char* name : {"b", "a"}) Variable(name)->Release();
  Variable("z", "other")->Release();
  std::vector<std::string> names;
  for (Resource* r : store_->List("c")) {
    names.push_back(r->name());
    r->Release();
  }
  EXPECT_THAT(names, ElementsAre("a", "b"));
  store_->ResetContainer("c");
  EXPECT_TRUE(store_->List("c").empty());
  Resource* z = store_->Find("other", "z");
  ASSERT_NE(z, nullptr);
  z->Release();
}

TEST_F(ResourceTest, DestroysPluginObjectsOnce) {
  int first = 0, second = 0;
  Resource* r = *store_->Open("c", "org.test.queue", "q");
  EXPECT_FALSE(r->exists());
  r->LockUpdate();
  r->set_object(&first);
  EXPECT_TRUE(r->exists());
  r->set_object(&second);
  r->UnlockUpdate();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  store_.reset();  // the runtime ends while a handle exists
  EXPECT_EQ(second, 1);
  EXPECT_FALSE(r->exists());
  r->Release();
  EXPECT_EQ(second, 1);
}

TEST_F(ResourceTest, VariablesComeAndGoWithTheirValue) {
  Resource* r = Variable("w");
  EXPECT_FALSE(r->exists());
  r->LockUpdate();
  r->set_value(*Tensor::Vector<float>(TW_FLOAT, {1, 2}));
  EXPECT_TRUE(r->exists());
  r->Clear();
  EXPECT_FALSE(r->exists());
  r->UnlockUpdate();
  r->Release();
}

// ---- Locks ----

TEST_F(ResourceTest, ReadersShareAndUpdatersDoNot) {
  Resource* r = Variable("w");
  EXPECT_TRUE(r->TryRead());
  EXPECT_TRUE(r->TryRead());
  EXPECT_FALSE(r->TryUpdate());
  r->UnlockRead();
  EXPECT_FALSE(r->TryUpdate());
  r->UnlockRead();
  EXPECT_TRUE(r->TryUpdate());
  EXPECT_FALSE(r->TryUpdate());
  EXPECT_FALSE(r->TryRead());
  r->UnlockUpdate();
  EXPECT_TRUE(r->TryRead());
  r->UnlockRead();
  r->Release();
}

TEST_F(ResourceTest, NobodyPassesAnUpdaterThatWaits) {
  Resource* r = Variable("w");
  r->LockRead();
  std::atomic<bool> updated{false};
  std::thread updater([&] {
    r->LockUpdate();
    updated = true;
    r->UnlockUpdate();
  });
  // A waiting writer makes new readers wait.
  while (r->TryRead()) {
    r->UnlockRead();
    std::this_thread::yield();
  }
  EXPECT_FALSE(updated);
  std::thread reader([&] {
    r->LockRead();
    EXPECT_TRUE(updated);
    r->UnlockRead();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  r->UnlockRead();
  updater.join();
  reader.join();
  r->Release();
}

TEST_F(ResourceTest, SeveralWaitingReadersGoInTogether) {
  Resource* r = Variable("w");
  r->LockUpdate();
  std::atomic<int> inside{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      r->LockRead();
      ++inside;
      while (inside < 3) std::this_thread::yield();
      r->UnlockRead();
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(inside, 0);
  r->UnlockUpdate();
  for (std::thread& t : readers) t.join();
  r->Release();
}

TEST_F(ResourceTest, LocksProtectWhatTheyGuard) {
  Resource* r = Variable("w");
  int64_t counter = 0;  // not atomic: only the lock orders its accesses
  std::vector<std::thread> threads;
  std::atomic<int64_t> seen{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 2000; ++k) {
        if (i % 2) {
          r->LockUpdate();
          ++counter;
          r->UnlockUpdate();
        } else if (r->TryRead()) {
          seen += counter >= 0;
          r->UnlockRead();
        } else {
          r->LockRead();
          seen += counter >= 0;
          r->UnlockRead();
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(counter, 4000);
  EXPECT_EQ(seen, 4000);
  r->Release();
}

}  // namespace
}  // namespace thalweg
