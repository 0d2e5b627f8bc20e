// What the engine `dsa` makes of Linux' idxd driver, through libaccel-config: the step of the
// set-up that is missing is named, and a work queue that is there is taken. The driver's files are
// made by the test, in a mount namespace of its own; the queue's device is a pipe, as the kernel's
// write() is, with the device model behind it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "device/dsa_model.hpp"
#include "dsa_support.hpp"

namespace {

using namespace e2e;
using haul_model::DsaConduct;
using haul_model::DsaModel;
using haul_model::DsaPath;

const std::string bus = "/sys/bus/dsa/devices";
const std::string device = "/sys/bus/hardware/dsa0";

void say(const std::string& file, const std::string& text) {
  std::FILE* const stream = std::fopen(file.c_str(), "w");
  CHILD_CHECK(stream != nullptr);
  std::fputs((text + "\n").c_str(), stream);
  std::fclose(stream);
}

void say_all(const std::string& folder,
             const std::vector<std::pair<const char*, const char*>>& attributes) {
  CHILD_EQUAL(mkdir(folder.c_str(), 0755), 0);
  for (const auto& [name, text] : attributes) say(folder + "/" + name, text);
}

void make_folders(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) CHILD_EQUAL(mkdir(folder.c_str(), 0755), 0);
}

// A machine with one device, dsa0, and one work queue, wq0.0, whose set-up is complete.
void make_device() {
  make_folders({"/sys/bus/dsa", "/sys/bus/dsa/drivers", "/sys/bus/dsa/drivers/idxd",
                "/sys/bus/dsa/drivers/user", bus, "/sys/bus/hardware"});
  say_all(device, {{"version", "0x100"},
                   {"max_groups", "4"},
                   {"max_work_queues", "8"},
                   {"max_engines", "4"},
                   {"max_work_queues_size", "128"},
                   {"numa_node", "0"},
                   {"max_batch_size", "1024"},
                   {"max_transfer_size", "2147483648"},
                   {"configurable", "1"},
                   {"pasid_enabled", "1"},
                   {"state", "enabled"},
                   {"cdev_major", "240"},
                   {"ims_size", "0"},
                   {"op_cap", "1003f03ff 0 0 0"},
                   {"gen_cap", "0x40915f0107"},
                   {"errors", "0 0 0 0"},
                   {"max_read_buffers", "96"},
                   {"read_buffer_limit", "0"},
                   {"cmd_status", "0"},
                   {"max_tokens", "96"},
                   {"token_limit", "0"},
                   {"clients", "0"}});
  say_all(device + "/group0.0", {{"engines", "engine0.0"},
                                 {"work_queues", "wq0.0"},
                                 {"tokens_reserved", "0"},
                                 {"tokens_allowed", "96"},
                                 {"use_token_limit", "0"},
                                 {"traffic_class_a", "1"},
                                 {"traffic_class_b", "1"},
                                 {"read_buffers_reserved", "0"},
                                 {"read_buffers_allowed", "96"},
                                 {"use_read_buffer_limit", "0"}});
  say_all(device + "/engine0.0", {{"group_id", "0"}});
  say_all(device + "/wq0.0", {{"state", "enabled"},
                              {"group_id", "0"},
                              {"mode", "dedicated"},
                              {"size", "16"},
                              {"priority", "10"},
                              {"block_on_fault", "0"},
                              {"type", "user"},
                              {"name", "haul"},
                              {"driver_name", "user"},
                              {"cdev_minor", "0"},
                              {"clients", "0"},
                              {"threshold", "0"},
                              {"ats_disable", "0"},
                              {"occupancy", "0"},
                              {"max_transfer_size", "65536"},
                              {"max_batch_size", "16"}});
  // (As in sysfs, devices of a bus are links.)
  CHILD_EQUAL(symlink(device.c_str(), (bus + "/dsa0").c_str()), 0);
}

// After make_device().
void change(const char* attribute, const char* text) {
  say(device + "/" + attribute, text);
}

// In a child that sees a /sys/bus and a /dev of its own, both empty.
template <class Body>
int with_own_mounts(Body body) {
  return run_child([&] {
    CHILD_EQUAL(unshare(CLONE_NEWNS), 0);
    CHILD_EQUAL(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    for (const char* folder : {"/sys/bus", "/dev"})
      CHILD_EQUAL(mount("none", folder, "tmpfs", 0, "mode=755"), 0);
    return body();
  });
}

// From now on this thread, though root's, has the rights that files give.
void give_up_override() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  CHILD_EQUAL(syscall(SYS_capget, &header, data), 0);
  data[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
  CHILD_EQUAL(syscall(SYS_capset, &header, data), 0);
}

struct MissingStep {
  const char* name;
  std::function<void()> prepare;
  const char* queue;     // HAUL_ENGINE_DSA
  const char* sentence;  // a part of what is said
};

const MissingStep steps[] = {
    {"Driver", [] {}, "", "run `modprobe idxd`"},
    {"Device",
     [] {
       make_folders({"/sys/bus/dsa", "/sys/bus/dsa/drivers", "/sys/bus/dsa/drivers/idxd", bus});
     },
     "", "has no DSA device"},
    {"Addresses",
     [] {
       make_device();
       change("pasid_enabled", "0");
     },
     "", "start Linux with intel_iommu=on,sm_on"},
    {"EnabledDevice",
     [] {
       make_device();
       change("state", "disabled");
     },
     "", "`accel-config enable-device dsa0`"},
    {"UserQueue",
     [] {
       make_device();
       change("wq0.0/type", "kernel");
     },
     "", "`accel-config config-wq dsa0/wqX.Y -y user"},
    {"NamedQueue", make_device, "wq0.7", "wq0.7 is no work queue for users"},
    {"Word", make_device, "wq0.0 depth=4", "'depth=4' in HAUL_ENGINE_DSA says nothing"},
    {"EnabledQueue",
     [] {
       make_device();
       change("wq0.0/state", "disabled");
     },
     "", "`accel-config enable-wq dsa0/wq0.0`"},
    {"Node", make_device, "/dev/dsa/wq0.0",
     "/dev/dsa/wq0.0 cannot be opened (No such file or directory)"},
    {"Rights",
     [] {
       make_device();
       make_folders({"/dev/dsa"});
       CHILD_EQUAL(mkfifo("/dev/dsa/wq0.0", 0), 0);
       give_up_override();
     },
     "wq0.0", "give this user the right to read and write it"},
};

bool may_mount() {
  return geteuid() == 0 && run_child([] { return unshare(CLONE_NEWNS) == 0 ? 0 : 1; }) == 0;
}

class DsaSetup : public testing::TestWithParam<MissingStep> {
 protected:
  void SetUp() override {
    if (!may_mount()) GTEST_SKIP() << "only root may make a /sys/bus of its own";
  }
};
INSTANTIATE_TEST_SUITE_P(Lacks, DsaSetup, testing::ValuesIn(steps),
                         [](const auto& step) { return step.param.name; });

TEST_P(DsaSetup, IsNamed) {
  const int status = with_own_mounts([] {
    GetParam().prepare();
    const haul_engine_info info = opened_dsa("thread", GetParam().queue);
    if (std::strstr(info.status, "cannot be loaded") != nullptr) return skip_status;
    CHILD_EQUAL(info.available, 0);
    if (std::strstr(info.status, GetParam().sentence) != nullptr) return 0;
    std::fprintf(stderr, "dsa: %s\n", info.status);
    return 1;
  });
  if (status == skip_status) GTEST_SKIP() << "haul was built without libaccel-config";
  EXPECT_EQ(status, 0);
}

// `queue`: HAUL_ENGINE_DSA, by which wq0.0 is found; body(model).
template <class Body>
void queue_is_taken(const char* queue, const char* sentence, Body body) {
  if (!may_mount()) GTEST_SKIP() << "only root may make a /sys/bus of its own";
  const int status = with_own_mounts([&] {
    make_device();
    auto& model = *new DsaModel(DsaPath::pipe, DsaConduct{.faults_at_new_pages = true});
    model.start();
    const std::string file = model.knob().substr(0, model.knob().find(' '));
    make_folders({"/dev/dsa"});
    CHILD_EQUAL(symlink(file.c_str(), "/dev/dsa/wq0.0"), 0);
    const haul_engine_info info = opened_dsa("thread", queue);
    if (std::strstr(info.status, "cannot be loaded") != nullptr) return skip_status;
    CHILD_CHECK(std::strstr(info.status, sentence) == info.status);
    many_requests(1, 6);
    CHILD_CHECK(model.counts().moves > 10);
    body(model);
    CHILD_EQUAL(model.counts().refused, 0);
    CHILD_EQUAL(model.counts().dropped, 0);
    return 0;
  });
  if (status == skip_status) GTEST_SKIP() << "haul was built without libaccel-config";
  EXPECT_EQ(status, 0);
}

TEST(DsaQueue, ThatIsThereIsTaken) {
  queue_is_taken("", "ready: wq0.0 by write();",
                 [](const DsaModel& model) { CHILD_EQUAL(model.counts().compares, 0); });
}

TEST(DsaQueue, VerifiesWhereItIsToldTo) {
  for (const char* queue : {"wq0.0 verify", "verify", "/dev/dsa/wq0.0 verify"}) {
    queue_is_taken(queue, "ready: wq0.0 by write(), verified;",
                   [](const DsaModel& model) { CHILD_CHECK(model.counts().compares > 10); });
  }
}

// Nothing is written to a file that is neither of the two a stand-in has.
TEST(DsaStandIn, IsNoOrdinaryFile) {
  char path[] = "/tmp/haul-dsa-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  const std::string text(4096, 'x');
  ASSERT_EQ(write(file, text.data(), text.size()), 4096);
  const int memory = memfd_create("two pages", 0);
  ASSERT_EQ(ftruncate(memory, 8192), 0);
  for (const std::string& knob :
       {std::string(path), "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory),
        std::string("/dev/zero"), std::string("/proc/nonexistent/dsa"),
        std::string(path) + " depth=none"}) {
    EXPECT_EQ(run_child([&knob] {
                const haul_engine_info info = opened_dsa("thread", knob);
                CHILD_EQUAL(info.available, 0);
                CHILD_CHECK(std::strlen(info.status) > 20);
                return 0;
              }),
              0)
        << knob;
  }
  std::string now(4096, ' ');
  EXPECT_EQ(pread(file, now.data(), now.size(), 0), 4096);
  EXPECT_EQ(now, text);
  close(memory);
  close(file);
  unlink(path);
}

}  // namespace
