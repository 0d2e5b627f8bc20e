/* store_buffer.pml: total store order for spin, which itself assumes sequential consistency.
 *
 * Each thread has a FIFO store buffer. A store enters it; at any later time `store_buffers`
 * moves the oldest entry to memory; a load reads the youngest entry of its own buffer for that
 * variable, else memory. A locked instruction or a system call that locks (LOCKED) goes on only
 * with an empty buffer. This is x86. A model on a weaker machine would need more; see README.md.
 *
 * The including file defines THREADS, VARIABLES and BUFFER_DEPTH first.
 */
byte memory[VARIABLES];
byte buffered_variable[THREADS * BUFFER_DEPTH];
byte buffered_value[THREADS * BUFFER_DEPTH];
byte buffered[THREADS];
byte nap_mark[THREADS * THREADS]; /* stores of thread b that a nap of thread a still waits out */

#define ENTRY(thread, i) ((thread) * BUFFER_DEPTH + (i))

/* A full buffer stalls the thread, as the hardware's does. */
inline store(thread, variable, value)
{
#ifdef SC
  memory[variable] = value; /* no buffer: what spin would see without this file */
#else
  atomic {
    buffered[thread] < BUFFER_DEPTH;
    buffered_variable[ENTRY(thread, buffered[thread])] = variable;
    buffered_value[ENTRY(thread, buffered[thread])] = value;
    buffered[thread]++;
  }
#endif
}

inline load(thread, variable, result)
{
  d_step {
    result = memory[variable];
    scratch = 0;
    do
    :: scratch < buffered[thread] ->
      if
      :: buffered_variable[ENTRY(thread, scratch)] == (variable) ->
        result = buffered_value[ENTRY(thread, scratch)];
      :: else
      fi;
      scratch++;
    :: else -> break
    od;
    scratch = 0;
  }
}

/* Before an atomic read-modify-write on `memory`, and on entry to a system call. */
#define LOCKED(thread) (buffered[thread] == 0)

inline flush_oldest(thread)
{
  memory[buffered_variable[ENTRY(thread, 0)]] = buffered_value[ENTRY(thread, 0)];
  buffered[thread]--;
  scratch = 0;
  do
  :: scratch < buffered[thread] ->
    buffered_variable[ENTRY(thread, scratch)] = buffered_variable[ENTRY(thread, scratch + 1)];
    buffered_value[ENTRY(thread, scratch)] = buffered_value[ENTRY(thread, scratch + 1)];
    scratch++;
  :: else -> break
  od;
  buffered_variable[ENTRY(thread, buffered[thread])] = 0;
  buffered_value[ENTRY(thread, buffered[thread])] = 0;
  scratch = 0;
  do
  :: scratch < THREADS ->
    if
    :: nap_mark[scratch * THREADS + thread] > 0 -> nap_mark[scratch * THREADS + thread]--;
    :: else
    fi;
    scratch++;
  :: else -> break
  od;
  scratch = 0;
}

/* The hardware: any buffer may drain one entry at any time. */
active proctype store_buffers()
{
  byte scratch;
end:
  do
  :: d_step { buffered[0] > 0 -> flush_oldest(0); }
  :: d_step { buffered[1] > 0 -> flush_oldest(1); }
#if THREADS > 2
  :: d_step { buffered[2] > 0 -> flush_oldest(2); }
#endif
#if THREADS > 3
  :: d_step { buffered[3] > 0 -> flush_oldest(3); }
#endif
  od
}

inline flush_all(thread)
{
  do
  :: buffered[thread] > 0 -> flush_oldest(thread);
  :: else -> break
  od
}

/* membarrier(PRIVATE_EXPEDITED): a full barrier here, then one on each other thread, at
 * different times and in any order. */
#define EVERY_THREAD ((1 << THREADS) - 1)
inline membarrier(thread)
{
  LOCKED(thread);
  todo = EVERY_THREAD & ~(1 << (thread));
  do
  :: d_step { (todo & 1) -> flush_all(0); todo = todo & ~1; }
  :: d_step { (todo & 2) -> flush_all(1); todo = todo & ~2; }
#if THREADS > 2
  :: d_step { (todo & 4) -> flush_all(2); todo = todo & ~4; }
#endif
#if THREADS > 3
  :: d_step { (todo & 8) -> flush_all(3); todo = todo & ~8; }
#endif
  :: todo == 0 -> break
  od
}

/* A nap of a millisecond, where membarrier is refused. Its beginning is a system call and drains
 * the sleeper's own flag; every other thread's store made before that has drained by its end.
 * Nothing forces them, and later ones may still be buffered. */
inline nap(thread)
{
#ifndef BUG_NAP_BEFORE_FLAG
  LOCKED(thread);
#endif
  d_step {
    todo = 0;
    do
    :: todo < THREADS ->
      nap_mark[(thread) * THREADS + todo] = buffered[todo];
      todo++;
    :: else -> break
    od;
    todo = 0;
  }
  do
  :: todo < THREADS -> nap_mark[(thread) * THREADS + todo] == 0; todo++;
  :: else -> todo = 0; break
  od
}

#ifdef NAP
#define BARRIER_ON_ALL(thread) nap(thread)
#else
#define BARRIER_ON_ALL(thread) membarrier(thread)
#endif
