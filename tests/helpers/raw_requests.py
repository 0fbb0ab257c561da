"""Requests as bytes on a socket: half-open, slow, broken off."""

import http.client
import socket

HANG = 60
"""Seconds after which a test gives up."""
FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)); "


def answer(port, token, path="/api/videos"):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG)
    client.request("GET", path, headers={"cookie": f"colocam-{port}={token}"})
    status = client.getresponse().status
    client.close()
    return status


def opened(port, data=b"GET / HT"):
    one = socket.create_connection(("127.0.0.1", port), timeout=HANG)
    one.sendall(data)
    return one


def closed(one):
    """Wait until the server closes a connection; what it sent before."""
    try:
        return b"".join(iter(lambda: one.recv(1 << 16), b""))
    except ConnectionResetError:
        return b""


def upload(port, token):
    """A video of ten bytes, of which five are sent."""
    head = f"POST /api/videos HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 10\r\nX-Colocam-Token: {token}\r\n"
    return opened(port, f"{head}Cookie: colocam-{port}={token}\r\nConnection: close\r\n\r\n12345".encode())
