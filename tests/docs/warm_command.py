"""A `manyclass` command that starts at once, because another process has already imported everything.

A server listens on a socket. The script `manyclass` asks it for a child with the script's arguments, folder,
environment and streams, and exits with the code of the child. It only differs from the installed command in that it
saves the second that each start takes.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    told = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(told).to_bytes(8, "little")], [0, 1, 2])
    server.sendall(told)
    sys.exit(server.recv(1)[0])
"""


def start(folder: Path) -> subprocess.Popen:
    """Start a server, and write the script to the folder."""
    address = str(folder / "socket")
    client = folder / "manyclass"
    client.write_text(CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)
    server = subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"ready\n"
    return server


def serve(address: str) -> None:
    import json

    import pyarrow.parquet  # noqa: F401

    from manyclass.cli import app

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while True:
            client, _ = listening.accept()
            if os.fork():
                client.close()
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            size, streams, *_ = socket.recv_fds(client, 8, 3)
            told = b""
            while len(told) < struct.unpack("<Q", size)[0]:
                told += client.recv(1 << 16)
            arguments, folder, environment = json.loads(told)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
            code = 1
            try:
                app.app(arguments, prog_name="manyclass")
            except SystemExit as end:
                code = end.code or 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            client.sendall(bytes([code]))
            os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
