// The functions of the CUDA driver that haul uses, and their types, as its public documentation has
// them: a library that is opened at run time has no header to agree with.
//
// The driver answers most calls with a result, 0 for success. Most act on the calling thread's
// current context, a stack of its own: haul pushes its context and pops it again, so the program's
// stays what it is (Entered, gpu.hpp).
#pragma once

#include <cstddef>

namespace haul::cuda {

// An enumeration of the driver's; those that decide something here. (results.hpp has the others.)
using Result = int;
inline constexpr Result success = 0, invalid_value = 1, out_of_memory = 2, not_ready = 600,
                        already_registered = 712, not_permitted = 800, not_supported = 801,
                        no_device = 100;

using DeviceNumber = int;
using Pointer =
    unsigned long long;  // of a device; or of this process, as one address space has both
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;

// What cuPointerGetAttributes() is asked for, and kinds of memory.
inline constexpr int attribute_memory_type = 2, attribute_is_managed = 8,
                     attribute_device_ordinal = 9, attribute_range_start = 11,
                     attribute_range_size = 12;
inline constexpr unsigned host_memory = 1, device_memory = 2;
// Flags: a stream that does not wait for the default one; an event without a time; memory that all
// contexts see as pinned.
inline constexpr unsigned stream_non_blocking = 1, event_disable_timing = 2, host_portable = 1;

struct Driver {
  Result (*init)(unsigned flags) = nullptr;
  Result (*driver_version)(int* version) = nullptr;
  Result (*device_count)(int* count) = nullptr;
  Result (*device_get)(DeviceNumber* device, int ordinal) = nullptr;
  Result (*device_name)(char* name, int bytes, DeviceNumber device) = nullptr;
  Result (*primary_retain)(Context* context, DeviceNumber device) = nullptr;
  Result (*primary_release)(DeviceNumber device) = nullptr;
  Result (*push_current)(Context context) = nullptr;
  Result (*pop_current)(Context* context) = nullptr;
  Result (*stream_create)(Stream* stream, unsigned flags) = nullptr;
  Result (*event_create)(Event* event, unsigned flags) = nullptr;
  Result (*event_record)(Event event, Stream stream) = nullptr;
  Result (*event_query)(Event event) = nullptr;
  Result (*alloc)(Pointer* at, std::size_t bytes) = nullptr;
  Result (*free)(Pointer at) = nullptr;
  Result (*host_alloc)(void** at, std::size_t bytes, unsigned flags) = nullptr;
  Result (*host_free)(void* at) = nullptr;
  Result (*host_register)(void* at, std::size_t bytes, unsigned flags) = nullptr;
  Result (*host_unregister)(void* at) = nullptr;
  Result (*to_device)(Pointer dst, const void* src, std::size_t bytes, Stream stream) = nullptr;
  Result (*from_device)(void* dst, Pointer src, std::size_t bytes, Stream stream) = nullptr;
  Result (*within_device)(Pointer dst, Pointer src, std::size_t bytes, Stream stream) = nullptr;
  Result (*between_devices)(Pointer dst, Context dst_context, Pointer src, Context src_context,
                            std::size_t bytes, Stream stream) = nullptr;
  Result (*pointer_attributes)(unsigned count, int* attributes, void** data, Pointer at) = nullptr;
  // It is a model in tests, no GPU.
  bool emulated = false;
};

// Opens the library (nullptr: libcuda.so.1) and starts the driver. False, and why and the remedy.
bool load_driver(const char* library, Driver& driver, char* sentence, std::size_t sentence_bytes);

}  // namespace haul::cuda
