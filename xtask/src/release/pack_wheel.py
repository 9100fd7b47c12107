"""Packs a directory as a wheel: `pack_wheel.py DIR WHEEL SECONDS`, the same bytes each time."""

import base64
import hashlib
import sys
import time
import zipfile
from pathlib import Path


def main() -> None:
    folder, wheel, seconds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    # Installers and viewers expect the metadata at the end.
    files.sort(key=lambda name: ".dist-info/" in name)
    (info,) = folder.glob("*.dist-info")
    record = f"{info.name}/RECORD"
    lines = []
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in files:
            content = (folder / name).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
            archive.writestr(entry(name, seconds), content, compresslevel=9)
        archive.writestr(entry(record, seconds), "".join([*lines, f"{record},,\n"]))


def entry(name: str, seconds: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
    info.create_system = 3  # Unix, whose modes follow.
    info.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


main()
