"""An output is whole or not there, and what it replaces is a file and nothing else."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from llr_cvx.outputs import check_output, is_stdout, replacing


def write(path: str | Path, text: str = "new") -> None:
    with replacing(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def write_half(path: str | Path, error: BaseException) -> None:
    with replacing(path, "w", encoding="utf-8") as stream:
        stream.write("half")
        stream.flush()
        raise error


def test_a_symlink_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "target.txt"
    target.write_text("old")
    (tmp_path / "link").symlink_to("there/target.txt")
    (tmp_path / "twice").symlink_to("link")
    write(tmp_path / "twice")
    assert target.read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "twice").is_symlink()
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["link", "target.txt", "there", "twice"]


def test_a_dangling_symlink_is_filled(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_fifo_is_written_to(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()), daemon=True)
    reader.start()
    write(fifo, "new" * 100_000)
    reader.join(10)
    assert read == ["new" * 100_000]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_device_stays_a_device(device: Callable[[str], Path]) -> None:
    null = device("null")
    write(null)
    assert stat.S_ISCHR(null.stat().st_mode)


def test_a_block_device_a_folder_and_a_loop_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    refused = {tmp_path: "it is a folder", tmp_path / "loop": "symbolic links", tmp_path / "no" / "x": "its folder"}
    try:
        os.mknod(tmp_path / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 99))
        refused[tmp_path / "disk"] = "it is a block device"
    except PermissionError:
        pass  # for root only
    for path, words in refused.items():
        for attempt in (write, check_output):
            with pytest.raises(OSError, match=f"cannot write {path}: .*{words}"):
                attempt(path)


def test_permission_bits_are_those_of_the_file_or_of_the_umask(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("old")
    old.chmod(0o640)
    write(old)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write(tmp_path / "fresh")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_text("old")
    os.chown(path, 4242, 4243)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (4242, 4243)


def test_a_file_that_may_not_be_written_to_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder would allow to replace it. Asked of the system, since root may write to everything."""
    path = tmp_path / "read-only"
    write(path, "old")
    monkeypatch.setattr(os, "access", lambda name, mode: not (Path(name) == path and mode == os.W_OK))
    for attempt in (write, check_output):
        with pytest.raises(OSError, match=f"cannot write {path}: Permission denied"):
            attempt(path)
    assert path.read_text() == "old"


@pytest.mark.parametrize("nameless", [True, False])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, nameless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "file"
    write(path, "old")
    with pytest.raises(KeyboardInterrupt):
        write_half(path, KeyboardInterrupt())
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    write(path)
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_names_the_file(tmp_path: Path, device: Callable[[str], Path]) -> None:
    path = tmp_path / "big"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match=f"cannot write {path}: File too large"):
            write(path, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    full = device("full")
    with pytest.raises(OSError, match=f"cannot write {full}: No space left"):
        write(full)


def test_an_error_of_another_file_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"), replacing(tmp_path / "a", "w"):
        (tmp_path / "nowhere").read_text()


@pytest.mark.parametrize("name", ["-", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_has_several_names(name: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert is_stdout(name)
    assert is_stdout("/dev/stdout")  # not written to: as root, a fault could replace it
    print("before")
    write(name, "ä\n")
    with replacing(name) as stream:
        stream.write(b"\x00\xff")
    assert capsysbinary.readouterr().out == b"before\n\xc3\xa4\n\x00\xff"
    assert not Path("-").exists()


def test_nothing_reaches_a_pipe_if_the_work_fails(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(ZeroDivisionError):
        write_half("-", ZeroDivisionError())
    assert capsysbinary.readouterr().out == b""


def test_a_redirected_file_is_continued_not_replaced(tmp_path: Path) -> None:
    """`command --json /dev/fd/1 > file`: both texts are in the file, in order."""
    code = (
        "from llr_cvx.outputs import replacing\nprint('text')\nwith replacing('/dev/fd/1', 'w') as s: s.write('json')"
    )
    with (tmp_path / "file").open("w") as stream:
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert (tmp_path / "file").read_text() == "text\njson"


def test_process_substitution(tmp_path: Path) -> None:
    code = "import sys; from llr_cvx.outputs import replacing\nwith replacing(sys.argv[1], 'w') as s: s.write('json')"
    shell = f'{sys.executable} -c "$CODE" >(cat > {tmp_path}/copy); wait $!'
    subprocess.run(["bash", "-c", shell], env=os.environ | {"CODE": code}, check=True)
    for _ in range(100):
        if (tmp_path / "copy").exists() and (tmp_path / "copy").read_text():
            break
        threading.Event().wait(0.05)
    assert (tmp_path / "copy").read_text() == "json"


def test_names_in_a_table_do_not_control_the_terminal() -> None:
    import pty

    code = "from llr_cvx.outputs import replacing\nwith replacing('-', 'w') as s: s.write('a\\x1b[31m,1\\n')"
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=theirs, check=True)
    os.close(theirs)
    assert os.read(ours, 1000) == b"a\\x1b[31m,1\r\n"
    os.close(ours)
