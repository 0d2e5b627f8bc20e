// The calibration's file: text, one key=value a line, closed by a checksum.
#include "tune/calibration_file.hpp"

#include <stdlib.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/knobs.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"
#include "base/thread/unforked.hpp"
#include "tune/figures_text.hpp"
#include "tune/machine_key.hpp"
#include "tune/ring_text.hpp"

namespace haul::tune {

namespace {

// The figures in the order of the file. There they are decimals with three places, whatever the
// program's locale; in memory they are read as thousandths of a nanosecond.
struct Figure {
  const char* key;
  double plan::Calibration::*member;
  std::uint64_t minimum_ps;
};
constexpr std::uint64_t maximum_ps = 1'000'000'000'000;  // a second
constexpr Figure figures_in_order[] = {
    {"round_trip_ns", &plan::Calibration::round_trip_ns, 1},
    {"submit_ns", &plan::Calibration::submit_ns, 0},
    {"wake_ns", &plan::Calibration::wake_ns, 0},
    {"start_ns", &plan::Calibration::start_ns, 0},
    {"hot_line_ns", &plan::Calibration::hot_line_ns, 1},
    {"l3_line_ns", &plan::Calibration::l3_line_ns, 1},
    {"cold_line_ns", &plan::Calibration::cold_line_ns, 1},
    {"remote_line_ns", &plan::Calibration::remote_line_ns, 0},
    {"kernel_call_ns", &plan::Calibration::kernel_call_ns, 1},
    {"kernel_line_ns", &plan::Calibration::kernel_line_ns, 1},
};
// A figure that were measured but not stored would come back as its default.
static_assert(sizeof(plan::Calibration) ==
              sizeof figures_in_order / sizeof figures_in_order[0] * sizeof(double) +
                  alignof(plan::Calibration));

// How they came about, in thousandths too.
struct Share {
  const char* key;
  double Quality::*member;
};
constexpr std::uint64_t maximum_thousandths = 1'000'000;
constexpr Share shares_in_order[] = {
    {"ran_share", &Quality::ran_share},
    {"stolen_share", &Quality::stolen_share},
    {"spread", &Quality::spread},
};

constexpr const char* title = "haul calibration\n";

enum class Verdict { good, damaged, other_version, other_machine, doubtful };

bool read_quality(FiguresReader& reader, Quality& quality) noexcept {
  if (!reader.skip("measured_at=") || !reader.digits(12, quality.measured_at_s) ||
      !reader.skip("\n")) {
    return false;
  }
  for (const Share& share : shares_in_order) {
    std::uint64_t thousandths = 0;
    if (!reader.thousandths(share.key, thousandths) || thousandths > maximum_thousandths)
      return false;
    quality.*share.member = static_cast<double>(thousandths) / 1000;
  }
  return true;
}

Verdict parse(const char* text, std::size_t size, Measured& measured) noexcept {
  FiguresReader reader(text, size);
  std::uint64_t number = 0;
  // Other versions may have other lines after these two.
  if (!reader.skip(title) || !reader.skip("version=") || !reader.digits(9, number) ||
      !reader.skip("\n")) {
    return Verdict::damaged;
  }
  if (number != calibration_version) return Verdict::other_version;
  std::uint64_t machine = 0;
  if (!reader.skip("machine=") || !reader.hex16(machine) || !reader.skip("\n")) {
    return Verdict::damaged;
  }
  if (!read_quality(reader, measured.quality)) return Verdict::damaged;
  for (const Figure& figure : figures_in_order) {
    std::uint64_t ps = 0;
    if (!reader.thousandths(figure.key, ps) || ps < figure.minimum_ps || ps > maximum_ps)
      return Verdict::damaged;
    measured.figures.*figure.member = static_cast<double>(ps) / 1000;
  }
  if (!read_ring(reader, "near", measured.near) || !read_ring(reader, "far", measured.far))
    return Verdict::damaged;
  const std::uint64_t expected =
      hash(hash_seed, text, static_cast<std::size_t>(reader.position() - text));
  std::uint64_t checksum = 0;
  if (!reader.skip("checksum=") || !reader.hex16(checksum) || !reader.skip("\n") ||
      !reader.ended() || checksum != expected) {
    return Verdict::damaged;
  }
  if (machine != machine_key()) return Verdict::other_machine;
  measured.figures.measured = true;
  return distrust(measured) == nullptr ? Verdict::good : Verdict::doubtful;
}

Code code_of(int sys_errno) noexcept {
  return sys_errno == EACCES || sys_errno == EPERM || sys_errno == EROFS ? Code::permission
                                                                         : Code::io;
}

Error unusable(const char* path, Verdict verdict) noexcept {
  const char* cause = "is truncated or damaged";
  if (verdict == Verdict::other_version) cause = "is of another version of haul";
  if (verdict == Verdict::other_machine) cause = "was measured on another machine";
  if (verdict == Verdict::doubtful) cause = "was measured on a busy machine";
  return make_error(
      Code::invalid, 0,
      "the calibration file %.100s %s, so the defaults hold; run 'haul tune' to replace it", path,
      cause);
}

Error unreadable(const char* path, int sys_errno) noexcept {
  const char* remedy = "make it readable to this user, or set HAUL_TUNE_CACHE to another file";
  if (sys_errno == EISDIR) remedy = "remove the directory, or set HAUL_TUNE_CACHE to a file";
  return make_error(code_of(sys_errno), sys_errno,
                    "the calibration file %.80s cannot be read (%s), so the defaults hold; %s",
                    path, describe_errno(sys_errno), remedy);
}

}  // namespace

Error default_calibration_path(char* path, std::size_t size) noexcept {
  if (size != 0) path[0] = '\0';
  int length;
  if (const char* file = knob_text(Knob::tune_cache); file[0] != '\0') {
    length = snprintf(path, size, "%s", file);
  } else {
    // secure_getenv: a set-user-id program must not write where its invoker says. A path that is
    // not absolute is invalid by the XDG base directory specification.
    const char* below = "";
    const char* directory = secure_getenv("XDG_CACHE_HOME");
    if (directory == nullptr || directory[0] != '/') {
      below = "/.cache";
      directory = secure_getenv("HOME");
    }
    if (directory == nullptr || directory[0] != '/') {
      return make_error(Code::not_supported, 0,
                        "there is no place to keep the calibration, since neither XDG_CACHE_HOME "
                        "nor HOME is set to an absolute path; set one of them or HAUL_TUNE_CACHE");
    }
    length =
        snprintf(path, size, "%s%s/haul/calibration-%016" PRIx64, directory, below, machine_key());
  }
  if (length < 0 || static_cast<std::size_t>(length) >= size) {
    if (size != 0) path[0] = '\0';
    return make_error(Code::invalid, ENAMETOOLONG,
                      "the calibration file's path is longer than %zu bytes; set HAUL_TUNE_CACHE "
                      "to a shorter one",
                      size != 0 ? size - 1 : 0);
  }
  return Error{};
}

Expected<Measured> load_calibration(const char* path) noexcept {
  char text[file_bytes + 1];
  const ssize_t size = os::read_file(path, text, sizeof text);
  if (size == -ENOENT) {
    return make_error(
        Code::io, ENOENT,
        "there is no calibration file %.100s, so the defaults hold; run 'haul tune' to make one",
        path);
  }
  if (size < 0) return unreadable(path, static_cast<int>(-size));
  Measured measured;
  // A text that fills the buffer is too long for a good file, and fails at its end.
  const Verdict verdict = parse(text, static_cast<std::size_t>(size), measured);
  if (verdict == Verdict::good) return measured;
  return unusable(path, verdict);
}

Error store_calibration(const char* path, const Measured& measured) noexcept {
  const plan::Calibration& figures = measured.figures;
  if (const char* why = distrust(measured); why != nullptr && figures.measured) {
    return make_error(Code::again, 0,
                      "the calibration is not kept, since %s while it was measured; run 'haul "
                      "tune' again on a quieter machine",
                      why);
  }
  FiguresWriter writer;
  writer.add("%sversion=%u\nmachine=%016" PRIx64 "\n", title, calibration_version, machine_key());
  writer.add("measured_at=%" PRIu64 "\n", measured.quality.measured_at_s);
  for (const Share& share : shares_in_order) {
    writer.add_thousandths(
        share.key, (static_cast<std::uint64_t>(measured.quality.*share.member * 10'000) + 5) / 10);
  }
  for (const Figure& figure : figures_in_order) {
    const double ns = figures.*figure.member;
    const double rounded_up = ns * 1000 + 0.5;
    // NaN fails every comparison.
    const bool usable = rounded_up >= static_cast<double>(figure.minimum_ps) &&
                        rounded_up < static_cast<double>(maximum_ps + 1);
    if (!figures.measured || !usable) {
      return make_error(Code::invalid, 0,
                        "the calibration is not kept, since %s cannot be a measured figure; run "
                        "'haul tune' again on a quieter machine",
                        figure.key);
    }
    writer.add_thousandths(figure.key, static_cast<std::uint64_t>(rounded_up));
  }
  write_ring(writer, "near", measured.near);
  write_ring(writer, "far", measured.far);
  const std::uint64_t checksum = hash(hash_seed, writer.text(), writer.size());
  writer.add("checksum=%016" PRIx64 "\n", checksum);
  const int result = os::write_file(path, writer.text(), writer.size());
  if (result == 0) return Error{};
  const char* remedy = "make its directory writable, or set HAUL_TUNE_CACHE to another file";
  if (result == -EISDIR) remedy = "remove the directory, or set HAUL_TUNE_CACHE to a file";
  if (result == -ENOSPC || result == -EDQUOT) remedy = "free some space there";
  return make_error(code_of(-result), -result, "the calibration cannot be kept in %.70s (%s); %s",
                    path, describe_errno(-result), remedy);
}

namespace {

constinit os::Descriptor held_lock;  // of this process's one CalibrationLock, if it holds it
constinit std::atomic<bool> fork_handler_set{false};

// A child must not hold the parent's lock for as long as it lives.
void close_in_child() noexcept {
  held_lock.close();
}

}  // namespace

CalibrationLock::CalibrationLock() noexcept {
  if (!fork_handler_set.exchange(true, std::memory_order_relaxed)) {
    pthread_atfork(nullptr, nullptr, close_in_child);
  }
  char name[64];
  snprintf(name, sizeof name, "haul-tune-%u-%016" PRIx64, os::user_id(), machine_key());
  // A child closes the lock only if it knows of it. (haul's threads, which measure, have signals
  // blocked.)
  const Unforked unforked;
  if (!unforked) return;
  const auto lock = os::Descriptor::of(os::bind_abstract(name));
  held_ = lock.valid();
  if (held_) held_lock = lock;
}

CalibrationLock::~CalibrationLock() {
  if (held_) held_lock.close();
}

}  // namespace haul::tune
