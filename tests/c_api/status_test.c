/* Statuses, versions and buffers. */
#include "check.h"

static void ASuccessIsNull(void) {
  CHECK(tw_status_code(NULL) == TW_OK);
  CHECK(strcmp(tw_status_message(NULL), "") == 0);
  tw_status_release(NULL);
}

static void AStatusKeepsCodeAndMessage(void) {
  tw_status* s = tw_status_create(TW_NOT_FOUND, "no such thing");
  CHECK(tw_status_code(s) == TW_NOT_FOUND);
  CHECK(strcmp(tw_status_message(s), "no such thing") == 0);
  tw_status_release(s);
}

static void AnUnknownCodeBecomesUnknown(void) {
  const uint32_t codes[] = {0, 17, 4000000000u};
  for (int i = 0; i < 3; ++i) {
    tw_status* s = tw_status_create(codes[i], NULL);
    CHECK(tw_status_code(s) == TW_UNKNOWN);
    CHECK(strcmp(tw_status_message(s), "") == 0);
    tw_status_release(s);
  }
}

static void EveryCodeHasItsName(void) {
  CHECK(strcmp(tw_status_code_name(TW_OK), "OK") == 0);
  CHECK(strcmp(tw_status_code_name(TW_INVALID_ARGUMENT), "INVALID_ARGUMENT") == 0);
  CHECK(strcmp(tw_status_code_name(TW_UNAUTHENTICATED), "UNAUTHENTICATED") == 0);
  CHECK(strcmp(tw_status_code_name(17), "UNKNOWN") == 0);
}

static void TheVersionAgreesWithTheHeaders(void) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", TW_VERSION_MAJOR, TW_VERSION_MINOR, TW_VERSION_PATCH);
  CHECK(strcmp(tw_version_string(), text) == 0);
  CHECK(tw_version_number() == TW_VERSION_MAJOR * 1000000 + TW_VERSION_MINOR * 1000 + TW_VERSION_PATCH);
  CHECK(tw_version_plugin_epoch() > 0);
}

static void ABufferKeepsBytesAndAddsAZero(void) {
  tw_buffer* b = NULL;
  OK(tw_buffer_create("a\0b", 3, &b));
  CHECK(tw_buffer_bytes(b) == 3 && memcmp(tw_buffer_data(b), "a\0b", 4) == 0);
  tw_buffer_retain(b);
  tw_buffer_release(b);
  CHECK(tw_buffer_bytes(b) == 3);
  tw_buffer_release(b);
  OK(tw_buffer_create(NULL, 0, &b));
  CHECK(tw_buffer_bytes(b) == 0 && *tw_buffer_data(b) == 0);
  tw_buffer_release(b);
  FAILS(tw_buffer_create(NULL, 1, &b), TW_INVALID_ARGUMENT, "data is NULL");
}

MAIN(TEST(ASuccessIsNull), TEST(AStatusKeepsCodeAndMessage), TEST(AnUnknownCodeBecomesUnknown), TEST(EveryCodeHasItsName),
     TEST(TheVersionAgreesWithTheHeaders), TEST(ABufferKeepsBytesAndAddsAZero))
