#include "base/machine/cpu_quota.hpp"

#include <cstring>

namespace haul {

namespace {

void lower_quota(double& cpus, double quota, double period) noexcept {
  if (quota <= 0 || period <= 0) return;
  const double limit = quota / period;
  if (cpus == 0 || limit < cpus) cpus = limit;
}

void read_quota_v2(const FileTree& tree, const char* mount, const char* group,
                   double& cpus) noexcept {
  char text[128];
  if (!tree.read(text, sizeof text, "/sys/fs/cgroup%s%s/cpu.max", mount, group)) return;
  unsigned long quota = 0;
  unsigned long period = 0;
  char* space = strchr(text, ' ');
  if (space == nullptr) return;
  *space = '\0';
  // "max" is not a number: no limit.
  if (parse_number(text, quota) && parse_number(space + 1, period)) {
    lower_quota(cpus, static_cast<double>(quota), static_cast<double>(period));
  }
}

void read_quota_v1(const FileTree& tree, const char* mount, const char* group,
                   double& cpus) noexcept {
  char quota_text[64];
  char period_text[64];
  unsigned long quota = 0;
  unsigned long period = 0;
  constexpr const char* directory = "/sys/fs/cgroup";
  if (tree.read(quota_text, sizeof quota_text, "%s/%s%s/cpu.cfs_quota_us", directory, mount,
                group) &&
      tree.read(period_text, sizeof period_text, "%s/%s%s/cpu.cfs_period_us", directory, mount,
                group) &&
      parse_number(quota_text, quota) && parse_number(period_text, period)) {
    lower_quota(cpus, static_cast<double>(quota), static_cast<double>(period));
  }
}

// Is "cpu" in the comma-separated list?
bool lists_cpu_controller(const char* controllers) noexcept {
  for (const char* item = controllers; *item != '\0';) {
    const std::size_t length = strcspn(item, ",");
    if (length == 3 && memcmp(item, "cpu", 3) == 0) return true;
    item += length;
    if (*item == ',') ++item;
  }
  return false;
}

// The least of the group's limit and its ancestors'. In a container /proc may name the group by the
// host's path: directories that do not exist are skipped, and the walk ends at the mount's root.
void read_quota_line(const FileTree& tree, char* line, double& cpus) noexcept {
  char* controllers = strchr(line, ':');
  char* group = controllers != nullptr ? strchr(controllers + 1, ':') : nullptr;
  if (group == nullptr) return;
  *group++ = '\0';
  ++controllers;
  const bool v2 = *controllers == '\0';
  if (!v2 && !lists_cpu_controller(controllers)) return;
  for (;;) {
    if (strcmp(group, "/") == 0) *group = '\0';
    if (v2) {
      read_quota_v2(tree, "", group, cpus);
      read_quota_v2(tree, "/unified", group, cpus);
    } else {
      read_quota_v1(tree, controllers, group, cpus);
      if (strcmp(controllers, "cpu") != 0) read_quota_v1(tree, "cpu", group, cpus);
    }
    char* slash = strrchr(group, '/');
    if (slash == nullptr) return;
    *slash = '\0';
  }
}

}  // namespace

double read_cpu_quota(const FileTree& tree) noexcept {
  double cpus = 0;
  char text[8192];
  if (!tree.read(text, sizeof text, "/proc/self/cgroup")) {
    read_quota_v2(tree, "", "", cpus);
    return cpus;
  }
  char* rest = text;
  while (char* line = strsep(&rest, "\n")) read_quota_line(tree, line, cpus);
  return cpus;
}

}  // namespace haul
