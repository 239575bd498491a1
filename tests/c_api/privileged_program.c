/* Prints the state and path of each plugin of the default runtime. Exit status 2: there is no
 * runtime; prints the reason. */
#include <stdio.h>

#include "thalweg/thalweg.h"

int main(void) {
  tw_plugins* plugins = NULL;
  tw_status* status = tw_plugins_create(NULL, &plugins);
  if (status) {
    printf("%s\n", tw_status_message(status));
    tw_status_release(status);
    return 2;
  }
  for (uint32_t i = 0; i < tw_plugins_count(plugins); ++i) {
    printf("%u %s %s\n", (unsigned)tw_plugins_state(plugins, i), tw_plugins_path(plugins, i), tw_plugins_reason(plugins, i));
  }
  tw_plugins_destroy(plugins);
  return 0;
}
