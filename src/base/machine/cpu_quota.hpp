// How much CPU time the cgroup grants.
#pragma once

#include "base/machine/sysfs.hpp"

namespace haul {

// CPUs' worth of time that this process's cgroup and its ancestors allow at most; 0 = unlimited or
// unknown. The tree is laid out like /: proc/self/cgroup and sys/fs/cgroup.
double read_cpu_quota(const FileTree& tree) noexcept;

}  // namespace haul
