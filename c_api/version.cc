#include "thalweg/version.h"

#include "thalweg/plugin/abi.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

const char* tw_version_string(void) { return TEXT(TW_VERSION_MAJOR) "." TEXT(TW_VERSION_MINOR) "." TEXT(TW_VERSION_PATCH); }

uint32_t tw_version_number(void) { return TW_VERSION_MAJOR * 1000000 + TW_VERSION_MINOR * 1000 + TW_VERSION_PATCH; }

uint32_t tw_version_plugin_epoch(void) { return TW_EPOCH; }
