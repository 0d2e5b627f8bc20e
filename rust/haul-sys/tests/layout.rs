//! The C compiler compares this crate with haul.h: sizes, offsets, constants, and the type of each function, which is
//! declared a second time behind the header's. What haul.h has and this crate lacks is looked for by name.

use haul_sys::*;
use std::fmt::Write;
use std::io::Write as _;
use std::mem::{size_of, MaybeUninit};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr::addr_of;

const CRATE: &str = include_str!("../src/lib.rs");

/// The tree's own header, or the installed one where the crate stands alone.
fn include_folder() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    if tree.join("haul/haul.h").exists() {
        tree
    } else {
        PathBuf::from("/usr/include")
    }
}

/// What the compiler says of `code` behind the header; "" if it has nothing to say.
fn compiler_says(code: &str) -> String {
    let mut compiler = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-I"])
        .arg(include_folder())
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test needs a C compiler named cc");
    let mut input = compiler.stdin.take().unwrap();
    write!(input, "#include <haul/haul.h>\n{code}").unwrap();
    drop(input);
    let output = compiler.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), text.is_empty(), "{text}");
    text
}

fn assert_compiles(code: &str) {
    let text = compiler_says(code);
    assert!(text.is_empty(), "haul.h and haul-sys differ:\n{text}");
}

fn size_behind<T>(_: *const T) -> usize {
    size_of::<T>()
}

/// Assertions, in C, that a struct and each of its fields lie there as they do here.
macro_rules! assertions {
    ($code:expr, $name:ident { $($field:ident),* $(,)? }) => {{
        writeln!($code, "_Static_assert(sizeof({0}) == {1}, \"{0}\");", stringify!($name), size_of::<$name>()).unwrap();
        let value = MaybeUninit::<$name>::uninit();
        let base = value.as_ptr();
        let mut fields = 0;
        $(
            // SAFETY: takes an address within `value`, and reads nothing.
            let field = unsafe { addr_of!((*base).$field) };
            let (offset, size) = (field as usize - base as usize, size_behind(field));
            let place = concat!(stringify!($name), ".", stringify!($field)).replace("r#", "");
            let name = stringify!($field).trim_start_matches("r#");
            writeln!(
                $code,
                "_Static_assert(offsetof({0}, {name}) == {offset} && sizeof((({0}*)0)->{name}) == {size}, \"{place}\");",
                stringify!($name)
            )
            .unwrap();
            fields += 1;
        )*
        assert_eq!(fields, fields_in_crate(stringify!($name)), "a field of {} is not compared", stringify!($name));
    }};
}

/// How many fields lib.rs gives a struct.
fn fields_in_crate(name: &str) -> usize {
    let head = format!("pub struct {name} {{");
    let body = CRATE.split_once(&head).expect("the struct is in lib.rs").1.split_once("\n}").unwrap().0;
    body.matches("pub ").count()
}

#[test]
fn structs_lie_as_in_c() {
    let mut code = String::new();
    assertions!(code, haul_extent { space, reserved, address, length });
    assertions!(code, haul_ticket { r#where, tenancy });
    assertions!(code, haul_completion { ticket, user_data, good_bytes, status, reserved });
    assertions!(
        code,
        haul_request {
            size,
            operation,
            dst_affinity,
            src_affinity,
            pattern_bytes,
            flags,
            reserved,
            dst,
            src,
            dst_vector,
            src_vector,
            dst_count,
            src_count,
            pattern,
            notify,
            notify_value,
            user_data,
            callback,
            callback_context,
        }
    );
    assertions!(code, haul_grant { fd, reserved, index });
    assertions!(
        code,
        haul_plan {
            size,
            chunks,
            chunk_bytes,
            inline_below_bytes,
            mover_from_bytes,
            scheme,
            mover,
            engine,
            reason_count,
            reserved,
            reasons,
        }
    );
    assertions!(code, haul_engine_info { size, available, name, spaces, status, chunks, bytes });
    assertions!(
        code,
        haul_state {
            size,
            mover_state,
            mover_cpu,
            threads,
            submitted,
            inlined,
            dedicated,
            helped_chunks,
            moved_chunks,
            failed,
            unobserved,
            round_trip_ns,
            mover_status,
            service_state,
            service_pid,
            service_chunks,
            service_status,
        }
    );
    assert_compiles(&code);
}

/// The constants of lib.rs, name by name, with the value as its text has it.
#[test]
fn constants_are_those_of_c() {
    let mut code = String::new();
    for line in CRATE.lines().filter(|line| line.starts_with("pub const HAUL_")) {
        let (name, rest) = line["pub const ".len()..].split_once(':').unwrap();
        let value = rest.split_once('=').unwrap().1.trim().trim_end_matches(';');
        writeln!(code, "_Static_assert({name} == ({value}), \"{name}\");").unwrap();
    }
    assert!(code.lines().count() >= 30);
    assert_compiles(&code);
}

/// A type of Rust as C writes it.
fn in_c(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(to) = rust.strip_prefix("*const ") {
        return format!("const {}*", in_c(to));
    }
    if let Some(to) = rust.strip_prefix("*mut ") {
        return format!("{}*", in_c(to));
    }
    match rust {
        "c_int" => "int",
        "c_uint" => "unsigned",
        "c_char" => "char",
        "c_void" => "void",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "Option<unsafe extern \"C\" fn(percent: c_int, context: *mut c_void)>" => "callback_of_tune",
        name => name,
    }
    .to_string()
}

/// The parameters of a function's declaration: what stands between commas that are not within parentheses.
fn parameters(list: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in list.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().unwrap().push(c);
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.map(|part| in_c(part.split_once(':').unwrap().1)).collect()
}

/// Each function of lib.rs, declared in C.
fn declarations() -> String {
    let body = CRATE.split_once("extern \"C\" {\n").unwrap().1.split_once("\n}").unwrap().0;
    let mut code = String::from("typedef void (*callback_of_tune)(int, void*);\n");
    for item in body.split(';').filter(|item| item.contains("pub fn ")) {
        let (name, rest) = item.split_once("pub fn ").unwrap().1.split_once('(').unwrap();
        let (list, result) = rest.rsplit_once(") -> ").unwrap();
        let list = parameters(list).join(", ");
        writeln!(code, "{} {name}({});", in_c(result), if list.is_empty() { "void" } else { &list }).unwrap();
    }
    code
}

#[test]
fn functions_have_the_types_of_c() {
    let code = declarations();
    assert_compiles(&code);
    // The comparison can fail: C refuses another result and another parameter.
    assert!(
        compiler_says(&code.replace("int haul_wait(haul_ticket)", "long haul_wait(haul_ticket)")).contains("haul_wait")
    );
    assert!(compiler_says(&code.replace("haul_drain(void)", "haul_drain(int)")).contains("haul_drain"));
}

/// haul.h's functions, constants and structs, by name.
#[test]
fn nothing_is_missing() {
    let header = std::fs::read_to_string(include_folder().join("haul/haul.h")).unwrap();
    let (mut functions, mut constants, mut structs) = (0, 0, 0);
    for line in header.lines() {
        let words = || line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        if line.starts_with("HAUL_API ") || line.starts_with("static inline ") {
            let before = line.split_once('(').unwrap().0;
            let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            assert!(CRATE.contains(&format!("pub fn {name}(")), "{name}() is not in haul-sys");
            functions += 1;
        } else if let Some(name) = line.strip_prefix("typedef struct ") {
            let name = name.trim_end_matches(" {");
            assert!(CRATE.contains(&format!("pub struct {name} {{")), "{name} is not in haul-sys");
            structs += 1;
        }
        let defines = line.starts_with("#define HAUL_") && words().count() > 2;
        for name in words().filter(|word| word.starts_with("HAUL_")) {
            let enumerates = line.contains(&format!("{name} = "));
            if (defines || enumerates) && name != "HAUL_API" {
                assert!(CRATE.contains(&format!("pub const {name}:")), "{name} is not in haul-sys");
                constants += 1;
            }
        }
    }
    assert!(functions >= 31 && constants >= 30 && structs >= 8, "{functions} {constants} {structs}");
}
