/* Loads and stores of words that several CPUs use at once, beside the read-modify-writes. BPF has
 * volatile ones, elsewhere they are atomic: the same instructions, and race detectors agree. */
#ifndef HAUL_ATOMIC_WIRE_SHARED_H
#define HAUL_ATOMIC_WIRE_SHARED_H

#ifdef __bpf__
#define SHARED_LOAD(word) (*(const volatile __typeof__(word)*)&(word))
#define SHARED_STORE(word, value) (*(volatile __typeof__(word)*)&(word) = (value))
#else
#define SHARED_LOAD(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define SHARED_STORE(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELEASE)
#endif

#endif
