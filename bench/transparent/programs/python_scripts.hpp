// The scripts that Python runs for suite `programs`. Each prints a sum of what it made.
#pragma once

namespace haul::bench {

struct PythonScript {
  const char* name;
  bool needs_numpy;
  const char* text;
};

inline constexpr PythonScript python_scripts[] = {
    {"python bytes 16M", false, R"python(
import zlib
a = bytes(range(256)) * (16 << 12)
s = 0
for i in range(12):
    b = bytearray(a)
    b[i] ^= 1
    c = bytes(b)
    s += c[i] + len(c)
print(s, zlib.crc32(c))
)python"},
    {"python pickle 64M", false, R"python(
import hashlib, pickle
a = bytes(range(256)) * (64 << 12)
for i in range(2):
    p = pickle.dumps(a, 5)
    q = pickle.loads(p)
print(hashlib.sha256(q).hexdigest())
)python"},
    {"python sqlite3 200M", false, R"python(
import sqlite3, zlib
a = bytes(range(256)) * (200 << 12)
db = sqlite3.connect(":memory:")
db.execute("create table t (v blob)")
db.execute("insert into t values (?)", (a,))
(v,) = db.execute("select v from t").fetchone()
print(len(v), zlib.crc32(v[:1 << 20]), v == a)
)python"},
    {"python gzip 1.6M", false, R"python(
import zlib
a = b"".join(b"%d apples cost %d crowns.\n" % (i, i * i % 977) for i in range(60000))
s = 0
for i in range(24):
    b = bytearray(a)
    c = zlib.compress(a if i % 2 else b, 1)
    s = zlib.crc32(zlib.decompress(c), s)
    s = zlib.crc32(b, s)
print(s)
)python"},
    {"numpy copy 128M", true, R"python(
import numpy
a = numpy.arange(16 << 20, dtype="f8")
s = 0.0
for i in range(3):
    b = a.copy()
    s += float(b.sum())
print(s)
)python"},
    {"numpy concatenate 128M", true, R"python(
import numpy
a = numpy.arange(8 << 20, dtype="f8")
s = 0.0
for i in range(3):
    b = numpy.concatenate((a, a))
    s += float(b[i::4096].sum())
print(s)
)python"},
};

}  // namespace haul::bench
