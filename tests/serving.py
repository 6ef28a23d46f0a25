"""A small HTTP server that speaks the protocol of chat endpoints."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any


@contextmanager
def serving(*answers: Any) -> Iterator[SimpleNamespace]:
    """A server that gives `answers`, one for each request (the last one again and again), and keeps the `requests`.

    `connections` counts those that were ever opened, `open()` those that are still open after a moment.
    """
    state = SimpleNamespace(answers=list(answers), requests=[], connections=0, closed=0)
    lock = threading.Lock()

    def still_open() -> int:
        deadline = time.monotonic() + 5
        while state.connections > state.closed and time.monotonic() < deadline:
            time.sleep(0.01)
        return state.connections - state.closed

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # which keeps connections open

        def handle(self) -> None:
            with lock:
                state.connections += 1
            try:
                super().handle()
            finally:
                with lock:
                    state.closed += 1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                state.requests.append(SimpleNamespace(path=self.path, key=self.headers.get("Authorization"), body=body))
                code, answer = state.answers[min(len(state.requests), len(state.answers)) - 1]
            text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    state.open = still_open
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def says(**message: Any) -> tuple[int, dict[str, Any]]:
    """An answer of the protocol."""
    return 200, {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}]}
