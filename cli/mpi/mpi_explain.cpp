#include "cli/mpi/mpi_explain.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/kit/terminal.hpp"
#include "cli/kit/tree.hpp"
#include "cli/mpi/fabric_report.hpp"
#include "cli/mpi/mpi_probe.hpp"
#include "cli/mpi/rings/ring_words.hpp"
#include "cli/mpi/run_job.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

using Json = nlohmann::ordered_json;

void explain_machine(bool json) {
  const PairProbe probe = probe_pair();
  HaulPrivateMessageLimits limits;
  haul_private_message_limits(&limits);
  if (json) {
    Json all;
    all["ring"] = probe.abilities.ring;
    all["mapped"] = probe.abilities.mapped;
    all["cma"] = probe.abilities.cma;
    all["why"] = probe.abilities.why;
    all["huge_pages"] = probe.huge_pages;
    all["why_not_huge_pages"] = probe.why_not_huge;
    all["paths"] = Json::array();
    for (const PathRow& row : paths_with(probe.abilities)) {
      all["paths"].push_back(
          {{"sizes", row.sizes}, {"memory", row.memory}, {"path", row.path}, {"why", row.why}});
    }
    all["rings"] = rings_document(limits);
    fmt::print("{}\n", all.dump(2));
    return;
  }
  fmt::print("Two processes of yours on this node, tried out: {}\n\n",
             bold(ability_names(probe.abilities)));
  print_path_rows(stdout, probe.abilities);
  fmt::print("\n");
  print_rings(limits);
  if (!probe.huge_pages) fmt::print("{}", wrapped("missing: " + probe.why_not_huge, 2));
  const std::string provider = provider_file();
  if (provider.empty()) fmt::print("{}", wrapped("missing: " + provider_remedy(), 2));
}

void explain_replies(const std::vector<fabric::MonitorReply>& replies, bool json) {
  if (json) {
    fmt::print("{}\n", Json{{"pairs", pairs_document(replies)}}.dump(2));
    return;
  }
  std::size_t peers = 0;
  for (const fabric::MonitorReply& reply : replies) peers += reply.peer_count;
  if (peers == 0) {
    fmt::print("No process of these has sent to or heard from another by haul.\n");
    return;
  }
  print_pairs(stdout, replies);
}

void explain_process(pid_t pid, bool json) {
  std::vector<fabric::MonitorReply> replies;
  for (const EndpointLook& look : look_at_process(pid)) replies.push_back(look.reply);
  explain_replies(replies, json);
}

void explain_command(const std::vector<std::string>& command, bool json) {
  const MpiJob job = prepare_job(command);
  Collector collector;
  std::fflush(stdout);
  const int status = run_job(job, collector);
  std::vector<fabric::MonitorReply> replies;
  for (const EndpointReport& report : collector.reports()) replies.push_back(report.reply);
  if (status == 0 && replies.empty()) {
    throw tools::CommandFailure(
        "no rank of this host has opened an endpoint of haul; check that the program calls "
        "MPI_Init "
        "and is linked to the MPI of its launcher");
  }
  explain_replies(replies, json);
  if (status != 0) throw ExitStatus{status};
}

}  // namespace

void explain_messages(const MessageQuestion& question) {
  if (question.pid != 0) return explain_process(question.pid, question.json);
  if (!question.command.empty()) return explain_command(question.command, question.json);
  explain_machine(question.json);
}

}  // namespace haul::cli
