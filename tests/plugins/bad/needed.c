/* A library that plugins of this folder need, and that is not there when they are loaded. */
__attribute__((visibility("default"))) int tw_test_needed(void);
int tw_test_needed(void) { return 1; }
