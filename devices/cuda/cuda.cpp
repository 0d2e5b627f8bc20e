// libhaul-cuda.so: copies to, from and within the memory of NVIDIA GPUs. This file reads the
// arguments and gives out the table; gpus.hpp does the work.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "devices/cuda/gpus.hpp"
#include "engine/plugin.hpp"

namespace {

using haul::cuda::CudaChoices;

haul::DeviceTable cuda_table;

// "256K", "1M", "65536". 0: it is none.
std::size_t parse_bytes(const char* text) {
  char* end = nullptr;
  std::size_t bytes = std::strtoul(text, &end, 10);
  if (*end == 'K' || *end == 'M') bytes <<= *end++ == 'K' ? 10 : 20;
  return *end == '\0' && end != text ? bytes : 0;
}

// False: the word is none that HAUL_ENGINE_CUDA knows, or out of its range.
bool take_word(const char* word, CudaChoices& choices) {
  const auto value_of = [word](const char* name) -> const char* {
    const std::size_t length = std::strlen(name);
    return std::strncmp(word, name, length) == 0 ? word + length : nullptr;
  };
  if (const char* const path = value_of("library="); path != nullptr) {
    const int length = std::snprintf(choices.library, sizeof choices.library, "%s", path);
    return length > 0 && static_cast<std::size_t>(length) < sizeof choices.library;
  }
  if (const char* const slots = value_of("slots="); slots != nullptr) {
    choices.slots = static_cast<unsigned>(parse_bytes(slots));
    return choices.slots >= 2 && choices.slots <= haul::cuda::StagingSlots::most;
  }
  if (const char* const bytes = value_of("slot_bytes="); bytes != nullptr) {
    choices.slot_bytes = parse_bytes(bytes);
    return choices.slot_bytes >= 4096 && choices.slot_bytes <= std::size_t{64} << 20;
  }
  return false;
}

bool read_choices(const char* arguments, CudaChoices& choices, char* sentence,
                  std::size_t sentence_bytes) {
  char word[300];
  while (*arguments != '\0') {
    const std::size_t blanks = std::strspn(arguments, " "),
                      length = std::strcspn(arguments + blanks, " ");
    std::snprintf(word, sizeof word, "%.*s", static_cast<int>(length), arguments + blanks);
    arguments += blanks + length;
    if (length == 0 || take_word(word, choices)) continue;
    std::snprintf(
        sentence, sentence_bytes,
        "HAUL_ENGINE_CUDA says \"%.60s\"; say library=PATH, slots=2 to 16, slot_bytes=4K to "
        "64M",
        word);
    return false;
  }
  return true;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const haul::DeviceTable* haul_open_device(
    const char* arguments, char* sentence, std::size_t sentence_bytes) {
  using namespace haul::cuda;
  CudaChoices choices;
  if (!read_choices(arguments, choices, sentence, sentence_bytes) ||
      !start_gpus(choices, sentence, sentence_bytes))
    return nullptr;
  std::snprintf(cuda_table.name, sizeof cuda_table.name, "GPUs by CUDA");
  cuda_table.emulated = gpus_are_emulated();
  cuda_table.submit = submit_to_gpu;
  cuda_table.poll = poll_gpus;
  cuda_table.stop = stop_gpus;
  cuda_table.is_dead = gpus_are_dead;
  cuda_table.pin = register_with_gpus;
  cuda_table.unpin = unregister_with_gpus;
  cuda_table.least_pin_bytes = SIZE_MAX;
  cuda_table.pins_by_choice = true;
  cuda_table.pays_once = registering_pays_once;
  cuda_table.open_memory = open_gpu_memory;
  cuda_table.take_staging = take_staging_of_gpus;
  cuda_table.describe = describe_gpus;
  return &cuda_table;
}
