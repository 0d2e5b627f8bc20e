// fresh: a copy into memory that has no pages yet, as malloc() gives it out for large blocks, and
// into memory that has them. Then the price of a call that libhaul-mem.so leaves to libc.
//
// Mapping and unmapping are outside the timed section: they cost the same for all ways, but for a
// huge page that is given back faster than 512 small ones.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "bench/kit/columns.hpp"
#include "bench/kit/trial.hpp"
#include "bench/transparent/new_memory.hpp"
#include "bench/transparent/small_calls.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

// header: new memory behind the 16 bytes in which malloc() notes the block's size. aligned: new
// memory that begins with a huge page and that nobody has touched. resident: every page is there.
enum class FreshTarget { header, aligned, resident };

const char* target_name(FreshTarget target) {
  switch (target) {
    case FreshTarget::header: return "new";
    case FreshTarget::aligned: return "new, aligned";
    case FreshTarget::resident: return "resident";
  }
  return "";
}

class FreshTrial {
 public:
  FreshTrial(FreshTarget target, std::size_t bytes)
      : target_(target), src_(bytes, src_shift_bytes) {
    if (target == FreshTarget::resident) resident_.emplace(bytes, NewMemory::header_bytes);
  }

  std::size_t bytes() const { return src_.size(); }
  std::byte* dst() { return resident_ ? resident_->data() : fresh_->data(); }

  void prepare() {
    write_content(src_.data(), bytes(), ++seed_);
    if (!resident_) {
      fresh_.reset();  // before there is another, so that memory for one suffices
      fresh_.emplace(bytes(), target_ == FreshTarget::aligned);
    }
    wake_mover();
  }

  // Prepares, times `copy`, which returns a status, and checks every byte.
  template <class Copy>
  double time_ns(const Copy& copy) {
    prepare();
    int status = 0;
    const double ns = timed_ns([&] { status = copy(); });
    tools::require(status, "a copy");
    check_content(dst(), bytes(), seed_);
    return ns;
  }

  int by_memcpy() {
    glibc_memcpy(dst(), src_.data(), bytes());
    return 0;
  }
  // HAUL_INLINE or HAUL_DEDICATED.
  int by_haul(unsigned flag) {
    haul_request request = haul_request_copy(dst(), src_.data(), bytes());
    request.flags |= flag;
    haul_ticket ticket{};
    const int taken = haul_submit(&request, 1, &ticket);
    return taken < 0 ? taken : haul_wait(ticket);
  }
  // The program computes and reads what was copied, as in suite `hide`.
  int memcpy_and_work(std::uint64_t steps) {
    by_memcpy();
    keep(compute(steps));
    read();
    return 0;
  }
  int haul_and_work(std::uint64_t steps) {
    const haul_ticket ticket = haul_copy(dst(), src_.data(), bytes());
    keep(compute(steps));
    const int status = haul_wait(ticket);
    read();
    return status;
  }

 private:
  // As in the other suites: source and destination never alias modulo 4 KiB.
  static constexpr std::size_t src_shift_bytes = 2112;

  void read() { keep(vector_sum(dst(), bytes())); }

  FreshTarget target_;
  Buffer src_;
  std::optional<Buffer> resident_;
  std::optional<NewMemory> fresh_;
  std::uint64_t seed_ = 0;
};

Row measure_fresh(SuiteRun& session, FreshTarget target, std::size_t bytes) {
  FreshTrial trial(target, bytes);
  Samples probe;
  for (int i = 0; i < 5; ++i) probe.push_back(trial.time_ns([&] { return trial.by_memcpy(); }));
  const std::uint64_t steps = compute_steps(quantile(probe, 0.25));

  Samples memcpy_ns, inline_ns, together_ns, serial_ns, total_ns;
  const auto timed = [&](Samples& samples, auto copy) {
    return [&samples, &trial, copy](bool measured) {
      const double ns = trial.time_ns(copy);
      if (measured) samples.push_back(ns);
    };
  };
  // Each way of haul's runs beside the memcpy that it is compared with.
  interleave(repetitions_of(bytes, session.options.quick),
             {timed(inline_ns, [&] { return trial.by_haul(HAUL_INLINE); }),
              timed(memcpy_ns, [&] { return trial.by_memcpy(); }),
              timed(together_ns, [&] { return trial.by_haul(HAUL_DEDICATED); }),
              timed(total_ns, [&] { return trial.haul_and_work(steps); }),
              timed(serial_ns, [&] { return trial.memcpy_and_work(steps); })});

  Row row = {{"dst", target_name(target)},
             {"size_bytes", bytes},
             {"memcpy_ns", round1(median(memcpy_ns))},
             {"inline_ns", round1(median(inline_ns))},
             {"together_ns", round1(median(together_ns))}};
  put_ratio(row, "inline_ratio", ratio_of(inline_ns, memcpy_ns));
  put_ratio(row, "together_ratio", ratio_of(together_ns, memcpy_ns));
  row["serial_ns"] = round1(median(serial_ns));
  row["total_ns"] = round1(median(total_ns));
  put_ratio(row, "total_ratio", ratio_of(total_ns, serial_ns));
  row["repetitions"] = memcpy_ns.size();
  return row;
}

void run_fresh(SuiteRun& session, std::vector<Row>& rows) {
  using tools::kib;
  using tools::mib;
  const std::vector<std::size_t> sizes =
      sizes_or(session.options, {256 * kib, mib, 4 * mib, 10 * mib, 16 * mib, 64 * mib});
  constexpr FreshTarget targets[] = {FreshTarget::header, FreshTarget::aligned,
                                     FreshTarget::resident};
  double done = 0;
  const double all = static_cast<double>(sizes.size() * std::size(targets) + 1);
  for (const FreshTarget target : targets) {
    for (const std::size_t bytes : sizes) {
      session.options.progress(done++ / all,
                               fmt::format("{} {}", target_name(target), tools::show_bytes(bytes)));
      add_placed(session, rows, measure_fresh(session, target, bytes));
    }
  }
  session.options.progress(done / all, "small calls");
  race_small_calls(session, rows);
}

constexpr Column inline_ratio{"inline_ratio", "inline", Unit::ratio},
    inline_q25{"inline_ratio_q25", "25 %", Unit::ratio},
    inline_q75{"inline_ratio_q75", "75 %", Unit::ratio},
    together_ratio{"together_ratio", "together", Unit::ratio},
    together_q25{"together_ratio_q25", "25 %", Unit::ratio},
    together_q75{"together_ratio_q75", "75 %", Unit::ratio},
    total_ratio{"total_ratio", "total/serial", Unit::ratio},
    total_q25{"total_ratio_q25", "25 %", Unit::ratio},
    total_q75{"total_ratio_q75", "75 %", Unit::ratio};

constexpr auto fresh_columns = columns_of(
    column::placement, Column{"dst", "into", Unit::text}, column::size, column::memcpy_ns,
    inline_ratio, inline_q25, inline_q75, together_ratio, together_q25, together_q75, total_ratio,
    total_q25, total_q75, Column{"preload_ns", "preloaded", Unit::ns},
    Column{"preload_ratio", "ratio", Unit::ratio});

}  // namespace

const Suite fresh_suite{"fresh",
                        "copies into memory without pages and with them; the preload's price for "
                        "small calls",
                        run_fresh, fresh_columns, true};

}  // namespace haul::bench
