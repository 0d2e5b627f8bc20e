// Atomics (fi_atomic).
#include "fabric/endpoint/transfer/transfer.hpp"
#include "fabric/protocol/atomic_ops.hpp"

namespace haul::fabric {

namespace {

using Form = AtomicRequest::Form;

template <class Vector>
std::size_t total_count(const Vector* vector, std::size_t length) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; vector != nullptr && i < length; ++i) count += vector[i].count;
  return count;
}

// 0 or -FI_E*: whether all that the request names is of the same, allowed length.
ssize_t check(const AtomicRequest& request) noexcept {
  if ((request.flags & (refused_flags | FI_TAGGED)) != 0) return -FI_EOPNOTSUPP;
  std::size_t limit = 0;
  const int refusal = atomic_supported(request.form, request.operation, request.datatype, &limit);
  if (refusal != 0) return refusal;
  for (const std::size_t length : {request.operand_count, request.comparand_count,
                                   request.result_count, request.target_count}) {
    if (length > max_pieces) return -FI_EINVAL;
  }
  const std::size_t count = total_count(request.targets, request.target_count);
  if (count == 0) return -FI_EINVAL;
  if (count > limit) return -FI_EMSGSIZE;
  if (request.operation != FI_ATOMIC_READ &&
      total_count(request.operands, request.operand_count) != count) {
    return -FI_EINVAL;
  }
  if (request.form == Form::compare &&
      total_count(request.comparands, request.comparand_count) != count) {
    return -FI_EINVAL;
  }
  if (request.form != Form::base && total_count(request.results, request.result_count) != count) {
    return -FI_EINVAL;
  }
  return 0;
}

ssize_t submit_atomic(fid_ep* endpoint, fi_addr_t name, const AtomicRequest& request) noexcept {
  EndpointState& state = Endpoint::of(endpoint).state();
  const int refusal = state.allows(FI_ATOMIC | (request.form == Form::base ? FI_WRITE : FI_READ));
  if (refusal != 0) return refusal;
  if (const ssize_t error = check(request); error != 0) return error;
  return submit_to(state, name, [&](Peer& peer) { return state.matcher().atomic(peer, request); });
}

// A buffer of a call that has no vectors.
struct Operand {
  fi_ioc vector;
  Operand(const void* buffer, std::size_t count) noexcept
      : vector{const_cast<void*>(buffer), count} {}
};

// To one range of the peer's memory.
ssize_t submit_range(fid_ep* endpoint, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                     AtomicRequest&& request) noexcept {
  // FI_ATOMIC_READ has no operands, so the results tell how many elements a fetch is of.
  const std::size_t count = request.form == Form::fetch
                                ? total_count(request.results, request.result_count)
                                : total_count(request.operands, request.operand_count);
  const fi_rma_ioc target = {address, count, key};
  request.targets = &target;
  request.target_count = 1;
  return submit_atomic(endpoint, to, request);
}

AtomicRequest message_request(Form form, const fi_msg_atomic& message,
                              std::uint64_t flags) noexcept {
  return {.form = form,
          .operation = message.op,
          .datatype = message.datatype,
          .operands = message.msg_iov,
          .operand_count = message.iov_count,
          .targets = message.rma_iov,
          .target_count = message.rma_iov_count,
          .flags = flags,
          .context = message.context};
}

// ---- base ----

ssize_t write_vector(fid_ep* endpoint, const fi_ioc* operands, void**, std::size_t length,
                     fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype datatype,
                     fi_op operation, void* context) noexcept {
  return submit_range(endpoint, to, address, key,
                      {.operation = operation,
                       .datatype = datatype,
                       .operands = operands,
                       .operand_count = length,
                       .flags = Endpoint::of(endpoint).send_flags(),
                       .context = context});
}

ssize_t write(fid_ep* endpoint, const void* buffer, std::size_t count, void* descriptor,
              fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype datatype,
              fi_op operation, void* context) noexcept {
  const Operand operand(buffer, count);
  return write_vector(endpoint, &operand.vector, &descriptor, 1, to, address, key, datatype,
                      operation, context);
}

ssize_t write_message(fid_ep* endpoint, const fi_msg_atomic* message,
                      std::uint64_t flags) noexcept {
  return submit_atomic(
      endpoint, message->addr,
      message_request(Form::base, *message, Endpoint::of(endpoint).send_flags(flags)));
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t count, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, fi_datatype datatype,
               fi_op operation) noexcept {
  const Operand operand(buffer, count);
  return submit_range(endpoint, to, address, key,
                      {.operation = operation,
                       .datatype = datatype,
                       .operands = &operand.vector,
                       .operand_count = 1,
                       .flags = FI_INJECT});
}

// ---- fetch ----

ssize_t fetch_vector(fid_ep* endpoint, const fi_ioc* operands, void**, std::size_t length,
                     fi_ioc* results, void**, std::size_t result_length, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key, fi_datatype datatype,
                     fi_op operation, void* context) noexcept {
  return submit_range(endpoint, to, address, key,
                      {.form = Form::fetch,
                       .operation = operation,
                       .datatype = datatype,
                       .operands = operands,
                       .operand_count = length,
                       .results = results,
                       .result_count = result_length,
                       .flags = Endpoint::of(endpoint).send_flags(),
                       .context = context});
}

ssize_t fetch(fid_ep* endpoint, const void* buffer, std::size_t count, void* descriptor,
              void* result, void* result_descriptor, fi_addr_t to, std::uint64_t address,
              std::uint64_t key, fi_datatype datatype, fi_op operation, void* context) noexcept {
  const Operand operand(buffer, count);
  Operand fetched(result, count);
  return fetch_vector(endpoint, &operand.vector, &descriptor, 1, &fetched.vector,
                      &result_descriptor, 1, to, address, key, datatype, operation, context);
}

ssize_t fetch_message(fid_ep* endpoint, const fi_msg_atomic* message, fi_ioc* results, void**,
                      std::size_t result_length, std::uint64_t flags) noexcept {
  AtomicRequest request =
      message_request(Form::fetch, *message, Endpoint::of(endpoint).send_flags(flags));
  request.results = results;
  request.result_count = result_length;
  return submit_atomic(endpoint, message->addr, request);
}

// ---- compare ----

ssize_t compare_vector(fid_ep* endpoint, const fi_ioc* operands, void**, std::size_t length,
                       const fi_ioc* comparands, void**, std::size_t comparand_length,
                       fi_ioc* results, void**, std::size_t result_length, fi_addr_t to,
                       std::uint64_t address, std::uint64_t key, fi_datatype datatype,
                       fi_op operation, void* context) noexcept {
  return submit_range(endpoint, to, address, key,
                      {.form = Form::compare,
                       .operation = operation,
                       .datatype = datatype,
                       .operands = operands,
                       .operand_count = length,
                       .comparands = comparands,
                       .comparand_count = comparand_length,
                       .results = results,
                       .result_count = result_length,
                       .flags = Endpoint::of(endpoint).send_flags(),
                       .context = context});
}

ssize_t compare(fid_ep* endpoint, const void* buffer, std::size_t count, void* descriptor,
                const void* comparand, void* comparand_descriptor, void* result,
                void* result_descriptor, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                fi_datatype datatype, fi_op operation, void* context) noexcept {
  const Operand operand(buffer, count), compared(comparand, count);
  Operand fetched(result, count);
  return compare_vector(endpoint, &operand.vector, &descriptor, 1, &compared.vector,
                        &comparand_descriptor, 1, &fetched.vector, &result_descriptor, 1, to,
                        address, key, datatype, operation, context);
}

ssize_t compare_message(fid_ep* endpoint, const fi_msg_atomic* message, const fi_ioc* comparands,
                        void**, std::size_t comparand_length, fi_ioc* results, void**,
                        std::size_t result_length, std::uint64_t flags) noexcept {
  AtomicRequest request =
      message_request(Form::compare, *message, Endpoint::of(endpoint).send_flags(flags));
  request.comparands = comparands;
  request.comparand_count = comparand_length;
  request.results = results;
  request.result_count = result_length;
  return submit_atomic(endpoint, message->addr, request);
}

// ---- what can be done ----

template <Form form>
int valid(fid_ep*, fi_datatype datatype, fi_op operation, std::size_t* count) noexcept {
  std::size_t limit = 0;
  const int refusal = atomic_supported(form, operation, datatype, &limit);
  if (refusal == 0 && count != nullptr) *count = limit;
  return refusal;
}

}  // namespace

fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = write,
    .writev = write_vector,
    .writemsg = write_message,
    .inject = inject,
    .readwrite = fetch,
    .readwritev = fetch_vector,
    .readwritemsg = fetch_message,
    .compwrite = compare,
    .compwritev = compare_vector,
    .compwritemsg = compare_message,
    .writevalid = valid<Form::base>,
    .readwritevalid = valid<Form::fetch>,
    .compwritevalid = valid<Form::compare>,
};

int query_atomic(fid_domain*, fi_datatype datatype, fi_op operation, fi_atomic_attr* attr,
                 std::uint64_t flags) noexcept {
  constexpr std::uint64_t forms = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
  if (attr == nullptr || (flags & forms) == forms) return -FI_EINVAL;
  if ((flags & ~(forms | FI_TAGGED)) != 0) return -FI_EBADFLAGS;
  if ((flags & FI_TAGGED) != 0) return -FI_EOPNOTSUPP;
  Form form = Form::base;
  if ((flags & FI_FETCH_ATOMIC) != 0) form = Form::fetch;
  if ((flags & FI_COMPARE_ATOMIC) != 0) form = Form::compare;
  std::size_t count = 0;
  const int refusal = atomic_supported(form, operation, datatype, &count);
  if (refusal != 0) return refusal;
  attr->count = count;
  attr->size = datatype_bytes(datatype);
  return 0;
}

}  // namespace haul::fabric
