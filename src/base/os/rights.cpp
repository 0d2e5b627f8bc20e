#include "base/os/rights.hpp"

#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"

namespace haul::os {

Rights rights_of_this_thread() noexcept {
  const KeepErrno keep;
  Rights rights;
  getresuid(&rights.user[0], &rights.user[1], &rights.user[2]);
  getresgid(&rights.group[0], &rights.group[1], &rights.group[2]);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) == 0)
    rights.capabilities = std::uint64_t{data[1].effective} << 32 | data[0].effective;
  return rights;
}

bool users_of(pid_t process, std::uint32_t (&users)[4]) noexcept {
  const KeepErrno keep;
  char path[32], text[2048];
  std::snprintf(path, sizeof path, "/proc/%d/status", static_cast<int>(process));
  if (read_file(path, text, sizeof text) <= 0) return false;
  // The name, which comes before, has its line feeds escaped.
  const char* at = std::strstr(text, "\nUid:");
  if (at == nullptr) return false;
  at += 5;
  for (std::uint32_t& user : users) {
    char* end = nullptr;
    user = static_cast<std::uint32_t>(std::strtoul(at, &end, 10));
    if (end == at) return false;
    at = end;
  }
  return true;
}

bool rights_are_mixed() noexcept {
  const Rights rights = rights_of_this_thread();
  const auto one = [](const std::uint32_t(&ids)[3]) {
    return ids[0] == ids[1] && ids[1] == ids[2];
  };
  return getauxval(AT_SECURE) != 0 || !one(rights.user) || !one(rights.group);
}

}  // namespace haul::os
