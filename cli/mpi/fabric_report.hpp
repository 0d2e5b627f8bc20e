// What a job sent, as tables for people and as a document: sizes (paper 000, Table I) and paths.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/mpi/fabric_collector.hpp"
#include "cli/mpi/fabric_paths.hpp"

namespace haul::cli {

void print_traffic(std::FILE* stream, const std::vector<EndpointReport>& reports);
nlohmann::ordered_json traffic_document(const std::vector<EndpointReport>& reports);

// Which paths each pair of processes can take, and why not the others. Pairs that can do the same
// are listed together.
void print_pairs(std::FILE* stream, const std::vector<fabric::MonitorReply>& replies);
// The sizes and their paths, for one kind of pair.
void print_path_rows(std::FILE* stream, const PairAbilities& abilities);
nlohmann::ordered_json pairs_document(const std::vector<fabric::MonitorReply>& replies);

}  // namespace haul::cli
