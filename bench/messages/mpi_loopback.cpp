// mpi-loopback (paper 001, Fig. 6): messages within a node through the network's loopback
// interface, beside those through memory.

#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_messages.hpp"
#include "tools/directory.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

void run_mpi_loopback(SuiteRun& session, std::vector<Row>& rows) {
  using tools::kib;
  using tools::mib;
  MessagePlan plan;
  plan.tests = tests_or(session, message_tests(), {"pingpong"});
  plan.buffers = asked_or(session.options.mpi.buffers, {"reused"});
  plan.ranks = {2};
  const std::vector<std::size_t> few = {64, 64 * kib, mib},
                                 many = {64, kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib};
  plan.sizes = sizes_or(session.options, session.options.quick ? few : many);
  const std::vector<MpiPeer> mpis = choose_mpis(session);
  const tools::TemporaryDirectory directory;
  const std::vector<std::string> programs = build_messages(session, mpis, directory);
  measure_messages(session,
                   choose_runners(session, mpis, programs, message_probe(session),
                                  {Transport::haul, Transport::native, Transport::loopback}),
                   plan, rows);
}

constexpr auto mpi_loopback_columns =
    columns_of(column::mpi, column::transport, column::test, column::buffers, column::size,
               column::time, column::gbps, column::to_native, column::to_native_q25,
               column::to_native_q75, column::placement);

}  // namespace

const Suite mpi_loopback_suite{
    "mpi-loopback",
    "messages within a node through memory and through the loopback interface (paper 001, Fig. 6)",
    run_mpi_loopback,
    mpi_loopback_columns,
    true,
    why_no_messages,
    false,
    message_tests};

}  // namespace haul::bench
