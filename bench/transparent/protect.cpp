// protect: what it costs to keep up the illusion that a copy is done (paper 000, Table
// II: 4.3, 18.6 and 228 us for 64 KiB, 1 MiB and 16 MiB by mprotect()), by each mechanism and size
// of page, beside the copy itself.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/machine/huge_pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/userfault.hpp"
#include "bench/kit/buffer.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t small_page = 4096;

// Whole pages of one size, all there.
class PagedMemory {
 public:
  PagedMemory(std::size_t bytes, bool huge)
      : whole_(bytes + 2 * os::huge_page_bytes), at_(os::map_anonymous(whole_)), bytes_(bytes) {
    if (at_ == nullptr) throw tools::CommandFailure("no memory for a buffer; free some");
    const auto first = reinterpret_cast<std::uintptr_t>(at_) + os::huge_page_bytes - 1;
    begin_ = first & ~(os::huge_page_bytes - 1);
    write_content(data(), bytes_, 1);
    if (huge && os::collapse_to_huge(begin_, bytes_) != 0)
      throw tools::CommandFailure("the kernel gives no huge pages now; see `haul info`");
  }
  ~PagedMemory() { os::unmap(at_, whole_); }
  PagedMemory(const PagedMemory&) = delete;
  PagedMemory& operator=(const PagedMemory&) = delete;

  std::uintptr_t begin() const { return begin_; }
  std::byte* data() const { return reinterpret_cast<std::byte*>(begin_); }

 private:
  std::size_t whole_;
  void* at_;
  std::size_t bytes_;
  std::uintptr_t begin_ = 0;
};

void forbid(std::uintptr_t begin, std::size_t bytes, int rights) {
  if (::mprotect(reinterpret_cast<void*>(begin), bytes, rights) != 0)
    throw tools::CommandFailure(fmt::format("mprotect() failed with errno {}", errno));
}

// Paper 000: the source read-only, the destination not at all, and both as they were.
void by_mprotect(const PagedMemory& src, const PagedMemory& dst, std::size_t bytes) {
  forbid(src.begin(), bytes, PROT_READ);
  forbid(dst.begin(), bytes, PROT_NONE);
  forbid(src.begin(), bytes, PROT_READ | PROT_WRITE);
  forbid(dst.begin(), bytes, PROT_READ | PROT_WRITE);
}

void must(int result) {
  if (result != 0)
    throw tools::CommandFailure(fmt::format("userfaultfd refused with errno {}", -result));
}

// haul's own way with a source.
void by_write_protection(int fd, const PagedMemory& src, std::size_t bytes) {
  must(os::watch(fd, src.begin(), bytes, os::WatchFor::writes));
  must(os::protect_writes(fd, src.begin(), bytes, true));
  must(os::unwatch(fd, src.begin(), bytes));
}

// And with a destination: watching it, filling it, and ending that.
void by_filling(int fd, std::uintptr_t dst, const PagedMemory& src, std::size_t bytes) {
  must(os::watch(fd, dst, bytes, os::WatchFor::missing));
  for (std::size_t done = 0; done < bytes;) {
    const std::int64_t now = os::provide(fd, dst + done, src.begin() + done, bytes - done);
    if (now <= 0) must(static_cast<int>(now));
    done += static_cast<std::size_t>(now);
  }
  must(os::unwatch(fd, dst, bytes));
}

class ProtectTrial {
 public:
  ProtectTrial(const SuiteRun& session, std::size_t bytes, bool huge)
      : session_(session), bytes_(bytes), huge_(huge), src_(bytes, huge), dst_(bytes, huge) {}

  template <class Act>
  Row race(const char* mechanism, const Act& act) {
    Samples act_ns, memcpy_ns;
    const auto timed = [](Samples& samples, auto body) {
      return [&samples, body](bool measured) {
        const double ns = timed_ns(body);
        if (measured) samples.push_back(ns);
      };
    };
    interleave(repetitions_of(bytes_, session_.options.quick),
               {timed(act_ns, act),
                timed(memcpy_ns, [&] { glibc_memcpy(dst_.data(), src_.data(), bytes_); })});
    check_content(dst_.data(), bytes_, 1);
    Row row = {{"mechanism", mechanism},
               {"page_size", huge_ ? "2 MiB" : "4 KiB"},
               {"size_bytes", bytes_},
               {"protect_ns", round1(median(act_ns))},
               {"memcpy_ns", round1(median(memcpy_ns))}};
    put_ratio(row, "ratio", ratio_of(act_ns, memcpy_ns));
    return row;
  }

  void run(int userfault, std::vector<Row>& rows) {
    rows.push_back(race("mprotect", [&] { by_mprotect(src_, dst_, bytes_); }));
    if (userfault < 0) return;
    rows.push_back(race("write protection", [&] { by_write_protection(userfault, src_, bytes_); }));
    if (huge_) return;  // filling makes small pages
    rows.push_back(race("filling", [&] {
      void* const fresh = os::map_anonymous(bytes_);
      if (fresh == nullptr) throw tools::CommandFailure("no memory for a buffer; free some");
      by_filling(userfault, reinterpret_cast<std::uintptr_t>(fresh), src_, bytes_);
      check_content(static_cast<std::byte*>(fresh), small_page, 1);
      os::unmap(fresh, bytes_);
    }));
  }

 private:
  const SuiteRun& session_;
  std::size_t bytes_;
  bool huge_;
  PagedMemory src_, dst_;
};

void run_protect(SuiteRun& session, std::vector<Row>& rows) {
  using tools::kib;
  using tools::mib;
  const std::vector<std::size_t> sizes =
      sizes_or(session.options, {64 * kib, mib, 4 * mib, 16 * mib, 64 * mib});
  const int userfault = os::open_userfault();
  if (userfault < 0)
    session.options.note("userfaultfd left out, as the kernel refuses it (`haul info` says why)");
  double done = 0;
  for (const bool huge : {false, true}) {
    for (const std::size_t bytes : sizes) {
      session.options.progress(done++ / static_cast<double>(2 * sizes.size()),
                               tools::show_bytes(bytes));
      if (huge && bytes % os::huge_page_bytes != 0) continue;
      ProtectTrial(session, bytes, huge).run(userfault, rows);
    }
  }
  if (userfault >= 0) os::close_fd(userfault);
}

constexpr auto protect_columns = columns_of(
    Column{"mechanism", "mechanism", Unit::text}, Column{"page_size", "pages", Unit::text},
    column::size, Column{"protect_ns", "protecting", Unit::ns}, column::memcpy_ns, column::ratio,
    column::ratio_q25, column::ratio_q75);

}  // namespace

const Suite protect_suite{"protect",
                          "what protecting memory under a copy costs beside the copy (paper 000, "
                          "Table II)",
                          run_protect, protect_columns};

}  // namespace haul::bench
