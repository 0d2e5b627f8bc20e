/* What a responder does with one packet: checks it, executes it exactly once, turns it into its
 * answer. The one implementation: the BPF program and the host responders both include this file,
 * each with its own way to find things.
 *
 * Whoever includes it defines `struct responder` and the functions declared below. Each may say
 * NULL: there is no such thing. find_page() gives the 4096 bytes that hold an offset, which is
 * within the window. Atomics are the __sync builtins, which BPF has; each is a full barrier.
 *
 * Exactly once (paper 002, III-B): a result entry of {session slot, sequence % WIRE_RESULTS} is
 * claimed by compare&swap before the first operation and published after the last. A
 * copy that finds its sequence published gets the stored answer; a copy that finds it claimed is
 * dropped, and its client asks again. Copies may be served on several CPUs at once (XDP runs on the
 * CPU of each receive queue), so the compare&swap alone decides which of them executes; a copy that
 * comes so late that its entry has a newer sequence is dropped, too.
 *
 * The slot of a session changes hands only while its number says SESSION_BUSY, and its generation
 * is counted then: requests name the generation, so those of an earlier owner find no session. */
#ifndef HAUL_ATOMIC_WIRE_SERVE_H
#define HAUL_ATOMIC_WIRE_SERVE_H

#include "atomic/wire/checksum.h"
#include "atomic/wire/operation.h"
#include "atomic/wire/shared.h"
#include "atomic/wire/tables.h"

struct responder;
SERVE_INLINE void count_event(struct responder* self, __u32 event);
SERVE_INLINE struct window_entry* find_window(struct responder* self, __u32 window);
SERVE_INLINE char* find_page(struct responder* self, __u32 window, __u64 offset);
SERVE_INLINE struct session_entry* find_session(struct responder* self, __u32 slot);
SERVE_INLINE struct result_entry* find_results(struct responder* self, __u32 slot, __u32 sequence);
SERVE_INLINE __u32 session_slots(struct responder* self);

enum { SESSION_PROBES = 64, GUARD_TRIES = 8 };

/* A session's number while its slot changes hands: nobody's. */
#define SESSION_BUSY (~(__u64)0)
/* A header's `slot` is {generation 16 | slot 16}: a late duplicate of a finished session's hello
 * begins another generation, in which its late requests are strangers. */
enum { SLOT_BITS = 16, SLOT_MASK = (1 << SLOT_BITS) - 1 };

/* Of a session's generation, what a result's state has room for. */
#define GENERATION_MASK 0x3fffffffu

enum serve_verdict { SERVE_DROP, SERVE_ANSWER };

SERVE_INLINE __u64 result_state(__u32 sequence, __u32 generation, __u32 phase) {
  return (__u64)sequence << 32 | (generation << 2) | phase;
}

/* For words of 64 and of 32 bits: the builtins know a word's width by its type, and C has no
 * templates. */
SERVE_INLINE __u64 execute_64(__u64* word, __u8 code, __u64 operand, __u64 compare) {
  switch (code) {
    case WIRE_READ: return SHARED_LOAD(*word);
    case WIRE_ADD: return __sync_fetch_and_add(word, operand);
    case WIRE_CAS: return __sync_val_compare_and_swap(word, compare, operand);
    case WIRE_AND: return __sync_fetch_and_and(word, operand);
    case WIRE_OR: return __sync_fetch_and_or(word, operand);
    case WIRE_XOR: return __sync_fetch_and_xor(word, operand);
    default: break;
  }
  operand = __sync_lock_test_and_set(word, operand); /* swap and write */
  return code == WIRE_WRITE ? 0 : operand;
}

SERVE_INLINE __u32 execute_32(__u32* word, __u8 code, __u32 operand, __u32 compare) {
  switch (code) {
    case WIRE_READ: return SHARED_LOAD(*word);
    case WIRE_ADD: return __sync_fetch_and_add(word, operand);
    case WIRE_CAS: return __sync_val_compare_and_swap(word, compare, operand);
    case WIRE_AND: return __sync_fetch_and_and(word, operand);
    case WIRE_OR: return __sync_fetch_and_or(word, operand);
    case WIRE_XOR: return __sync_fetch_and_xor(word, operand);
    default: break;
  }
  operand = __sync_lock_test_and_set(word, operand);
  return code == WIRE_WRITE ? 0 : operand;
}

/* Every operation stamps a guarded word, even a read: an older holder of a lock cannot change what
 * a newer one has seen. Stamps are compared modulo 2^32. */
SERVE_INLINE __u8 execute_guarded(__u64* word, struct wire_operation* op) {
  for (__u32 tries = 0; tries < GUARD_TRIES; ++tries) {
    const __u64 old = SHARED_LOAD(*word);
    if ((__s32)(op->stamp - (__u32)(old >> 32)) < 0) {
      op->operand = 0;
      return WIRE_STALE;
    }
    const __u64 next = (__u64)op->stamp << 32 |
                       (__u32)applied((__u32)old, op->code, op->operand, (__u32)op->compare);
    if (__sync_val_compare_and_swap(word, old, next) == old) {
      op->operand = op->code == WIRE_WRITE ? 0 : (__u32)old;
      return WIRE_DONE;
    }
  }
  op->operand = 0;
  return WIRE_BUSY;
}

/* Executes one operation, whose old value replaces its operand. */
SERVE_INLINE __u8 execute(struct responder* self, const struct window_entry* window, __u32 index,
                          struct wire_operation* op) {
  const __u64 offset = op->address - window->address;
  const __u8 guarded = op->flags & WIRE_GUARDED;
  __u8 why = refusal_of(op, offset, window->bytes);
  char* page;
  page = why == WIRE_DONE ? find_page(self, index, offset) : (char*)0;
  if (!page) {
    op->operand = 0;
    if (why == WIRE_DONE) why = WIRE_OUTSIDE;
    count_event(self, REFUSED_OPERATIONS);
    return why;
  }
  /* The masks repeat what was checked: they are what the BPF verifier understands. */
  if (op->width == 4) {
    op->operand = execute_32((__u32*)(page + (offset & 0xffc)), op->code, (__u32)op->operand,
                             (__u32)op->compare);
    return WIRE_DONE;
  }
  if (guarded) {
    why = execute_guarded((__u64*)(page + (offset & 0xff8)), op);
    if (why == WIRE_STALE) count_event(self, REFUSED_STALE);
    return why;
  }
  op->operand = execute_64((__u64*)(page + (offset & 0xff8)), op->code, op->operand, op->compare);
  return WIRE_DONE;
}

SERVE_INLINE void execute_all(struct responder* self, struct wire_header* header, const void* limit,
                              const struct window_entry* window, struct result_entry* results) {
  struct wire_operation* ops = (struct wire_operation*)(header + 1);
  __u8 skip = 0;
  for (__u32 i = 0; i < WIRE_MAX_OPERATIONS; ++i) {
    struct wire_operation* op = ops + i;
    if (i >= header->count || (const void*)(op + 1) > limit) break;
    if (skip) {
      op->operand = 0;
      op->result = WIRE_SKIPPED;
    } else {
      op->result = execute(self, window, header->window, op);
      if (op->result == WIRE_DONE) count_event(self, SERVED_OPERATIONS);
      skip = is_broken_link(op);
    }
    SHARED_STORE(results->old[i], op->operand);
    SHARED_STORE(results->result[i], op->result);
  }
  SHARED_STORE(results->count, header->count);
}

SERVE_INLINE void replay(struct wire_header* header, const void* limit,
                         const struct result_entry* results) {
  struct wire_operation* ops = (struct wire_operation*)(header + 1);
  for (__u32 i = 0; i < WIRE_MAX_OPERATIONS; ++i) {
    struct wire_operation* op = ops + i;
    if (i >= header->count || (const void*)(op + 1) > limit) break;
    op->operand = SHARED_LOAD(results->old[i]);
    op->result = SHARED_LOAD(results->result[i]);
  }
}

/* The entry of a packet's session; NULL if there is none, or another's. */
SERVE_INLINE struct session_entry* own_session(struct responder* self,
                                               const struct wire_header* header, __u64 source,
                                               __u32* generation) {
  const __u64 id = header->session;
  struct session_entry* entry = find_session(self, header->slot & SLOT_MASK);
  if (!entry || id == 0 || id == SESSION_BUSY) return (struct session_entry*)0;
  /* Before the number: a slot that is given away changes its number first. */
  *generation = SHARED_LOAD(entry->generation) & GENERATION_MASK;
  if (SHARED_LOAD(entry->id) != id || SHARED_LOAD(entry->source) != source ||
      (*generation & SLOT_MASK) != header->slot >> SLOT_BITS) {
    return (struct session_entry*)0;
  }
  return entry;
}

/* Gives a session its slot: the one it has, or, of those that its number leads to, the first that
 * is free, or else long unused. SERVE_DROP: one of them is changing hands, so the client asks
 * again. */
SERVE_INLINE enum serve_verdict begin_session(struct responder* self, struct wire_header* header,
                                              __u64 source, __u32 now_s) {
  const __u32 slots = session_slots(self);
  const __u64 id = header->session;
  __u32 chosen = slots;
  __u64 chosen_id = SESSION_BUSY; /* none yet */
  struct session_entry* entry;
  header->status = WIRE_MALFORMED;
  if (id == 0 || id == SESSION_BUSY || slots == 0) return SERVE_ANSWER;
  header->status = WIRE_OK;
  for (__u32 i = 0; i < SESSION_PROBES; ++i) {
    if (i >= slots) break;
    const __u32 slot = (__u32)((id >> 32) + i) % slots;
    entry = find_session(self, slot);
    if (!entry) break;
    const __u64 there = SHARED_LOAD(entry->id);
    if (there == SESSION_BUSY) return SERVE_DROP;
    if (there == id) {
      header->slot = slot | SHARED_LOAD(entry->generation) << SLOT_BITS;
      if (SHARED_LOAD(entry->source) != source) {
        header->status = WIRE_TAKEN;
      } else {
        SHARED_STORE(entry->last_used_s, now_s);
      }
      return SERVE_ANSWER;
    }
    /* Signed: another processor's clock may be a tick ahead. */
    if (chosen_id != 0 &&
        (there == 0 ||
         (chosen == slots && (__s32)(now_s - SHARED_LOAD(entry->last_used_s)) > SESSION_IDLE_S))) {
      chosen = slot;
      chosen_id = there;
    }
  }
  entry = chosen == slots ? (struct session_entry*)0 : find_session(self, chosen);
  if (!entry) {
    header->status = WIRE_FULL;
    return SERVE_ANSWER;
  }
  if (__sync_val_compare_and_swap(&entry->id, chosen_id, SESSION_BUSY) != chosen_id) {
    return SERVE_DROP;
  }
  SHARED_STORE(entry->source, source);
  SHARED_STORE(entry->last_used_s, now_s);
  header->slot = chosen | (__sync_fetch_and_add(&entry->generation, 1) + 1) << SLOT_BITS;
  __sync_lock_test_and_set(&entry->id, id);
  return SERVE_ANSWER;
}

/* Whether the slot still belongs to this session. A late copy of a packet may have found its
 * session, and then have been held up until the session had ended and the slot's next session had
 * used the copy's entry: the copy would be executed once more, and the next session's results be
 * lost. An entry of the next session is written after the generation was raised, and the addition
 * of 0 is a load behind a full barrier, so a responder that has seen that entry sees the new
 * generation. (It looks at the slot's generation, not the entry's, because an entry may be older
 * than any serial number can tell.) */
SERVE_INLINE __u8 is_current(struct session_entry* session, __u32 generation) {
  return (__sync_fetch_and_add(&session->generation, 0) & GENERATION_MASK) == generation;
}

/* The operations of a request, once. SERVE_DROP: nothing is to be said. */
SERVE_INLINE enum serve_verdict serve_request(struct responder* self, struct wire_header* header,
                                              const void* limit, const struct window_entry* window,
                                              __u64 source, __u32 now_s) {
  const __u32 sequence = header->sequence;
  __u32 generation = 0;
  struct session_entry* session = own_session(self, header, source, &generation);
  struct result_entry* results = find_results(self, header->slot & SLOT_MASK, sequence);
  __u64 state, mine;
  if (!session || !results) {
    header->status = WIRE_NO_SESSION;
    count_event(self, REFUSED_SESSION);
    return SERVE_ANSWER;
  }
  SHARED_STORE(session->last_used_s, now_s);

  state = SHARED_LOAD(results->state);
  mine = result_state(sequence, generation, PHASE_RUNNING);
  if ((state & 3) == PHASE_RUNNING) {
    count_event(self, DROPPED_IN_FLIGHT);
    return SERVE_DROP;
  }
  if ((state & 3) == PHASE_DONE && ((__u32)state >> 2) == generation) {
    const __s32 newer = (__s32)(sequence - (__u32)(state >> 32));
    if (newer < 0) {
      count_event(self, DROPPED_OLD);
      return SERVE_DROP;
    }
    if (newer == 0) {
      /* Not a duplicate, since its length differs. */
      if (SHARED_LOAD(results->count) != header->count) {
        count_event(self, DROPPED_OLD);
        return SERVE_DROP;
      }
      replay(header, limit, results);
      /* While it was read a later sequence may have claimed the entry; then this one was answered.
         The compare&swap changes nothing: it is a load behind a full barrier, which BPF lacks. */
      if (__sync_val_compare_and_swap(&results->state, state, state) != state) {
        count_event(self, DROPPED_OLD);
        return SERVE_DROP;
      }
      count_event(self, REPLAYED);
      return SERVE_ANSWER;
    }
  } else if ((state & 3) == PHASE_DONE && !is_current(session, generation)) {
    count_event(self, DROPPED_OLD);
    return SERVE_DROP;
  }
  if (__sync_val_compare_and_swap(&results->state, state, mine) != state) {
    count_event(self, DROPPED_IN_FLIGHT);
    return SERVE_DROP;
  }
  execute_all(self, header, limit, window, results);
  /* A swap: the results are visible before it. */
  __sync_lock_test_and_set(&results->state, result_state(sequence, generation, PHASE_DONE));
  count_event(self, SERVED_PACKETS);
  return SERVE_ANSWER;
}

/* Decides on a packet of `bytes` bytes from `source`. SERVE_ANSWER: it has become its answer, but
 * for the checksum. `limit` is the end of the memory that may be touched, at least that of the
 * packet (the BPF verifier knows only the former). */
SERVE_INLINE enum serve_verdict serve(struct responder* self, struct wire_header* header,
                                      __u32 bytes, const void* limit, __u64 source, __u32 now_s) {
  const struct window_entry* window;
  if ((const void*)(header + 1) > limit) {
    count_event(self, DROPPED_SHORT);
    return SERVE_DROP;
  }
  if (header->magic != WIRE_MAGIC) {
    count_event(self, DROPPED_MAGIC);
    return SERVE_DROP;
  }
  if (header->count > WIRE_MAX_OPERATIONS ||
      bytes != sizeof *header + header->count * sizeof(struct wire_operation)) {
    count_event(self, DROPPED_SHORT);
    return SERVE_DROP;
  }
  if (header->checksum != wire_checksum(header, limit, header->count)) {
    count_event(self, DROPPED_CHECKSUM);
    return SERVE_DROP;
  }
  /* An answer is never answered: two responders could do that for ever. */
  if (header->kind & WIRE_REPLY || header->status != WIRE_OK) {
    count_event(self, REFUSED_MALFORMED);
    return SERVE_DROP;
  }
  if (header->version != WIRE_VERSION) {
    header->version = WIRE_VERSION;
    header->status = WIRE_OTHER_VERSION;
    count_event(self, REFUSED_VERSION);
    header->kind |= WIRE_REPLY;
    return SERVE_ANSWER;
  }
  window = find_window(self, header->window);
  if (!window || window->key == 0 || window->key != header->key) {
    /* If the session is unknown as well, the responder was restarted. */
    __u32 generation = 0;
    header->status = header->kind == WIRE_REQUEST && !own_session(self, header, source, &generation)
                         ? WIRE_NO_SESSION
                         : WIRE_NO_WINDOW;
    count_event(self, REFUSED_WINDOW);
  } else if (header->kind == WIRE_REQUEST && header->count > 0) {
    if (serve_request(self, header, limit, window, source, now_s) == SERVE_DROP) return SERVE_DROP;
  } else if (header->kind == WIRE_HELLO && header->count == 0) {
    if (begin_session(self, header, source, now_s) == SERVE_DROP) {
      count_event(self, DROPPED_IN_FLIGHT);
      return SERVE_DROP;
    }
    count_event(self, header->status == WIRE_OK      ? SERVED_HELLOS
                      : header->status == WIRE_FULL  ? REFUSED_FULL
                      : header->status == WIRE_TAKEN ? REFUSED_TAKEN
                                                     : REFUSED_MALFORMED);
  } else if (header->kind == WIRE_BYE && header->count == 0) {
    __u32 generation = 0;
    struct session_entry* session = own_session(self, header, source, &generation);
    if (session) __sync_val_compare_and_swap(&session->id, header->session, (__u64)0);
  } else {
    header->status = WIRE_MALFORMED;
    count_event(self, REFUSED_MALFORMED);
  }
  header->kind |= WIRE_REPLY;
  return SERVE_ANSWER;
}

#endif
