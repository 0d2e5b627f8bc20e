// What the tracer writes and `bcisim convert` reads: a stream of records as they happened, machine
// code included. It passes through a pipe and is not kept; traces are format/README.md's.
//
// Little-endian, packed. First BCISIM_STREAM_MAGIC, then u32 BCISIM_STREAM_VERSION, then records,
// each a tag of one byte and what the tag says. The last is BCISIM_END; a stream without it was
// cut.
#pragma once

#define BCISIM_STREAM_MAGIC "BCISIMRAW"  // 9 bytes, without the terminating 0
#define BCISIM_STREAM_VERSION 1

enum bcisim_tag {
  // An instruction, before its first execution. u32 id (0, 1, 2, ... in this order), u64 virtual
  // address, u64 physical address of its first byte, u8 length (1 to 15), its bytes.
  BCISIM_STATIC = 1,
  // An instruction begins to execute. u32 id. (If it faults, it will come again.)
  BCISIM_EXEC = 2,
  // It refers to memory. u64 virtual address, u64 physical address (all ones: not memory but a
  // device's registers), u16 bytes, u8: 1 store, 0 load.
  BCISIM_MEMORY = 3,
  // A device read or wrote memory. u64 physical address, u32 bytes, u8: 1 wrote, 0 read.
  BCISIM_DEVICE = 4,
  // The end. u64 number of BCISIM_EXEC records.
  BCISIM_END = 5
};
