/* haul_explain, haul_engine, haul_plan, haul_engine_info: what the
 * planner would do with a copy, and who could. */
#include <haul/haul.h>
#include <stdio.h>

static char from[4 << 20], to[4 << 20];

int main(void) {
  haul_request request = haul_request_copy(to, from, sizeof to);
  haul_plan plan = {.size = sizeof plan};
  if (haul_explain(&request, &plan) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("%s: %s by %s, %u chunks\n", plan.scheme, plan.engine,
         plan.mover, plan.chunks);
  for (unsigned i = 0; i < plan.reason_count; i++)
    printf("- %s\n", plan.reasons[i]);
  haul_engine_info info = {.size = sizeof info};
  for (unsigned i = 0; haul_engine(i, &info) == 0; i++)
    printf("%s: %s\n", info.name, info.status);
  return plan.reason_count == 0;
}
