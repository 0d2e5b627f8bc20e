// The launcher runs in the client's namespace. It starts a daemon on each host through an agent, as
// it would through ssh. The agent enters the host's namespace and gives the host a name of its own:
// two daemons with the same host name would take each other for one.
#include "bench/remote/hosts/peers_mpi_atomic.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/os/os.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned limit_s = 60;

}  // namespace

MpiAtomic::MpiAtomic(const Pair& hosts, Cores cores) : hosts_(hosts), cores_(cores) {
  std::string missing;
  const std::optional<MpiPeer> mpi = MpiPeer::find("openmpi4", missing);
  if (!mpi) throw tools::CommandFailure(missing);
  program_ = mpi->build(directory_.path(), "atomic", {"atomic.c", "common.c"});
  agent_ = directory_.path() + "/agent";
  std::ofstream script(agent_);
  script << fmt::format(
      "#!/bin/sh\n"
      "case $1 in\n"
      "  {}) name=haul-client fd={} ;;\n"
      "  *) name=haul-home fd={} ;;\n"
      "esac\n"
      "shift\n"
      "exec nsenter --net=/proc/{}/fd/$fd unshare --uts sh -c \"hostname $name; $*\"\n",
      Pair::client_address, hosts.client.fd(), hosts.home.fd(), getpid());
  script.close();
  if (!script || chmod(agent_.c_str(), 0700) != 0)
    throw tools::CommandFailure(fmt::format(
        "cannot write {}; is the disk full? If not, set TMPDIR to another place", agent_));
}

MpiAtomic::Times MpiAtomic::run(const Limit& limit) const {
  // osc: ucx claims the window and then fails, because it finds no network of its own here.
  const std::string words = fmt::format(
      "setpriv --pdeathsig TERM mpirun.openmpi --bind-to none --host {},{} -n 2 "
      "--mca plm_rsh_agent {} --mca oob_tcp_if_include {} --mca btl_tcp_if_include {} "
      "--mca pml ob1 --mca btl tcp,self --mca osc ^ucx {} {},{} {} {:.3f}",
      Pair::client_address, Pair::home_address, agent_, atomic_interface, atomic_interface,
      program_, cores_.client, cores_.home, limit.count, static_cast<double>(limit.ns) / 1e9);
  CommandOutcome outcome;
  {
    const Inside inside(hosts_.client);
    outcome = run_command(
        {"sh", "-c", "exec " + words},
        {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}, limit_s);
  }
  os::pin_thread(static_cast<unsigned>(cores_.client));
  Times times;
  std::istringstream line(outcome.out);
  if (!outcome.good() || !(line >> times.median_us >> times.p99_us >> times.rate_per_s))
    throw tools::CommandFailure(
        fmt::format("Open MPI does not run between network namespaces: {}", reason_of(outcome)));
  return times;
}

}  // namespace haul::bench
