"""Whether a host can be reached, answered within seconds.

A download that retries for minutes is a bad way to learn that there is no
network, so it is asked first: resolve the host, connect, and go through the
proxy that the environment names, if any.
"""

import base64
import http.client
import socket
import threading
import urllib.parse
import urllib.request

_CONNECT_SECONDS = 5.0
# Resolving a name can take longer than any socket timeout.
_ALL_SECONDS = 8.0


def unreachable(urls):
    """Returns None if one of the hosts can be reached, else why not.

    Args:
        urls: Strings. All hosts are tried at once.

    Returns:
        None, or a short text such as "example.org: timed out".
    """
    hosts = {}
    for url in urls:
        hosts.setdefault(urllib.parse.urlsplit(url).netloc, url)
    if not hosts:
        return None
    answered = threading.Event()
    reasons, lock = {}, threading.Lock()
    reached = []

    def probe(host, url):
        try:
            _connect(url)
            reached.append(host)
        except (OSError, http.client.HTTPException, ValueError) as error:
            with lock:
                reasons[host] = str(error) or type(error).__name__
        if reached or len(reasons) == len(hosts):
            answered.set()

    for host, url in hosts.items():
        threading.Thread(target=probe, args=(host, url), daemon=True).start()
    answered.wait(_ALL_SECONDS)
    if reached:
        return None
    return "; ".join(
        f"{host}: {reasons.get(host, 'no answer')}" for host in hosts
    )


def _connect(url):
    """Opens and closes a connection to the host of `url`."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        _connect_through(proxy, parts, port)
        return
    socket.create_connection((parts.hostname, port), _CONNECT_SECONDS).close()


def _connect_through(proxy, parts, port):
    """Asks a proxy for the host; a refusal counts as unreachable."""
    via = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    via_port = via.port or (443 if via.scheme == "https" else 80)
    if via.scheme != "http":
        # A TLS or SOCKS proxy: that it answers is all that is asked.
        socket.create_connection(
            (via.hostname, via_port), _CONNECT_SECONDS
        ).close()
        return
    headers = {}
    if via.username is not None:
        secret = urllib.parse.unquote(f"{via.username}:{via.password or ''}")
        token = base64.b64encode(secret.encode()).decode()
        headers["Proxy-Authorization"] = f"Basic {token}"
    connection = http.client.HTTPConnection(
        via.hostname, via_port, timeout=_CONNECT_SECONDS
    )
    try:
        if parts.scheme == "https":
            connection.set_tunnel(parts.hostname, port, headers=headers)
            connection.connect()
            return
        target = f"{parts.scheme}://{parts.netloc}/"
        connection.request("HEAD", target, headers=headers)
        status = connection.getresponse().status
        # What proxies answer when they will not or cannot pass it on.
        if status in (407, 502, 503, 504):
            raise OSError(f"the proxy answered {status}")
    finally:
        connection.close()
