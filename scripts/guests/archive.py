"""An archive in cpio's "newc" format, which the kernel unpacks behind the initrd it is appended to."""

import shutil


def newc(files):
    """The bytes of an archive of {path: (bytes, permissions)}; directories are made on the way."""
    out = bytearray()
    inode = 0

    def member(name, mode, content):
        nonlocal inode
        inode += 1
        encoded = name.encode() + b"\0"
        fields = [inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
        out.extend(b"070701" + b"".join(b"%08x" % field for field in fields) + encoded)
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(content)
        out.extend(b"\0" * (-len(out) % 4))

    made = set()
    for path, (content, permissions) in files.items():
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = "/".join(parts[:depth])
            if folder not in made:
                made.add(folder)
                member(folder, 0o040755, b"")
        member(path, 0o100000 | permissions, content)
    member("TRAILER!!!", 0, b"")
    return bytes(out)


def add_to(initrd, files, path):
    """Makes `path`: the initrd with the files behind it."""
    shutil.copyfile(initrd, path)
    with open(path, "ab") as file:
        file.write(b"\0" * (-file.tell() % 4) + newc(files))
