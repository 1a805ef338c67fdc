"""The probe: against servers on this machine, and against nobody."""

import http.server
import socket
import threading
import time

import pytest

from alim_keras.data.sources import network

# Loopback only; see conftest.py.
USES_THE_NETWORK = True


@pytest.fixture(autouse=True)
def no_proxy_settings(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def closed_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        yield server.getsockname()[1]


@pytest.fixture
def proxy():
    """A proxy that answers every request with the status it is given."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        status = 200

        def answer(self):
            token = self.headers.get("Proxy-Authorization")
            seen.append((self.command, self.path, token))
            self.send_response(self.status)
            self.end_headers()

        do_CONNECT = do_HEAD = answer

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, args=(0.01,), daemon=True
    )
    thread.start()
    server.seen, server.handler = seen, Handler
    yield server
    server.shutdown()
    server.server_close()


def test_no_address_is_no_obstacle():
    assert network.unreachable([]) is None


def test_an_open_port_is_reached(proxy):
    url = f"http://127.0.0.1:{proxy.server_port}/file.gz"
    assert network.unreachable([url]) is None


def test_a_closed_port_is_named(closed_port):
    url = f"http://127.0.0.1:{closed_port}/x"
    reason = network.unreachable([url, url + "y"])
    assert reason.startswith(f"127.0.0.1:{closed_port}: ")
    assert "refused" in reason


def test_one_host_of_several_is_enough(proxy, closed_port):
    urls = [
        f"http://127.0.0.1:{closed_port}/x",
        f"http://localhost:{proxy.server_port}/y",
    ]
    assert network.unreachable(urls) is None


def test_a_resolver_that_hangs_is_not_waited_for(monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(network, "_ALL_SECONDS", 0.2)

    def hang(*_, **__):
        released.wait(30)
        raise OSError("too late")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    start = time.monotonic()
    reason = network.unreachable(["https://example.invalid/x"])
    released.set()
    assert reason == "example.invalid: no answer"
    assert time.monotonic() - start < 10


def test_the_proxy_of_the_environment_is_asked(proxy, monkeypatch):
    address = f"http://user:p%40ss@127.0.0.1:{proxy.server_port}"
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.setenv("https_proxy", address)
    assert network.unreachable(["https://example.invalid/file"]) is None
    assert network.unreachable(["http://example.invalid:8080/file"]) is None
    # "user:p@ss" in base64.
    token = "Basic dXNlcjpwQHNz"
    assert proxy.seen == [
        ("CONNECT", "example.invalid:443", token),
        ("HEAD", "http://example.invalid:8080/", token),
    ]


@pytest.mark.parametrize(("scheme", "status"), [("https", 403), ("http", 502)])
def test_a_proxy_that_refuses(proxy, monkeypatch, scheme, status):
    proxy.handler.status = status
    address = f"127.0.0.1:{proxy.server_port}"
    monkeypatch.setenv(f"{scheme}_proxy", address)
    reason = network.unreachable([f"{scheme}://example.invalid/x"])
    assert reason.startswith("example.invalid: ")
    assert str(status) in reason


def test_hosts_the_proxy_is_not_for(proxy, closed_port, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port}")
    url = f"http://localhost:{proxy.server_port}/x"
    assert network.unreachable([url]) is not None
    monkeypatch.setenv("no_proxy", "localhost")
    assert network.unreachable([url]) is None
