// What an atomic operation does to one element, by the text of fi_atomic(3): the model that the
// provider's results are compared with.
#pragma once

#include <rdma/fi_atomic.h>

#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace fabric_test {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<std::complex<T>> : std::true_type {};
template <typename T>
inline constexpr bool is_integer =
    std::is_integral_v<T> || std::is_same_v<T, Int128> || std::is_same_v<T, Uint128>;

// Integers wrap, which signed arithmetic does not promise.
template <typename T>
T sum(const T& a, const T& b) {
  if constexpr (is_integer<T>)
    return static_cast<T>(static_cast<Uint128>(a) + static_cast<Uint128>(b));
  else
    return static_cast<T>(a + b);
}
template <typename T>
T product(const T& a, const T& b) {
  if constexpr (is_integer<T>)
    return static_cast<T>(static_cast<Uint128>(a) * static_cast<Uint128>(b));
  else
    return static_cast<T>(a * b);
}

// Applies `op` to the target and says whether it knows it for this type.
template <typename T>
bool model_atomic(fi_op op, T& target, const T& operand, const T& compare) {
  const T zero{};
  const bool was = target != zero, is = operand != zero;
  const auto truth = [](bool value) { return value ? T(1) : T(0); };
  switch (op) {
    case FI_SUM: target = sum(target, operand); return true;
    case FI_PROD: target = product(target, operand); return true;
    case FI_LOR: target = truth(was || is); return true;
    case FI_LAND: target = truth(was && is); return true;
    case FI_LXOR: target = truth(was != is); return true;
    case FI_ATOMIC_READ: return true;
    case FI_ATOMIC_WRITE: target = operand; return true;
    case FI_CSWAP:
      if (compare == target) target = operand;
      return true;
    case FI_CSWAP_NE:
      if (compare != target) target = operand;
      return true;
    default: break;
  }
  if constexpr (!IsComplex<T>::value) {
    switch (op) {
      case FI_MIN:
        if (operand < target) target = operand;
        return true;
      case FI_MAX:
        if (operand > target) target = operand;
        return true;
      case FI_CSWAP_LE:
        if (compare <= target) target = operand;
        return true;
      case FI_CSWAP_LT:
        if (compare < target) target = operand;
        return true;
      case FI_CSWAP_GE:
        if (compare >= target) target = operand;
        return true;
      case FI_CSWAP_GT:
        if (compare > target) target = operand;
        return true;
      default: break;
    }
  }
  if constexpr (is_integer<T>) {
    switch (op) {
      case FI_BOR: target = static_cast<T>(target | operand); return true;
      case FI_BAND: target = static_cast<T>(target & operand); return true;
      case FI_BXOR: target = static_cast<T>(target ^ operand); return true;
      case FI_MSWAP:
        target = static_cast<T>((operand & compare) | (target & ~compare));
        return true;
      default: break;
    }
  }
  return false;
}

// Small whole numbers, some negative, some equal: exact in every type. Integers get wide ones too.
template <typename T>
T sample_value(std::uint64_t seed) {
  const auto small = static_cast<int>(seed * 2654435761u >> 7 & 7) - 3;
  if constexpr (IsComplex<T>::value) {
    const auto other = static_cast<int>(seed * 40503u >> 5 & 7) - 3;
    using Part = typename T::value_type;
    return T(static_cast<Part>(small), static_cast<Part>(other));
  } else if constexpr (is_integer<T>) {
    if ((seed & 3) == 0) return static_cast<T>(seed * 0x9e3779b97f4a7c15u);
    return static_cast<T>(small);
  } else {
    return static_cast<T>(small);
  }
}

}  // namespace fabric_test
