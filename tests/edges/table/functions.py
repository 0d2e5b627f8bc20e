#!/usr/bin/env python3
"""Writes the rows of the table functions x situations: one for each function that a public header declares.

    functions.py OUTPUT.cpp HEADER...

A row can make the function's arguments (world.hpp) and call it. Nobody lists functions by hand: a header's new
function is in the table, and one whose arguments cannot be made from MAKERS stops the build.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "manual"))
sys.dont_write_bytecode = True
from header import c_header  # noqa: E402

# How an argument is made, by its type and its name; "FUNCTION NAME" comes first where one function needs another.
MAKERS = {
    # haul.h
    "int code": "HAUL_EFAULT",
    "void* dst": "w.destination()",
    "const void* src": "w.source()",
    "size_t len": "w.bytes()",
    "size_t offset": "0",
    "uint64_t pattern": "w.pattern()",
    "size_t pattern_bytes": "8",
    "uint8_t pattern_bytes": "8",
    "const haul_request* requests": "w.requests()",
    "const haul_request* request": "w.requests()",
    "size_t count": "World::count",
    "haul_ticket* tickets": "w.ticket_slots()",
    "haul_ticket ticket": "w.ticket()",
    "uint64_t timeout_ns": "World::timeout_ns",
    "size_t* good_bytes": "w.out<size_t>()",
    "haul_completion* entries": "w.completions()",
    "size_t max": "World::count",
    "size_t bytes": "w.bytes()",
    "void* memory": "w.allocated()",
    "int pid": "w.peer()",
    "const char* device": '"cuda"',
    "haul_space* space": "w.out<haul_space>()",
    "haul_space space": "w.space()",
    "void* address": "w.allocated()",
    "uint32_t rights": "HAUL_SHARE_READ | HAUL_SHARE_WRITE",
    "haul_grant* grant": "w.out<haul_grant>()",
    "const haul_grant* grant": "w.grant()",
    "size_t* len": "w.out<size_t>()",
    "haul_plan* plan": "w.sized<haul_plan>()",
    "unsigned index": "0u",
    "haul_engine_info* info": "w.sized<haul_engine_info>()",
    "haul_state* state": "w.sized<haul_state>()",
    "void (*progress)(int percent, void* context)": "&World::progress",
    "void* context": "nullptr",
    # atomic.h
    "const char* responder": '"block:127.0.0.1"',
    "const haul_atomic_node_options* options": "w.options()",
    "haul_atomic_node** node": "w.out<haul_atomic_node*>()",
    "haul_atomic_node* node": "w.node()",
    "char* text": "w.text()",
    "const char* text": "w.name_as_text()",
    "uint64_t* values": "w.out<uint64_t, 64>()",
    "size_t index": "0",
    "haul_atomic_window** window": "w.out<haul_atomic_window*>()",
    "haul_atomic_window* window": "w.window()",
    "const haul_atomic_window* window": "w.window()",
    "haul_atomic_window* own": "w.window()",
    "haul_atomic_window_name* name": "w.out<haul_atomic_window_name>()",
    "const haul_atomic_window_name* name": "w.name()",
    "haul_atomic_remote** remote": "w.out<haul_atomic_remote*>()",
    "haul_atomic_remote* remote": "w.remote()",
    "const haul_atomic_operation* operations": "w.operations()",
    "haul_atomic_operation* operations": "w.operations()",
    "haul_atomic_window_run operations": "w.own_operations()",
    "uint8_t code": "HAUL_ATOMIC_ADD",
    "uint64_t tag": "7",
    "uint64_t* ticket": "w.out<uint64_t>()",
    "uint64_t ticket": "w.atomic_ticket()",
    "haul_atomic_completion* completions": "w.out<haul_atomic_completion, 16>()",
    "size_t capacity": "16",
    "uint64_t address": "w.name()->address",
    "uint64_t operand": "1",
    "uint64_t compare": "0",
    "uint64_t data": "1",
    "uint64_t* old": "w.out<uint64_t>()",
    "uint64_t* value": "w.out<uint64_t>()",
    "const haul_atomic_lock_options* options": "w.lock_options()",
    "haul_atomic_lock** lock": "w.out<haul_atomic_lock*>()",
    "haul_atomic_lock* lock": "w.lock()",
    "const haul_atomic_lock* lock": "w.lock()",
    "haul_atomic_lock_release lock": "w.held_lock()",
    "haul_atomic_lock_renew lock": "w.held_lock()",
    "haul_atomic_lock_remaining lock": "w.held_lock()",
    "haul_atomic_lock_test lock": "w.started_lock()",
    "uint64_t* token": "w.out<uint64_t>()",
    "haul_atomic_lock_action action": "HAUL_ATOMIC_LOCK_TRY",
    "haul_atomic_lock_counts* counts": "w.out<haul_atomic_lock_counts>()",
}

def arguments_of(text):
    """The text up to the parenthesis that closes the list, cut at its commas."""
    depth, parts, begin = 0, [], 0
    for at, letter in enumerate(text):
        if letter == "(":
            depth += 1
        elif letter == ")" and depth > 0:
            depth -= 1
        elif letter == ")" or (letter == "," and depth == 0):
            parts.append(" ".join(text[begin:at].split()))
            begin = at + 1
            if letter == ")":
                break
    return [] if parts == ["void"] else parts


def name_of(argument):
    pointer = re.search(r"\(\*(\w+)\)", argument)
    return pointer.group(1) if pointer else re.search(r"(\w+)$", argument).group(1)


def type_of(argument):
    return re.sub(r"(?<=\(\*)\w+(?=\))", "", argument) if "(*" in argument else re.sub(r"\w+$", "", argument).strip()


def functions_of(header):
    """(name, arguments, its comment) of each function that the header declares."""
    for group in c_header.read(header).groups():
        for item in group.of_kind("function", "inline"):
            arguments = arguments_of(item.text.partition("(")[2])
            yield item.name, arguments, group.comment.text(), f"{header}:{group.line}"


def row_of(header, name, arguments, comment, place):
    made = []
    for argument in arguments:
        maker = MAKERS.get(f"{name} {name_of(argument)}") or MAKERS.get(argument)
        if maker is None:
            sys.exit(f"{place}: {name}() takes '{argument}', which the table of functions x situations cannot make: "
                     f"add it to MAKERS in tests/edges/table/functions.py, and what makes it to world.hpp")
        made.append(maker)
    in_handlers = "true" if re.search(r"async-signal-safe", comment, re.I) else "false"
    types = " ".join(arguments)
    service = "true" if "haul_grant" in types else "false"
    atomic = "true" if header.endswith("atomic.h") else "false"
    peer = "true" if atomic == "true" or re.search(r"haul_space|pid", types) else "false"
    types = ", ".join(type_of(argument) for argument in arguments)
    # Braces make the arguments from left to right; the call uses them later, perhaps on another thread.
    return f"""    {{"{name}", {atomic}, {service}, {peer}, {in_handlers},
     [](World& w) -> Call {{
       const std::tuple<{types}> made{{{", ".join(made)}}};
       return [&w, made] {{ return std::apply([&w](auto... a) {{ return w.outcome({name}(a...)); }}, made); }};
     }}}},
"""


def main():
    output, headers = sys.argv[1], sys.argv[2:]
    try:
        rows = "".join(row_of(header, *function) for header in headers for function in functions_of(header))
    except c_header.HeaderError as error:
        sys.exit(str(error))
    includes = "".join(f"#include <{header[header.index('haul/'):]}>\n" for header in headers)
    text = f"""// Written by tests/edges/table/functions.py from the public headers; do not edit.
{includes}
#include <tuple>

#include "world.hpp"

namespace edges {{

const std::vector<Function>& functions() {{
  static const std::vector<Function> all{{
{rows}  }};
  return all;
}}

}}  // namespace edges
"""
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


main()
