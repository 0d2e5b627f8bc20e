// The places where the service may listen, best first, and whether a directory may be trusted.
#include "request/service_socket.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/knobs.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"

namespace haul {
namespace {

constexpr const char* file_name = "service.sock";

// False if the text did not fit: a truncated path would be another one.
bool fits(int length) noexcept {
  return length > 0 && static_cast<std::size_t>(length) < socket_path_bytes;
}

// Copies the directory of `path` into `directory`; false if it has none.
bool directory_of(const char* path, char (&directory)[socket_path_bytes]) noexcept {
  const char* slash = std::strrchr(path, '/');
  if (slash == nullptr || slash == path) return false;
  const auto length = static_cast<std::size_t>(slash - path);
  if (length >= sizeof directory) return false;
  std::memcpy(directory, path, length);
  directory[length] = '\0';
  return true;
}

// 0 if only this user may write to it; -EPERM if others may, -ENOENT if it does not exist.
int directory_state(const char* directory) noexcept {
  struct stat status {};
  if (lstat(directory, &status) != 0) return -errno;
  const bool ours = S_ISDIR(status.st_mode) && status.st_uid == os::user_id() &&
                    (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return ours ? 0 : -EPERM;
}

constexpr unsigned place_count = 3;

// Writes the place's path; false if it is not to be used.
bool place_at(unsigned place, char (&path)[socket_path_bytes]) noexcept {
  const unsigned user = os::user_id();
  int length = -1;
  if (place == 0) {
    const char* runtime = secure_getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && runtime[0] == '/')
      length = std::snprintf(path, sizeof path, "%s/haul/%s", runtime, file_name);
  } else if (place == 1) {
    length = std::snprintf(path, sizeof path, "/run/user/%u/haul/%s", user, file_name);
  } else {
    length = std::snprintf(path, sizeof path, "/tmp/haul-%u/%s", user, file_name);
  }
  char directory[socket_path_bytes];
  return fits(length) && directory_of(path, directory) && directory_state(directory) != -EPERM;
}

}  // namespace

bool service_socket_path(unsigned index, char (&path)[socket_path_bytes]) noexcept {
  const KeepErrno keep;
  const char* only = knob_text(Knob::service_socket);
  if (only != nullptr && only[0] != '\0') {
    if (index == 0 && fits(std::snprintf(path, sizeof path, "%s", only))) return true;
    path[0] = '\0';
    return false;
  }
  for (unsigned place = 0; place < place_count; ++place) {
    // Places that cannot be used are skipped, so that the index counts those that can.
    if (place_at(place, path) && index-- == 0) return true;
  }
  path[0] = '\0';
  return false;
}

int make_socket_directory(const char* path) noexcept {
  const KeepErrno keep;
  char directory[socket_path_bytes];
  if (!directory_of(path, directory)) return 0;
  if (mkdir(directory, 0700) != 0 && errno != EEXIST) return -errno;
  return directory_state(directory);
}

}  // namespace haul
