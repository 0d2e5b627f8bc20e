// haul explain: the plan of a request, and each reason; or the paths of messages.
#include <fmt/format.h>
#include <haul/haul.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/machine/topology.hpp"
#include "bench/copy/schemes/engines.hpp"
#include "bench/kit/buffer.hpp"
#include "bench/kit/cache.hpp"
#include "bench/kit/stage.hpp"
#include "cli/kit/terminal.hpp"
#include "cli/kit/tree.hpp"
#include "cli/mpi/mpi_explain.hpp"
#include "cli/transparent/way_reasons.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

struct ExplainedRequest {
  std::string size = "1M", operation = "copy";
  std::string dst_affinity = "cacheable", src_affinity = "cacheable";
  bool hot = false, cold = false;
  bool checked = false, fence = false, force_inline = false, force_dedicated = false;
  bool fresh = false, json = false, mpi = false;
  std::string transparent;
  MessageQuestion messages;
};

const std::vector<std::string> affinities = {"cacheable", "non-cacheable", "neutral"};

std::uint8_t affinity_number(const std::string& name) {
  std::uint8_t number = 0;
  while (affinities[number] != name) ++number;
  return number;
}

haul_request request_for(const ExplainedRequest& question, std::byte* dst, const std::byte* src,
                         std::size_t bytes) {
  haul_request request = question.operation == "fill" ? haul_request_fill(dst, 0, 1, bytes)
                                                      : haul_request_copy(dst, src, bytes);
  request.dst_affinity = affinity_number(question.dst_affinity);
  request.src_affinity = affinity_number(question.src_affinity);
  request.flags = (question.checked ? unsigned{HAUL_CHECKED} : 0) |
                  (question.fence ? unsigned{HAUL_FENCE} : 0) |
                  (question.force_inline ? unsigned{HAUL_INLINE} : 0) |
                  (question.force_dedicated ? unsigned{HAUL_DEDICATED} : 0);
  return request;
}

const char* scheme_meaning(const std::string& scheme) {
  if (scheme == "SCNI") return "the caller's own core copies";
  if (scheme == "MCNI") return "a dedicated core copies while the caller computes";
  if (scheme == "SCI") return "the caller drives a device that copies";
  return "a dedicated core drives a device that copies";
}

std::string threshold(std::uint64_t bytes) {
  constexpr std::uint64_t never = std::uint64_t{1} << 50;
  return bytes >= never ? "every size" : "below " + tools::show_bytes(bytes);
}

void print_plan(const ExplainedRequest& question, std::size_t bytes, const haul_plan& plan) {
  fmt::print("{} of {}, {}, source {}, destination {}\n\n", question.operation,
             tools::show_bytes(bytes), question.hot ? "in the caller's cache" : "in memory (cold)",
             question.src_affinity, question.dst_affinity);
  fmt::print("  {:<10} {}: {}\n", "scheme", bold(plan.scheme), scheme_meaning(plan.scheme));
  fmt::print("  {:<10} {}\n", "mover", plan.mover);
  fmt::print("  {:<10} {}\n", "engine", plan.engine);
  fmt::print("  {:<10} {}{}\n", "chunks", plan.chunks,
             plan.chunks > 1 ? " of up to " + tools::show_bytes(plan.chunk_bytes) : "");
  fmt::print("  {:<10} {}\n", "inline", threshold(plan.inline_below_bytes));
  if (plan.mover_from_bytes > plan.inline_below_bytes) {
    fmt::print("  {:<10} {}\n", "", "a cached source: " + threshold(plan.mover_from_bytes));
  }
  fmt::print("\n{}\n", bold("Why"));
  for (std::uint32_t i = 0; i < plan.reason_count && i < HAUL_PLAN_REASONS; ++i) {
    fmt::print("  {}. {}", i + 1, wrapped(plan.reasons[i], 5).substr(5));
  }
}

void print_json(const ExplainedRequest& question, std::size_t bytes, const haul_plan& plan) {
  nlohmann::ordered_json all = {{"operation", question.operation},
                                {"size_bytes", bytes},
                                {"cache", question.hot ? "hot" : "cold"},
                                {"source", question.src_affinity},
                                {"destination", question.dst_affinity},
                                {"scheme", plan.scheme},
                                {"mover", plan.mover},
                                {"engine", plan.engine},
                                {"chunks", plan.chunks},
                                {"chunk_bytes", plan.chunk_bytes},
                                {"inline_below_bytes", plan.inline_below_bytes},
                                {"mover_from_bytes", plan.mover_from_bytes}};
  all["reasons"] = nlohmann::ordered_json::array();
  for (std::uint32_t i = 0; i < plan.reason_count && i < HAUL_PLAN_REASONS; ++i) {
    all["reasons"].push_back(plan.reasons[i]);
  }
  fmt::print("{}\n", all.dump(2));
}

void explain(const ExplainedRequest& question) {
  if (!question.transparent.empty()) return explain_ways(question.transparent);
  if (question.mpi) {
    MessageQuestion messages = question.messages;
    messages.json = question.json;
    return explain_messages(messages);
  }
  if (question.messages.pid != 0 || !question.messages.command.empty()) {
    throw UsageError("only --mpi explains a process or a command; add that");
  }
  std::size_t bytes = to_bytes(question.size);
  bench::Buffer dst(bytes), src(bytes);
  if (!question.fresh) (void)bench::settle_mover();
  if (question.hot) {
    bench::touch(dst.data(), bytes);
    bench::touch(src.data(), bytes);
  } else {
    bench::flush(dst.data(), bytes);
    bench::flush(src.data(), bytes);
  }
  haul_request request = request_for(question, dst.data(), src.data(), bytes);
  haul_plan plan{};
  plan.size = sizeof plan;
  tools::require(haul_explain(&request, &plan), "haul_explain()");
  // That may have been the first to ask for a device.
  (void)bench::settled_engines();
  tools::require(haul_explain(&request, &plan), "haul_explain()");
  if (question.json) {
    print_json(question, bytes, plan);
  } else {
    print_plan(question, bytes, plan);
  }
}

}  // namespace

void add_explain(Tree& tree) {
  CLI::App& app =
      tree.command("explain", "Who would copy a request or how a message would go, and why",
                   "Asks the planner about one request, with buffers in the cache "
                   "state that is asked for, and prints "
                   "the plan with its reasons. The mover is started first, as in the "
                   "middle of a program's work; "
                   "--fresh asks as for the first copy of a process.\n"
                   "--mpi tells by which path a message of each size goes between two "
                   "processes of this node, and why; two children try out what this "
                   "machine allows. With --pid it asks a running rank about its peers; "
                   "with a command (haul explain --mpi -- mpirun -np 2 ./program) it "
                   "runs that on haul and tells of its ranks at the end.\n"
                   "--transparent tells why the large copies of an unmodified program go the ways "
                   "they go: of a process under `haul run --transparent --report`, or of the file "
                   "that its --json wrote.");
  auto question = std::make_shared<ExplainedRequest>();
  ExplainedRequest& q = *question;
  tree.bytes(app, "--size", q.size, "How much to move (default 1M)");
  tree.choice(app, "--op", q.operation, {"copy", "fill"}, "What to do (default copy)");
  auto* hot = app.add_flag("--hot", q.hot, "The bytes lie in the caller's cache");
  app.add_flag("--cold", q.cold, "The bytes lie in memory (the default)")->excludes(hot);
  tree.choice(app, "--dst-affinity", q.dst_affinity, affinities,
              "Cache affinity of the destination (default cacheable)");
  tree.choice(app, "--src-affinity", q.src_affinity, affinities,
              "Cache affinity of the source (default cacheable)");
  app.add_flag("--checked", q.checked, "Report inaccessible memory instead of raising SIGSEGV");
  app.add_flag("--fence", q.fence, "Start after all earlier requests of the thread");
  auto* own = app.add_flag("--inline", q.force_inline, "The caller's thread copies");
  app.add_flag("--dedicated", q.force_dedicated, "A dedicated core copies if it can")
      ->excludes(own);
  app.add_flag("--fresh", q.fresh, "Do not start the mover first");
  auto* mpi = app.add_flag("--mpi", q.mpi, "Explain the paths of messages instead");
  mpi->excludes("--size")->excludes("--op")->excludes("--hot")->excludes("--cold");
  app.add_option("--transparent", q.transparent,
                 "Explain an unmodified program's copies instead: a process, or a report's file")
      ->type_name("PID|FILE")
      ->check(
          [](const std::string& text) {
            return text.empty() ? "'' is no process and no file; give one of both" : "";
          },
          "")
      ->excludes(mpi)
      ->excludes("--size")
      ->excludes("--op");
  app.add_option("--pid", q.messages.pid, "With --mpi: of this running process")
      ->type_name("PID")
      ->check(
          [](const std::string& text) {
            const bool number = text.find_first_not_of("0123456789") == std::string::npos;
            return number && text.size() <= 9 && text != "0"
                       ? ""
                       : fmt::format("'{}' is no process number; give one that ps shows", text);
          },
          "");
  app.add_flag("--json", q.json, "Print one JSON document instead");
  tree.program(app, q.messages.command, "With --mpi: run this, and tell of its ranks");
  app.callback([question] { explain(*question); });
}

}  // namespace haul::cli
