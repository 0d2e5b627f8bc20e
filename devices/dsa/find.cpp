// Work queues of Linux' idxd driver, by libaccel-config. Where none can be used, the sentence names
// the step that is missing: of several devices and queues that of the one whose set-up has come
// furthest.
#include <accel-config/libaccel_config.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "devices/dsa/work_queue.hpp"

namespace haul::dsa {

void Sentence::say(const char* format, ...) const {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, bytes, format, arguments);
  va_end(arguments);
}

namespace {

// What the library says of its work is nothing for a program's standard error.
void say_nothing(accfg_ctx*, int, const char*, int, const char*, const char*, va_list) {}

// By shared virtual addressing. (accfg_device_get_pasid_enabled() of libaccel-config 3.5 says yes
// whatever the driver says.)
bool takes_addresses(const char* device) {
  char path[96];
  std::snprintf(path, sizeof path, "/sys/bus/dsa/devices/%s/pasid_enabled", device);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  char text = '0';
  const bool told = file >= 0 && read(file, &text, 1) == 1;
  if (file >= 0) close(file);
  return told && text != '0';
}

// In the order of a set-up.
enum class Step { driver, device, addresses, enabled, user_queue, queue_enabled, opened };

class Search {
 public:
  Search(const char* name, WorkQueue& queue, const Sentence& sentence)
      : name_(name), queue_(queue), sentence_(sentence) {}

  bool succeeds() {
    if (access("/sys/bus/dsa/devices", F_OK) != 0) {
      lacks(Step::driver)
          .say("Linux' idxd driver is not loaded; run `modprobe idxd` on a machine with Intel DSA");
      return false;
    }
    accfg_ctx* context = nullptr;
    if (accfg_new(&context) != 0) {
      lacks(Step::driver).say("libaccel-config does not start; look at /sys/bus/dsa/devices");
      return false;
    }
    accfg_set_log_fn(context, say_nothing);
    lacks(Step::device)
        .say(
            "Linux' idxd driver has no DSA device; if this machine has one, enable it in the "
            "firmware, or pass it to this virtual machine");
    bool found = false;
    accfg_device* device = nullptr;
    accfg_device_foreach(context, device) {
      found = accfg_device_get_type(device) == ACCFG_DEVICE_DSA && try_device(device);
      if (found) break;
    }
    accfg_unref(context);
    return found;
  }

 private:
  // Where to say what is missing: nowhere, if another one has come further.
  Sentence lacks(Step step) {
    static char nowhere[1];
    if (step < furthest_) return {nowhere, sizeof nowhere};
    furthest_ = step;
    return sentence_;
  }

  bool try_device(accfg_device* device) {
    const char* const name = accfg_device_get_devname(device);
    if (!takes_addresses(name)) {
      lacks(Step::addresses)
          .say("%s does not take a process's addresses; start Linux with intel_iommu=on,sm_on",
               name);
      return false;
    }
    if (accfg_device_get_state(device) != ACCFG_DEVICE_ENABLED) {
      lacks(Step::enabled)
          .say(
              "%s is disabled; give it a work queue (`accel-config config-wq`), then `accel-config "
              "enable-device %s`",
              name, name);
      return false;
    }
    if (name_[0] == '\0') {
      lacks(Step::user_queue)
          .say(
              "%s has no work queue for users; make one: `accel-config config-wq %s/wqX.Y -y user "
              "-d user`, and enable it",
              name, name);
    } else {
      lacks(Step::user_queue)
          .say("%s is no work queue for users; `accel-config list` names those there are", name_);
    }
    accfg_wq* queue = nullptr;
    accfg_wq_foreach(device, queue) {
      const bool wanted = name_[0] == '\0' || std::strcmp(name_, accfg_wq_get_devname(queue)) == 0;
      if (wanted && accfg_wq_get_type(queue) == ACCFG_WQT_USER && try_queue(device, queue))
        return true;
    }
    return false;
  }

  bool try_queue(accfg_device* device, accfg_wq* queue) {
    const char* const name = accfg_wq_get_devname(queue);
    if (accfg_wq_get_state(queue) != ACCFG_WQ_ENABLED) {
      lacks(Step::queue_enabled)
          .say("%s is disabled; `accel-config enable-wq %s/%s`", name,
               accfg_device_get_devname(device), name);
      return false;
    }
    char path[64];
    std::snprintf(path, sizeof path, "/dev/dsa/%s", name);
    queue_.descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (queue_.descriptor < 0) {
      lacks(Step::opened)
          .say("%s cannot be opened (%s); %s", path, strerrordesc_np(errno), remedy_of(errno));
      return false;
    }
    std::snprintf(queue_.name, sizeof queue_.name, "%s", name);
    queue_.shared = accfg_wq_get_mode(queue) == ACCFG_WQ_SHARED;
    queue_.blocks_on_fault = accfg_wq_get_block_on_fault(queue) > 0;
    queue_.depth = static_cast<unsigned>(std::max<std::uint64_t>(accfg_wq_get_size(queue), 1));
    queue_.most_batch = accfg_wq_get_max_batch_size(queue);
    if (const std::uint64_t most = accfg_wq_get_max_transfer_size(queue); most != 0)
      queue_.most_transfer = most;
    return true;
  }

  static const char* remedy_of(int error) {
    switch (error) {
      case EACCES:
      case EPERM: return "give this user the right to read and write it";
      case EBUSY: return "another process has it: end that, or make a shared work queue";
      case ENOENT: return "a container needs the device passed to it";
      default: return "`dmesg` may say more";
    }
  }

  const char* name_;
  WorkQueue& queue_;
  const Sentence& sentence_;
  Step furthest_ = Step::driver;
};

}  // namespace

bool find_work_queue(const char* name, WorkQueue& queue, const Sentence& sentence) {
  return Search(name, queue, sentence).succeeds();
}

}  // namespace haul::dsa
