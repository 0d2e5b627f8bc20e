#include "study/simulation.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "format/reader.hpp"

namespace bcisim {
namespace {

// Threads take tasks from a common list until none is left. A task is a few runs of one trace next
// to each other: the trace is decoded once, and each chunk is played to the machines of all these
// runs. The first task that throws stops the others at their next chunk; its exception is thrown
// again by work() when all threads have ended. Results do not depend on the number of threads.

// Machines that are fed together fit into a processor's cache; the trace is decoded once for them.
constexpr std::size_t most_together = 4;

struct Task {
  std::size_t begin, end;  // runs
};

std::vector<Task> tasks_of(const std::vector<Run>& runs) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool joins = !tasks.empty() && runs[tasks.back().begin].trace == runs[i].trace &&
                       i - tasks.back().begin < most_together;
    if (joins) {
      tasks.back().end = i + 1;
    } else {
      tasks.push_back({i, i + 1});
    }
  }
  return tasks;
}

class Workers {
 public:
  Workers(const std::vector<Run>& runs, const SimulationOptions& options)
      : runs_(runs), options_(options), tasks_(tasks_of(runs)), results_(runs.size()) {}

  std::vector<Result> work() {
    std::vector<std::thread> others;
    const std::size_t threads =
        std::min<std::size_t>(std::max(1U, options_.threads), tasks_.size());
    try {
      for (std::size_t i = 1; i < threads; ++i) others.emplace_back([this] { take_tasks(); });
    } catch (const std::system_error&) {  // no more threads can be started: those that run do all
    }
    take_tasks();
    for (std::thread& other : others) other.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(results_);
  }

 private:
  void take_tasks() {
    for (;;) {
      const std::size_t mine = next_task_.fetch_add(1);
      if (mine >= tasks_.size() || failed_.load()) return;
      try {
        perform(tasks_[mine]);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        failed_.store(true);
      }
    }
  }

  void perform(const Task& task) {
    const std::string& trace = runs_[task.begin].trace;
    TraceReader reader(trace);
    if (reader.totals().instructions == 0)
      throw TraceError(trace + ": has no instructions; record one that has");
    std::vector<std::unique_ptr<Machine>> machines;
    for (std::size_t i = task.begin; i < task.end; ++i) {
      machines.push_back(make_machine(runs_[i].model, runs_[i].configuration));
      if (reader.checkpoint()) machines.back()->warm(*reader.checkpoint());
    }
    const std::uint64_t whole = reader.totals().instructions;
    std::uint64_t wanted = std::min(options_.instructions, whole);
    const bool reads_all = wanted == whole;  // to the end, where it shows whether the file is whole
    std::vector<Result> uncounted(machines.size());
    bool counts = options_.uncounted == 0;
    std::uint64_t played = 0, reported = 0;
    const auto report_more = [&] {
      report(static_cast<double>(played - reported) / static_cast<double>(wanted) *
             static_cast<double>(machines.size()));
      reported = played;
    };
    for (Chunk chunk; (reads_all || played < wanted) && !failed_.load() && reader.next(chunk);) {
      for (const auto& machine : machines) machine->play(chunk, reader.statics());
      played += chunk.instructions.size();
      if (!counts && played >= options_.uncounted) {
        for (std::size_t i = 0; i < machines.size(); ++i) uncounted[i] = machines[i]->result();
        counts = true;
        wanted += played - options_.uncounted;
      }
      constexpr std::uint64_t often = 1'000'000;
      if (played - reported >= often) report_more();
    }
    for (std::size_t i = task.begin; i < task.end; ++i) {
      results_[i] = since(uncounted[i - task.begin], machines[i - task.begin]->finish());
    }
    if (wanted != 0) report_more();
  }

  void report(double runs_more) {
    if (!options_.progress) return;
    const std::lock_guard lock(mutex_);
    runs_done_ += runs_more;
    options_.progress(std::min(1.0, runs_done_ / static_cast<double>(runs_.size())));
  }

  const std::vector<Run>& runs_;
  const SimulationOptions& options_;
  const std::vector<Task> tasks_;
  std::vector<Result> results_;
  std::atomic<std::size_t> next_task_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  double runs_done_ = 0;      // under the mutex
  std::exception_ptr error_;  // likewise
};

}  // namespace

std::vector<Result> simulate(const std::vector<Run>& runs, const SimulationOptions& options) {
  for (const Run& run : runs) {
    const std::string wrong = why_wrong(run.configuration.parameters);
    if (!wrong.empty()) throw std::invalid_argument(wrong);
  }
  return Workers(runs, options).work();
}

}  // namespace bcisim
