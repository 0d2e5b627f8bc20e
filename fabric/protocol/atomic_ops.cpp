#include "fabric/protocol/atomic_ops.hpp"

#include <rdma/fi_errno.h>

#include <atomic>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace haul::fabric {

namespace {

using Form = AtomicRequest::Form;
__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};
template <class T>
constexpr bool is_whole =
    std::is_integral_v<T> || std::is_same_v<T, int128> || std::is_same_v<T, uint128>;

// Calls visit with a value of the datatype's C++ type; false if it has none.
template <class Visit>
bool with_type(fi_datatype datatype, Visit&& visit) noexcept {
  switch (static_cast<int>(datatype)) {
    // NOLINTNEXTLINE(bugprone-branch-clone): each calls another instance
    case FI_INT8: visit(std::int8_t()); return true;
    case FI_UINT8: visit(std::uint8_t()); return true;
    case FI_INT16: visit(std::int16_t()); return true;
    case FI_UINT16: visit(std::uint16_t()); return true;
    case FI_INT32: visit(std::int32_t()); return true;
    case FI_UINT32: visit(std::uint32_t()); return true;
    case FI_INT64: visit(std::int64_t()); return true;
    case FI_UINT64: visit(std::uint64_t()); return true;
    case FI_INT128: visit(int128()); return true;
    case FI_UINT128: visit(uint128()); return true;
    case FI_FLOAT: visit(float()); return true;
    case FI_DOUBLE: visit(double()); return true;
    case FI_LONG_DOUBLE: visit(static_cast<long double>(0)); return true;
    case FI_FLOAT_COMPLEX: visit(std::complex<float>()); return true;
    case FI_DOUBLE_COMPLEX: visit(std::complex<double>()); return true;
    case FI_LONG_DOUBLE_COMPLEX: visit(std::complex<long double>()); return true;
    default: return false;
  }
}

template <class T>
bool truth(const T& value) noexcept {
  return value != T(0);
}

// What the element becomes. false: it stays as it is.
template <class T>
bool combine(fi_op operation, const T& old, const T& operand, const T& comparand, T* out) noexcept {
  switch (static_cast<int>(operation)) {
    case FI_ATOMIC_READ: return false;
    case FI_ATOMIC_WRITE: *out = operand; return true;
    case FI_LOR: *out = T(truth(old) || truth(operand) ? 1 : 0); return true;
    case FI_LAND: *out = T(truth(old) && truth(operand) ? 1 : 0); return true;
    case FI_LXOR: *out = T(truth(old) != truth(operand) ? 1 : 0); return true;
    case FI_CSWAP: *out = operand; return comparand == old;
    case FI_CSWAP_NE: *out = operand; return comparand != old;
    case FI_SUM:
    case FI_PROD: {
      const bool sum = operation == FI_SUM;
      if constexpr (is_whole<T>) {
        // In unsigned arithmetic of at least the promoted width: wraps, and is defined.
        const auto a = static_cast<uint128>(static_cast<int128>(old));
        const auto b = static_cast<uint128>(static_cast<int128>(operand));
        *out = static_cast<T>(sum ? a + b : a * b);
      } else {
        *out = sum ? old + operand : old * operand;
      }
      return true;
    }
    default: break;
  }
  if constexpr (!IsComplex<T>::value) {
    switch (static_cast<int>(operation)) {
      case FI_MIN: *out = operand; return operand < old;
      case FI_MAX: *out = operand; return operand > old;
      case FI_CSWAP_LE: *out = operand; return comparand <= old;
      case FI_CSWAP_LT: *out = operand; return comparand < old;
      case FI_CSWAP_GE: *out = operand; return comparand >= old;
      case FI_CSWAP_GT: *out = operand; return comparand > old;
      default: break;
    }
  }
  if constexpr (is_whole<T>) {
    switch (static_cast<int>(operation)) {
      case FI_BOR: *out = static_cast<T>(old | operand); return true;
      case FI_BAND: *out = static_cast<T>(old & operand); return true;
      case FI_BXOR: *out = static_cast<T>(old ^ operand); return true;
      case FI_MSWAP: *out = static_cast<T>((operand & comparand) | (old & ~comparand)); return true;
      default: break;
    }
  }
  return false;
}

template <std::size_t bytes>
struct WordOf {
  using type = void;
};
template <>
struct WordOf<1> {
  using type = std::uint8_t;
};
template <>
struct WordOf<2> {
  using type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using type = std::uint32_t;
};
template <>
struct WordOf<8> {
  using type = std::uint64_t;
};

constinit std::atomic_flag large_elements = {};

template <class T>
void apply_one(fi_op operation, std::byte* target, const T& operand, const T& comparand,
               std::byte* result) noexcept {
  using Word = typename WordOf<sizeof(T)>::type;
  T old;
  T changed;
  if constexpr (!std::is_void_v<Word>) {
    std::atomic_ref<Word> element(*reinterpret_cast<Word*>(target));
    Word seen = element.load(std::memory_order_acquire);
    for (;;) {
      std::memcpy(static_cast<void*>(&old), &seen, sizeof old);
      if (!combine(operation, old, operand, comparand, &changed)) break;
      Word wanted;
      std::memcpy(&wanted, &changed, sizeof wanted);
      if (element.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        break;
      }
    }
  } else {
    while (large_elements.test_and_set(std::memory_order_acquire)) {
    }
    std::memcpy(static_cast<void*>(&old), target, sizeof old);
    if (combine(operation, old, operand, comparand, &changed)) {
      std::memcpy(target, &changed, sizeof changed);
    }
    large_elements.clear(std::memory_order_release);
  }
  if (result != nullptr) std::memcpy(result, &old, sizeof old);
}

}  // namespace

std::size_t datatype_bytes(fi_datatype datatype) noexcept {
  std::size_t bytes = 0;
  with_type(datatype, [&](auto value) noexcept { bytes = sizeof value; });
  return bytes;
}

int atomic_supported(Form form, fi_op operation, fi_datatype datatype,
                     std::size_t* count) noexcept {
  const int op = static_cast<int>(operation);
  bool fits = false;
  switch (form) {
    case Form::base: fits = (op >= FI_MIN && op <= FI_BXOR) || op == FI_ATOMIC_WRITE; break;
    case Form::fetch: fits = op >= FI_MIN && op <= FI_ATOMIC_WRITE; break;
    case Form::compare: fits = op >= FI_CSWAP && op <= FI_MSWAP; break;
  }
  const bool bitwise = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
  const bool ordered = op == FI_MIN || op == FI_MAX || (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT);
  const bool known = with_type(datatype, [&](auto value) noexcept {
    using T = decltype(value);
    if (bitwise && !is_whole<T>) fits = false;
    if (ordered && IsComplex<T>::value) fits = false;
  });
  if (!known || !fits) return -FI_EOPNOTSUPP;
  if (count != nullptr) *count = max_atomic_bytes / datatype_bytes(datatype);
  return 0;
}

void apply_atomic(fi_op operation, fi_datatype datatype, std::size_t count, void* target,
                  const void* operand, const void* comparand, void* result) noexcept {
  with_type(datatype, [&](auto sample) noexcept {
    using T = decltype(sample);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i * sizeof(T);
      T given{}, compared{};
      if (operand != nullptr) {
        std::memcpy(static_cast<void*>(&given), static_cast<const std::byte*>(operand) + at,
                    sizeof given);
      }
      if (comparand != nullptr) {
        std::memcpy(static_cast<void*>(&compared), static_cast<const std::byte*>(comparand) + at,
                    sizeof compared);
      }
      apply_one<T>(operation, static_cast<std::byte*>(target) + at, given, compared,
                   result != nullptr ? static_cast<std::byte*>(result) + at : nullptr);
    }
  });
}

}  // namespace haul::fabric
