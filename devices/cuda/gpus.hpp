// The GPUs of this process that are open, and what is asked of them: pieces, memory to be
// registered.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/cuda/gpu.hpp"
#include "engine/plugin.hpp"

namespace haul::cuda {

inline constexpr int most_gpus = 16;

// What HAUL_ENGINE_CUDA says.
struct CudaChoices {
  char library[256] = {};      // "": the usual one
  unsigned slots = 0;          // 0: 4, and more where more threads stage at once
  std::size_t slot_bytes = 0;  // 0: 2 MiB
};

// Starts the driver and counts GPUs, opening none: a context takes memory of the GPU. Once a
// process. False, and why not.
bool start_gpus(const CudaChoices& choices, char* sentence, std::size_t sentence_bytes);
bool gpus_are_emulated();

// As in the plug-in's table (engine/plugin.hpp).
Code open_gpu_memory(const char* which, std::uint64_t* region, char* sentence,
                     std::size_t sentence_bytes);
Submitted submit_to_gpu(const Piece& piece, std::uint64_t tag, Outcome& outcome);
std::size_t poll_gpus(unsigned channel, Finished* finished, std::size_t most);
bool take_staging_of_gpus(StagingCopy* copy);
bool stop_gpus(unsigned channel);
bool gpus_are_dead();
Code register_with_gpus(std::uintptr_t address, std::size_t bytes, std::uint64_t* region);
void unregister_with_gpus(std::uint64_t region);
// Is registering so many bytes for one copy quicker than having so many threads copy them through
// slots? As the GPU measured that was opened first.
bool registering_pays_once(std::size_t bytes, unsigned threads);
void describe_gpus(char* text, std::size_t text_bytes);

}  // namespace haul::cuda
